"""The jobs of deploy/ci as a runner would do them, and the commit's status that a webhook sets."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from penstock.client import Client
from penstock.services.settings import Settings
from penstock.services.supervisor.folders import open_folder
from tests.fixtures.waiting import wait_until
from tests.supervisor.stacks import ROOT, myself, remove, up

EXAMPLES = ROOT / "deploy" / "ci"
SHA = "0123456789abcdef0123456789abcdef01234567"
WORK = {
    "PENSTOCK_STEP_MODULES": "penstock.services.steps.bodies", "PENSTOCK_WEBHOOK_TARGETS": "127.0.0.0/8",
}  # fmt: skip
JOB = {
    "MODEL": "zoo:mlp?inputs=16&hidden=8",
    "OPTIONS": "--platform u55c --quantize w8a8 --trials 2 --evidence modelled",
}


class Forge:
    """Keeps the statuses that it is asked to set."""

    def __init__(self) -> None:
        self.statuses: list[tuple[str, dict[str, Any]]] = []
        forge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                forge.statuses.append((self.path, json.loads(body)))
                self.send_response(201)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def forge() -> Iterator[Forge]:
    made = Forge()
    yield made
    made.close()


@contextmanager
def status_setter(service: Client, forge: Forge, kind: str) -> Iterator[None]:
    """The receiver of deploy/ci, told of the ends of runs."""
    # The webhook's secret is known when it was made, and its address when the receiver listens: so twice.
    environment = os.environ | {"FORGE": kind, "FORGE_API": forge.url, "FORGE_TOKEN": "t", "PENSTOCK_URL": service.url}
    made = service.create_webhook("http://127.0.0.1:9/")
    process = start_receiver(environment | {"PENSTOCK_WEBHOOK_SECRET": made.secret}, "0")
    port = receiver_port(process)
    stop(process)
    service.delete_webhook(made.id)
    made = service.create_webhook(f"http://127.0.0.1:{port}/")
    process = start_receiver(environment | {"PENSTOCK_WEBHOOK_SECRET": made.secret}, str(port))
    receiver_port(process)
    try:
        yield
    finally:
        service.delete_webhook(made.id)
        stop(process)


def start_receiver(environment: dict[str, str], port: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / "commit_status.py"), port]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def receiver_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline().split()[-1])


def stop(process: subprocess.Popen[str]) -> None:
    with process:
        process.kill()


def github_steps() -> tuple[list[str], dict[str, str]]:
    job = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text())["jobs"]["accelerator"]
    return [step["run"] for step in job["steps"] if "run" in step and "if" not in step], job["env"]


def gitlab_steps() -> tuple[list[str], dict[str, str]]:
    job = yaml.safe_load((EXAMPLES / "gitlab-ci.yml").read_text())["accelerator"]
    return [*job["before_script"], *job["script"]], job["variables"]


def do(steps: Sequence[str], folder: Path, environment: dict[str, str]) -> int:
    """As a runner does: one shell a step, the first that fails ends the job; its exit code."""
    handed_on = folder / "handed-on"
    for step in steps:
        if step == "pip install penstock":  # it is installed: this checkout is
            continue
        more = dict(re.findall(r"^(\w+)=(.*)$", handed_on.read_text(), re.M)) if handed_on.exists() else {}
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step], cwd=folder, capture_output=True,
            text=True, env=environment | {"GITHUB_ENV": str(handed_on)} | more,
        )  # fmt: skip
        if ended.returncode:
            print(step, ended.stdout, ended.stderr)  # noqa: T201
            return ended.returncode
    return 0


@pytest.mark.slow
def test_jobs_submit_wait_fail_on_limits_and_keep_the_package(forge: Forge, tmp_path: Path) -> None:
    folder = open_folder()
    home, programs = folder / "home", tmp_path / "bin"
    programs.mkdir()
    (programs / "penstock").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {" ".join(myself().command())} "$@"\n')
    (programs / "penstock").chmod(0o755)
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    try:
        with up(myself(), home, **WORK) as stack:
            token = Settings(home=home).own_token()
            base = plain | {
                "PATH": f"{programs}:{plain['PATH']}", "PENSTOCK_URL": stack.url, "PENSTOCK_TOKEN": token,
                "GITHUB_REPOSITORY": "lab/nets", "GITHUB_SHA": SHA, "GITHUB_RUN_ID": "7", "GITHUB_JOB": "accelerator",
                "CI_PROJECT_PATH": "lab/group/nets", "CI_COMMIT_SHA": SHA, "CI_JOB_ID": "8", "CI_JOB_STATUS": "running",
            }  # fmt: skip
            with Client(stack.url, token) as service:
                for kind, (steps, own) in (("github", github_steps()), ("gitlab", gitlab_steps())):
                    place = tmp_path / kind
                    place.mkdir()
                    job = base | {name: value for name, value in own.items() if "${{" not in value} | JOB
                    with status_setter(service, forge, kind):
                        assert do(steps, place, job | {"LIMIT": "latency_us<=1000"}) == 0
                        assert list((place / "package").glob("*.penstock.zip"))
                        runs = len(list(service.runs()))
                        again = tmp_path / f"{kind}-again"
                        again.mkdir()
                        assert do(steps, again, job | {"LIMIT": "latency_us<=1000"}) == 0
                        assert len(list(service.runs())) == runs, "a job that is run again starts no second run"
                        unmet = tmp_path / f"{kind}-unmet"
                        unmet.mkdir()
                        other = {"LIMIT": "latency_us<=0.001", "GITHUB_RUN_ID": "9", "CI_JOB_ID": "10"}
                        assert do(steps, unmet, job | other) == 3
                        assert not (unmet / "package").exists()
                        wait_until(lambda: len(forge.statuses) == 2, lambda: len(forge.statuses))
                    (path, good), (_, bad) = forge.statuses
                    where = {
                        "github": f"/repos/lab/nets/statuses/{SHA}",
                        "gitlab": f"/projects/lab%2Fgroup%2Fnets/statuses/{SHA}",
                    }
                    assert path == where[kind]
                    assert [good["state"], bad["state"]] == ["success", {"github": "failure", "gitlab": "failed"}[kind]]
                    assert good["target_url"].startswith(f"{stack.url}/runs/run_")
                    forge.statuses.clear()
    finally:
        remove(folder)


def test_the_receiver_believes_signed_messages_only() -> None:
    environment = os.environ | {"PENSTOCK_WEBHOOK_SECRET": "whsec_" + "A" * 44}
    process = start_receiver(environment, "0")
    try:
        url = f"http://127.0.0.1:{receiver_port(process)}/"
        for headers in ({}, {"webhook-id": "x", "webhook-timestamp": "1", "webhook-signature": "v1,AAAA"}):
            assert httpx.post(url, content=b"{}", headers=headers, trust_env=False).status_code == 401
    finally:
        stop(process)
