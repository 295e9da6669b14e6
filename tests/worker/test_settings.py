"""Settings: typed, with defaults, and a bad value is named with its variable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.services.settings import SettingError, Settings
from penstock.services.step_kinds import QUEUES

ROOT = Path(__file__).parents[2]


def read(**variables: str) -> Settings:
    return Settings.from_environment({f"PENSTOCK_{name}": value for name, value in variables.items()})


def test_an_empty_environment_gives_one_persons_machine() -> None:
    settings = read()
    assert (settings.api_host, settings.api_port, settings.url) == ("127.0.0.1", 8750, "http://127.0.0.1:8750")
    assert (settings.lease_seconds, settings.heartbeat_seconds) == (30.0, 5.0)
    assert settings.queues == QUEUES
    assert settings.allow_python_models is False
    assert settings.store_folder == settings.home / "store"


def test_values_are_typed() -> None:
    settings = read(API_PORT="9000", QUEUES="import, build", ALLOW_PYTHON_MODELS="yes", API_HOST="0.0.0.0")
    assert settings.url == "http://127.0.0.1:9000"
    assert settings.queues == ("import", "build")
    assert settings.allow_python_models is True


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("API_PORT", "eighty"), ("API_PORT", "70000"), ("LEASE_SECONDS", "0"), ("LEASE_SECONDS", "nan"),
        ("HEARTBEAT_SECONDS", "inf"), ("CONCURRENCY", "0"), ("ALLOW_PYTHON_MODELS", "maybe"), ("QUEUES", ","),
        ("DATABASE_URL", "localhost"), ("TOOL_KEEP", "sometimes"), ("TOOL_MEMORY_GB", "-1"),
    ],
)  # fmt: skip
def test_a_bad_value_names_its_variable(variable: str, value: str) -> None:
    with pytest.raises(SettingError, match=f"PENSTOCK_{variable}={value!r}"):
        read(**{variable: value})


def test_a_heartbeat_must_fit_twice_into_the_lease() -> None:
    with pytest.raises(SettingError, match="at most half"):
        read(LEASE_SECONDS="10", HEARTBEAT_SECONDS="6")
    assert read(LEASE_SECONDS="2").heartbeat_seconds == 0.5


def test_both_forms_of_a_redis_socket_are_understood() -> None:
    for url in ("unix:///tmp/r.sock", "redis+socket:///tmp/r.sock"):
        settings = read(REDIS_URL=url)
        assert settings.require_redis_url() == "unix:///tmp/r.sock"
        assert settings.broker_url() == "redis+socket:///tmp/r.sock"
    with pytest.raises(SettingError, match="PENSTOCK_REDIS_URL is not set"):
        read().broker_url()


def test_what_the_api_imports_of_us_loads_no_compiler() -> None:
    services = ", ".join(f"penstock.services.{name}" for name in ("settings", "store", "steps.graph", "worker.publish"))
    modules = f"{services}, penstock.db, penstock.db.lifecycle"
    heavy = "torch numpy xdsl optuna"
    code = f"import sys, {modules}; print([m for m in {heavy.split()} if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
