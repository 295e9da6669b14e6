"""Whether the clock of this machine can be believed: ages of files are told by it, and somebody may set it."""

from __future__ import annotations

import time
from collections.abc import Callable

JUMP_SECONDS = 30.0
"""More than a clock is ever nudged between two looks; less than anything that is decided by ages."""


class SteadyClock:
    """Watches the clock against one that nobody can set."""

    def __init__(self, clock: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._steady = clock, steady
        self._ahead = clock() - steady()
        self._since = steady()

    def seconds(self) -> float:
        """For how long the clock has gone on without a jump, as far as this process has seen it."""
        now = self._steady()
        ahead = self._clock() - now
        if abs(ahead - self._ahead) > JUMP_SECONDS:
            self._since = now
        self._ahead = ahead
        return now - self._since
