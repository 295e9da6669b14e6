"""schemathesis over the whole API: nothing ends in a 5xx, nothing answers what is not written down, nothing that the
description allows is refused.

It is no dependency of the project: it is found on PATH, or in the folder that PENSTOCK_SCHEMATHESIS names (made with
`pip install --target FOLDER schemathesis`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from penstock.db import Database
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.accounts import create
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from tests.api.conftest import served
from tests.api.seeding import Seeder

pytestmark = pytest.mark.slow

HOOKS = str(Path(__file__).with_name("schemathesis_hooks.py"))
EXAMPLES = os.environ.get("PENSTOCK_SCHEMATHESIS_EXAMPLES", "10")
STREAM_SECONDS = "15"
"""A stream of a run that goes on does not end by itself; its first bytes come at once."""


def command() -> tuple[list[str], dict[str, str]]:
    folder = os.environ.get("PENSTOCK_SCHEMATHESIS", "")
    if folder:
        return [sys.executable, "-m", "schemathesis.cli"], {"PYTHONPATH": folder}
    program = shutil.which("schemathesis")
    if program is None:
        pytest.skip("schemathesis is not installed: put it on PATH, or name its folder in PENSTOCK_SCHEMATHESIS")
    return [program], {}


@pytest.mark.parametrize("auth", [False, True], ids=["open", "tokens"])
def test_the_api_does_what_its_description_says(
    auth: bool, settings: Settings, database: Database, seeder: Seeder, tmp_path: Path
) -> None:
    program, environment = command()
    seeder.finished_run(2)
    token = create(database, settings, "tester", scope="admin").secret
    headers = ["--header", f"Authorization: Bearer {token}"] if auth else []
    with served(create_app(settings, ApiOptions(auth=auth, max_waiting_runs=100_000, max_streams=10_000))) as url:
        httpx.get(f"{url}/openapi.json", timeout=120).raise_for_status()  # made at the first question: it takes a while
        done = subprocess.run(
            [
                *program, "run", f"{url}/openapi.json", "--checks", "all",
                "--exclude-checks", "positive_data_acceptance", "--max-examples", EXAMPLES, "--seed", "1",
                "--request-timeout", STREAM_SECONDS, "--phases", "examples,coverage,fuzzing", "--workers", "1",
                "--suppress-health-check", "all", "--generation-database", "none", "--no-color",
                *headers,
            ],
            env=os.environ | environment | {"SCHEMATHESIS_HOOKS": HOOKS}, cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    (tmp_path / "schemathesis.txt").write_text(done.stdout + done.stderr)
    assert done.returncode == 0, f"{tmp_path / 'schemathesis.txt'} has all of it\n{done.stdout[-8000:]}"
