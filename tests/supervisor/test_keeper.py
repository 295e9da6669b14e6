"""Programs that crash come back after a growing pause, and somebody is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.keeper import FIRST_PAUSE, LONGEST_PAUSE, Keeper
from penstock.services.supervisor.process import LAUNCHER, Child
from tests.supervisor.stacks import alive, eventually


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def keeper(said: list[str]) -> Iterator[Keeper]:
    made = Keeper(said.append)
    yield made
    made.stop_all()


def keep(keeper: Keeper, log: Path, script: str) -> Child:
    child = Child("program", ["/bin/sh", "-c", script], log)

    def start() -> Child:
        child.start()
        return child

    keeper.add("program", start, lambda: child.stop(0.5))
    return child


def ended(child: Child) -> bool:
    return eventually(lambda: not child.running)


def test_a_crash_is_said_and_mended(keeper: Keeper, said: list[str], tmp_path: Path) -> None:
    child = keep(keeper, tmp_path / "log", "exec sleep 60")
    first = child.pid
    os.kill(first, signal.SIGKILL)
    assert ended(child)
    now = time.monotonic()
    keeper.look(now)
    assert said == [f"program was killed by signal 9; starting it again in 0.5 s; log: {tmp_path / 'log'}"]
    keeper.look(now + FIRST_PAUSE / 2)
    assert not child.running
    keeper.look(now + FIRST_PAUSE)
    assert child.running
    assert child.pid != first
    assert said[1:] == ["program runs again"]


def test_pauses_grow_to_a_limit(keeper: Keeper, said: list[str], tmp_path: Path) -> None:
    child = keep(keeper, tmp_path / "log", "exit 3")
    now = time.monotonic()
    for _ in range(9):
        assert ended(child)
        keeper.look(now)
        now += LONGEST_PAUSE
        keeper.look(now)
    pauses = [float(line.split(" in ")[1].split()[0]) for line in said if "exit code 3" in line]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_a_restart_that_fails_is_tried_again(keeper: Keeper, said: list[str], tmp_path: Path) -> None:
    starts: list[Child] = []

    def start() -> Child:
        if len(starts) == 1:
            starts.append(starts[0])
            raise PenstockError(code="x", what="no memory")
        child = Child("program", ["/bin/sh", "-c", "exit 0" if not starts else "exec sleep 60"], tmp_path / "log")
        child.start()
        starts.append(child)
        return child

    keeper.add("program", start, lambda: starts[-1].stop(0.5))
    assert ended(starts[0])
    now = time.monotonic()
    keeper.look(now)
    keeper.look(now + 1)
    assert "no memory" in said[-1]
    keeper.look(now + 3)
    assert starts[-1].running


def test_stop_kills_what_ignores_it(tmp_path: Path) -> None:
    script = "trap '' TERM; (trap '' TERM; sleep 60) & echo $!; echo ready; while :; do sleep 0.1; done"
    child = Child("stubborn", ["/bin/sh", "-c", script], tmp_path / "log")
    child.start()
    assert eventually(lambda: "ready" in child.log_tail())
    grandchild = int(child.log_tail().split()[0])
    child.stop(grace=0.3)
    assert eventually(lambda: not alive([child.pid, grandchild]))


def test_a_missing_program_is_an_exit_code_and_a_line_in_the_log(tmp_path: Path) -> None:
    child = Child("nothing", ["/no/such/program"], tmp_path / "log")
    child.start()
    assert ended(child)
    assert child.exit_code == 127
    assert "cannot start /no/such/program" in child.log_tail()


def test_a_log_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="cannot start nothing"):
        Child("nothing", ["/bin/true"], tmp_path / "missing" / "log").start()


def test_the_launcher_gives_up_when_its_parent_is_gone() -> None:
    """The pid of some other process stands for a parent that died before the death signal was armed."""
    command = [sys.executable, "-I", "-S", str(LAUNCHER), "1", "9", "-1", "-1", "/bin/echo", "ran"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert answer.stdout == ""


def test_a_large_log_moves_aside_while_its_program_goes_on(keeper: Keeper, tmp_path: Path) -> None:
    log = tmp_path / "log"
    child = keep(keeper, log, "while :; do echo line; sleep 0.01; done")
    assert eventually(lambda: log.exists() and log.stat().st_size > 50)
    child.rotate(50)
    assert log.with_name("log.1").read_text().startswith("line\n")
    size = log.stat().st_size
    assert eventually(lambda: log.stat().st_size > size)
    assert log.read_bytes()[:5] == b"line\n", "what is written next begins a file, it does not leave a hole"
