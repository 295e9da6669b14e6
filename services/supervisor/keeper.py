"""Keeps programs alive: notices one that ended, says so, and starts it again after a growing pause."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.compiler.errors import PenstockError
from penstock.services.supervisor.process import Child

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
ROTATE_BYTES = 10 * 2**20
STEADY_SECONDS = 60.0  # running so long clears the record of earlier crashes


@dataclass
class KeptProgram:
    """One program: how to start it, how to stop it, and how often it failed lately."""

    name: str
    start: Callable[[], Child]
    stop: Callable[[], None]
    child: Child | None = None
    started: float = 0.0
    crashes: int = 0
    retry_at: float | None = field(default=None)

    def launch(self, now: float) -> None:
        self.child = self.start()
        self.started = now
        self.retry_at = None


class Keeper:
    """The programs in the order of their start; they are stopped in the opposite one."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.programs: list[KeptProgram] = []
        self._say = say

    def add(self, name: str, start: Callable[[], Child], stop: Callable[[], None]) -> None:
        """Start a program and keep it from now on."""
        kept = KeptProgram(name, start, stop)
        self.programs.append(kept)  # before it starts, so that a failed start is cleaned up too
        kept.launch(time.monotonic())

    def look(self, now: float) -> None:
        """One round: note what ended, restart what has paused long enough."""
        for kept in self.programs:
            if kept.child is not None:
                kept.child.rotate(ROTATE_BYTES)
            if kept.retry_at is not None:
                if now >= kept.retry_at:
                    self._restart(kept, now)
            elif kept.child is not None and not kept.child.running:
                kept.child.kill_group()  # whatever a dead leader left of its group
                if now - kept.started > STEADY_SECONDS:
                    kept.crashes = 0
                self._pause(kept, now, f"{kept.name} {ending(kept.child)}")

    def ended(self) -> list[KeptProgram]:
        """Programs that do not run at this moment."""
        return [kept for kept in self.programs if kept.child is None or not kept.child.running]

    def stop_all(self) -> None:
        """In the opposite order of the start; one that fails to stop does not spare the others."""
        for kept in reversed(self.programs):
            try:
                kept.stop()
            except OSError as error:
                self._say(f"{kept.name} could not be stopped: {error}")
        self.programs.clear()

    def _restart(self, kept: KeptProgram, now: float) -> None:
        try:
            kept.launch(now)
            self._say(f"{kept.name} runs again")
        except PenstockError as error:
            self._pause(kept, now, f"{kept.name}: {error.one_line()}")

    def _pause(self, kept: KeptProgram, now: float, what: str) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**kept.crashes)
        kept.crashes += 1
        kept.retry_at = now + pause
        log = f"; log: {kept.child.log}" if kept.child is not None else ""
        self._say(f"{what}; starting it again in {pause:g} s{log}")


def ending(child: Child) -> str:
    """How a program ended, in words."""
    code = child.exit_code
    if code is None:
        return "did not start"
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
