"""Whether the clock of this machine can be believed: ages of files are told by it, and somebody may set it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

JUMP_SECONDS = 30.0
"""More than a clock is ever nudged between two looks; less than anything that is decided by ages."""
LONGEST_BLINK = 1800.0
"""Seconds for which nobody may have looked: in a longer time a clock may have been set, and set right again."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def _boot() -> str:
    """Which start of the machine this is; nothing where the system does not say."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


class SteadyClock:
    """Watches the clock against one that nobody can set.

    What it saw is kept in a file, so that a program that is started anew more often than hourly still comes to believe
    its clock. The file counts until the machine starts again, since the clock that nobody can set begins anew then.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
        *,
        kept: Path | None = None,
        boot: Callable[[], str] = _boot,
    ) -> None:
        self._clock, self._steady = clock, steady
        self._kept, self._boot = kept, boot()
        self._since = self._looked = steady()
        self._ahead = clock() - self._since
        self._take_up()
        self._keep()

    def seconds(self) -> float:
        """For how long the clock has gone on without a jump, as far as those who watched have seen it."""
        now = self._steady()
        ahead = self._clock() - now
        if abs(ahead - self._ahead) > JUMP_SECONDS:
            self._since = now
        self._ahead, self._looked = ahead, now
        self._keep()
        return now - self._since

    def unseen(self) -> float:
        """Seconds since the last look, also that of an earlier program."""
        return self._steady() - self._looked

    def _take_up(self) -> None:
        """Go on where the program before this one left off, if it watched this clock, and not long ago."""
        now, ahead = self._since, self._ahead
        before = self._read()
        if before is None or not 0 <= now - before[2] <= LONGEST_BLINK or before[1] > before[2]:
            return
        self._looked = before[2]
        if abs(ahead - before[0]) <= JUMP_SECONDS:
            self._since = before[1]

    def _read(self) -> tuple[float, float, float] | None:
        if self._kept is None or not self._boot:
            return None
        try:
            said = json.loads(self._kept.read_text())
            if said["boot"] != self._boot:
                return None
            return float(said["ahead"]), float(said["since"]), float(said["looked"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _keep(self) -> None:
        if self._kept is None or not self._boot:
            return
        said = {"boot": self._boot, "ahead": self._ahead, "since": self._since, "looked": self._looked}
        new = self._kept.with_name(f"{self._kept.name}.{os.getpid()}")
        try:
            new.write_text(json.dumps(said))
            new.replace(self._kept)
        except OSError as error:  # a full disk: what was seen is known to this program at least
            log.warning("what was seen of the clock is not kept: %s", error)
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
