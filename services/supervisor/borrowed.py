"""A whole stack for the length of a `with` block: private folder, free port, nothing left afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.services.settings import Settings
from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.process import LAUNCHER, tail

START_SECONDS = 240.0
STOP_SECONDS = 120.0
OF_ANOTHER_STACK = ("PENSTOCK_HOME", "PENSTOCK_URL", "PENSTOCK_DATABASE_URL", "PENSTOCK_REDIS_URL")


@dataclass(frozen=True)
class BorrowedStack:
    url: str
    seconds: float
    home: Path

    @property
    def token(self) -> str:
        """The one that it made for its user."""
        return Settings(home=self.home).own_token()


@contextlib.contextmanager
def borrowed_stack(**settings: str) -> Iterator[BorrowedStack]:
    """Run `penstock up` as a child that cannot outlive us, and stop it, whatever happens in the block.

    `settings` are variables for it, beside those of this process that are not about another stack.
    After an error the logs stay, and a line on stderr says where.
    """
    folder = open_folder("penstock-private-")
    log = folder / "up.log"
    environment = {name: value for name, value in os.environ.items() if name not in OF_ANOTHER_STACK}
    environment |= {"PENSTOCK_HOME": str(folder / "home"), **settings}
    up = [sys.executable, "-m", "penstock.services.cli.main", "up", "--json", "--port", "0", "--host", "127.0.0.1"]
    launcher = [
        sys.executable,
        "-I",
        "-S",
        str(LAUNCHER),
        str(os.getpid()),
        str(int(signal.SIGTERM)),
        "-1",
        "-1",
    ]
    try:
        with log.open("wb") as said:
            process = subprocess.Popen(
                [*launcher, *up],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=said,
                env=environment,
                process_group=0,  # a Ctrl-C is for us; we stop it in order
            )
        try:
            status = _first_line(process, log)
            yield BorrowedStack(str(status["url"]), float(status["seconds"]), folder / "home")
        finally:
            _stop(process)
    except Exception:
        _keep_logs(folder)
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _first_line(process: subprocess.Popen[bytes], log: Path) -> dict[str, Any]:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if ready else b""
    if line:
        return json.loads(line)
    last = tail(log, 1).removeprefix("penstock: ") or f"nothing was said within {START_SECONDS:.0f} s"
    raise PenstockError(code="start-failed", what=f"the private service did not start: {last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    with process:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()


def _keep_logs(folder: Path) -> None:
    logs = folder / "home" / "logs"
    if logs.is_dir():
        kept = tempfile.mkdtemp(prefix="penstock-logs-")
        shutil.copytree(logs, kept, dirs_exist_ok=True)
        print(f"penstock: the private service's logs are kept in {kept}", file=sys.stderr)
