"""A busy service backed up and restored elsewhere, where its runs go on; and another major version of Postgres."""

from __future__ import annotations

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.client import Client
from penstock.services.settings import Settings
from penstock.services.supervisor.binaries import postgres_candidates
from penstock.services.supervisor.folders import open_folder
from tests.fixtures.waiting import wait_until
from tests.supervisor.stacks import ROOT, myself, penstock, remove, up

WORK = {"PENSTOCK_STEP_MODULES": "tests.worker.slow_trials", "PENSTOCK_CONCURRENCY": "2"}
MODEL = "zoo:mlp?inputs=16&hidden=8"
ASKED = {"quantize": "w8a8", "platform": "u55c", "evidence": "modelled"}


def client_of(url: str, home: Path) -> Client:
    return Client(url, Settings(home=home).own_token())


def files_of(service: Client, run: str, folder: Path) -> dict[str, bytes]:
    return {one.name: service.download(one, folder).read_bytes() for one in service.artifacts(run)}


@pytest.mark.slow
def test_runs_go_on_elsewhere(tmp_path: Path) -> None:
    folder = open_folder()
    here, there, kept = folder / "here", folder / "there", folder / "kept.tar"
    try:
        with up(myself(), here, **WORK) as first, client_of(first.url, here) as service:
            done = service.wait(service.submit(MODEL, trials=2, **ASKED))
            assert done.state == "succeeded", done.error
            files = files_of(service, done.id, tmp_path / "here")
            going = service.submit(MODEL, trials=10, **ASKED).id
            wait_until(lambda: service.run(going).progress.trials_done >= 2, lambda: service.run(going).last_event_id)
            with ThreadPoolExecutor(1) as beside:
                backup = beside.submit(penstock, "backup", str(kept), PENSTOCK_HOME=str(here))
                while not backup.done():  # however long it takes, there is work
                    known = service.run(going).progress
                    if known.trials_total - known.trials_done < 6:
                        service.extend(going, 6)
                    time.sleep(0.1)
                made = backup.result()
            assert made.returncode == 0, made.stderr
            assert service.run(going).state == "running", "it was busy all the while"
            service.cancel(going)
        restored = penstock("restore", str(kept), PENSTOCK_HOME=str(there))
        assert restored.returncode == 0, restored.stderr
        again = penstock("restore", str(kept), PENSTOCK_HOME=str(there))
        assert (again.returncode, "a service in this folder already" in again.stderr) == (1, True), again.stderr
        with up(myself(), there, **WORK) as second, client_of(second.url, there) as service:
            assert files_of(service, done.id, tmp_path / "there") == files
            before = list(service.trials(done.id))
            assert [one.figures for one in before if one.state == "complete"]
            end = service.wait(going)
            assert end.state == "succeeded", end.error
            assert end.progress.trials_done == end.progress.trials_total >= 10
            assert any(name.endswith(".penstock.zip") for name in files_of(service, going, tmp_path / "more"))
    finally:
        remove(folder)


@pytest.mark.slow
def test_another_major_version_of_postgres() -> None:
    majors = {one.origin: one.major for one in reversed(list(postgres_candidates()))}
    old, new = majors.get("path", 0), majors.get("wheel", 0)
    if not 0 < old < new:
        pytest.skip("needs an older Postgres on PATH beside the newer one of the wheel")
    folder = open_folder()
    home = folder / "home"
    try:
        with up(myself(), home) as stack, client_of(stack.url, home) as service:
            # no worker has a body for it, so it stays as it is
            run = service.submit(MODEL, trials=2, **ASKED).id
        assert (home / "postgres" / "PG_VERSION").read_text().strip() == str(old)
        script = subprocess.run(
            [str(ROOT / "deploy" / "upgrade-postgres.sh")], capture_output=True, text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
            | {"PENSTOCK_HOME": str(home), "PENSTOCK_SERVERS": "wheel", "PENSTOCK": str(command(folder))},
        )  # fmt: skip
        assert script.returncode == 0, script.stderr
        assert f"Postgres {old} -> {new}" in script.stdout
        assert (home / "postgres" / "PG_VERSION").read_text().strip() == str(new)
        with up(myself(), home) as stack, client_of(stack.url, home) as service:
            assert service.run(run).id == run, "and the token is the one of before"
    finally:
        remove(folder)


def command(folder: Path) -> Path:
    """`penstock` of this checkout as one program."""
    program = folder / "penstock"
    program.write_text(f'#!/bin/sh\ncd {ROOT} && exec {" ".join(myself().command())} "$@"\n')
    program.chmod(0o755)
    return program
