"""docker-compose.yml and the Dockerfiles stay true to the code; tests/images builds the images."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.services.settings import Settings
from penstock.services.step_kinds import QUEUES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def environment_of(service: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in service.get("environment", {}).items()}


def test_every_queue_has_a_worker(compose: dict[str, Any]) -> None:
    served = [environment_of(service).get("PENSTOCK_QUEUES") for service in compose["services"].values()]
    assert sorted(queue for queue in served if queue) == sorted(QUEUES)


def test_no_service_takes_python_models(compose: dict[str, Any]) -> None:
    ours = [one for one in compose["services"].values() if one["image"].startswith("penstock-")]
    assert len(ours) == 7
    for service in ours:
        values = environment_of(service) | {"PENSTOCK_CONCURRENCY": "1"}
        settings = Settings.from_environment(values)
        assert not settings.allow_python_models
        assert settings.broker_url() == "redis://redis:6379/0"


def test_the_page_says_which_settings_docker_compose_reads_itself() -> None:
    """A container's file of settings is not looked at for these, nor the shell for the others."""
    read = set(re.findall(r"\$\{(PENSTOCK_\w+)", (ROOT / "docker-compose.yml").read_text()))
    _, _, page = (ROOT / "docs" / "deploy.md").read_text().partition("docker-compose itself reads ")
    assert set(re.findall(r"PENSTOCK_\w+", page.partition(":")[0])) == read


def test_every_lasting_service_is_watched(compose: dict[str, Any]) -> None:
    unwatched = {name for name, service in compose["services"].items() if "healthcheck" not in service}
    assert unwatched == {"migrate"}, "it ends by itself"


def test_no_secret_is_written_down(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert "PASSWORD:" not in text
    example = (ROOT / "deploy" / "example.env").read_text()
    assert "POSTGRES_PASSWORD=\n" in example, "Postgres refuses an empty password, which is what we want"
    ignored = subprocess.run(["git", "check-ignore", "-q", "deploy/secrets.env"], cwd=ROOT)
    assert ignored.returncode == 0


def test_commands_name_modules_that_exist(compose: dict[str, Any]) -> None:
    commands = [part for service in compose["services"].values() for part in _parts(service)]
    modules = [part for part in commands if part.startswith("penstock.services.")]
    assert modules
    for module in modules:
        assert importlib.util.find_spec(module) is not None, module


def _parts(service: dict[str, Any]) -> list[str]:
    return [str(part) for part in [*service.get("command", []), *service.get("healthcheck", {}).get("test", [])]]


@pytest.mark.parametrize(("name", "extras"), [("api", "api,embedded"), ("worker", "worker")])
def test_an_image_installs_only_its_own_extra(name: str, extras: str) -> None:
    """And for backups the programs of Postgres."""
    text = (ROOT / f"Dockerfile.{name}").read_text()
    assert f"'.[{extras}]'" in text
    assert "-c constraints.txt" in text
    assert "USER penstock" in text


def test_the_apis_extra_brings_no_compiler() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = " ".join([*project["dependencies"], *project["optional-dependencies"]["api"]])
    assert not any(package in named for package in ("torch", "xdsl", "numpy", "optuna", "penstock["))


def test_docker_compose_accepts_the_file() -> None:
    program = shutil.which("docker-compose")
    if program is None:
        pytest.skip("docker-compose is not installed")
    answer = subprocess.run([program, "config", "-q"], cwd=ROOT, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
