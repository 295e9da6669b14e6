"""Start `penstock up` as a person would, in a folder of the test's own, and look at what it leaves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.services.supervisor.process import dying_with_us
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 600.0
NOBODY = 65534


@dataclass(frozen=True)
class Caller:
    """Who runs the command: a Python to run it with, and the numbers of the user to become (None: stay)."""

    python: str
    uid: int | None = None
    environment: dict[str, str] = field(default_factory=dict[str, str])
    folder: Path = ROOT

    def command(self, *arguments: str) -> list[str]:
        return [self.python, "-m", "penstock.services.cli.main", *arguments]


def myself() -> Caller:
    return Caller(sys.executable)


def other_user(uid: int) -> Caller:
    """A caller with another uid; skips where that needs more than this machine allows."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    if not _others_can_enter(ROOT):
        pytest.skip(f"other users cannot enter {ROOT}")
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        if Path(python).exists() and _others_can_enter(Path(python).resolve()):
            packages = f"{ROOT}{os.pathsep}{sysconfig.get_paths()['purelib']}"
            return Caller(python, uid, {"PYTHONPATH": packages, "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nowhere"})
    pytest.skip("no Python of this version that another user can run")


def _others_can_enter(path: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in (path, *path.parents))


@dataclass
class Up:
    """A running `penstock up --json`."""

    process: subprocess.Popen[str]
    status: dict[str, Any]

    @property
    def url(self) -> str:
        return self.status["url"]

    def descendants(self) -> dict[str, list[int]]:
        """Pids of everything below the supervisor, by program."""
        found: dict[str, list[int]] = {}
        for process in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                found.setdefault(kind(process.cmdline()), []).append(process.pid)
        return found

    def pids(self) -> list[int]:
        return [self.process.pid, *(pid for pids in self.descendants().values() for pid in pids)]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Send the signal; the exit code and what was said on stderr."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=600)
        return self.process.returncode, said


def kind(command: Sequence[str]) -> str:
    line = " ".join(command)
    words = ("serve_api", "dispatcher", "penstock.services.worker", "redis", "postgres")
    return next((word for word in words if word in line), line or "gone")


def run_up(caller: Caller, home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A start that is expected to end by itself."""
    return subprocess.run(
        caller.command("up", *arguments), env=_environment(caller, home, environment), cwd=caller.folder,
        capture_output=True, text=True, timeout=START_SECONDS, user=caller.uid, group=caller.uid,
        extra_groups=None if caller.uid is None else [],
    )  # fmt: skip


@contextlib.contextmanager
def up(caller: Caller, home: Path, *arguments: str, **environment: str) -> Iterator[Up]:
    """A start that is expected to serve; ended, however the test ends, and nothing may be left of it."""
    user = -1 if caller.uid is None else caller.uid
    command = dying_with_us(
        caller.command("up", "--json", "--port", "0", *arguments), signal.SIGTERM, uid=user, gid=user
    )
    process = subprocess.Popen(
        command, env=_environment(caller, home, environment), cwd=caller.folder, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _, said = process.communicate(timeout=600)
            raise AssertionError(f"penstock up ended with {process.returncode}: {said}")
        running = Up(process, json.loads(line))
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=600)
        process.kill()
        process.communicate()


def _environment(caller: Caller, home: Path, more: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    # No step runs in these tests, so the workers need not load the compiler.
    light = {"PENSTOCK_STEP_MODULES": "penstock.services.steps.registry"}
    return inherited | caller.environment | light | {"PENSTOCK_HOME": str(home)} | more


def penstock(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Another command of the same user."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return subprocess.run(
        myself().command(*arguments), env=inherited | myself().environment | environment,
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip


def get(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=600) as answer:
        return json.load(answer)


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it becomes true in a time that is long for anything."""
    try:
        wait_until(true)
    except AssertionError:
        return False
    return True


def alive(pids: Sequence[int]) -> list[int]:
    """Those that still run; a zombie does not."""
    running: list[int] = []
    for pid in pids:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                running.append(pid)
    return running


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
