"""Both images are built by what their Dockerfiles say, and the services of docker-compose.yml run in them.

Minutes of fetching and a few GB: `make test-images` asks for it with `--images`. By an engine that answers, else in
fresh roots; without either, or root, it is skipped with the reason.
"""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator

import pytest

from tests.images import engine, fresh_root
from tests.images.compose import ROOT, UID, Lab, Startable, open_lab, printed
from tests.images.this_machine import packages_of_this_machine

pytestmark = pytest.mark.slow
NAMES = ("api", "worker")


@pytest.fixture(scope="module")
def images(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Startable]:
    if not request.config.getoption("--images"):
        pytest.skip("images are built by `make test-images`, or pytest with --images")
    files = {f"penstock-{name}": ROOT / f"Dockerfile.{name}" for name in NAMES}
    if found := engine.answering():
        return {name: engine.build_by(found, file) for name, file in files.items()}
    if reason := fresh_root.why_not():
        pytest.fail(f"images cannot be built here: no container engine answers, and {reason}")
    packages, folder = packages_of_this_machine(), tmp_path_factory.mktemp("roots")
    return {name: fresh_root.build(file, folder, packages) for name, file in files.items()}


@pytest.fixture(scope="module")
def lab(images: dict[str, Startable], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with open_lab(images, tmp_path_factory.mktemp("lab"), port) as opened:
        yield opened


def test_images_hold_what_they_are_for(images: dict[str, Startable]) -> None:
    """The pinned torch with its compiler in one, and neither in the other."""
    worker, api = images["penstock-worker"], images["penstock-api"]
    assert worker.run(["python", "-c", "import torch, torch_mlir; print(torch.__version__)"]).startswith("2.13.0")
    assert "g++" in worker.run(["g++", "--version"])
    absent = "import importlib.util as u; print([m for m in ('torch', 'xdsl', 'numpy', 'optuna') if u.find_spec(m)])"
    assert api.run(["python", "-c", absent]).strip() == "[]"
    for image in (worker, api):
        assert image.run(["id", "-u"]).strip() == str(UID)
        assert image.run(["penstock", "--version"]).strip()


def test_the_doctor_finds_what_a_worker_needs(lab: Lab) -> None:
    checks = {
        check["name"]: check for check in printed(lab.run("worker-import", ["penstock", "doctor", "--json"]))["checks"]
    }
    for name in ("python", "c++", "user", "disk", "fence"):
        assert checks[name]["state"] == "ok", checks[name]


def test_a_model_sent_to_the_services_becomes_a_package(lab: Lab) -> None:
    lab.run("migrate", [str(part) for part in lab.services["migrate"]["command"]])
    lasting = [name for name in lab.ours() if name != "migrate"]
    for name in lasting:
        lab.start(name)
    for name in lasting:
        if "healthcheck" in lab.services[name]:
            lab.wait_for(name)
    lab.assert_running()
    token = printed(lab.run("api", ["penstock", "token", "create", "ci", "--scope", "admin", "--json"]))["token"]
    who = {"PENSTOCK_URL": lab.url, "PENSTOCK_TOKEN": token}
    command = ["penstock", "submit", "zoo:mlp?hidden=32", "--trials", "2", "--evidence", "modelled"]
    command += ["--json", "--wait", "--timeout", "900"]
    ended = printed(lab.run("api", command, **who))
    assert ended["state"] == "succeeded", lab.explain()
    request = urllib.request.Request(f"{lab.url}/v1/health", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        health = json.load(answer)
    assert health["status"] == "ok", health
    lab.assert_running()
    owners = {path.stat().st_uid for path in lab.see["/var/lib/penstock"].rglob("*")}
    assert owners == {UID}
