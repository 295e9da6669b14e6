"""Progress of a command that takes longer than a blink: one line a stage on stderr, with its seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.status import Status


class Stages:
    """Shows the stage at work with a spinner, and a line for each that took long enough to notice.

    `seconds` keeps what every stage took, in order.
    """

    NOTICED_SECONDS = 0.1

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False, quiet=quiet)
        self.seconds: dict[str, float] = {}
        self._stage: str | None = None
        self._began = 0.0
        self._status: Status | None = None

    @contextmanager
    def running(self) -> Iterator[Stages]:
        """The spinner lives as long as this does; the last stage ends with it, well or not."""
        with self.console.status("") as status:
            self._status = status
            try:
                yield self
            finally:
                self._end()
                self._status = None

    def begin(self, stage: str) -> None:
        """The next stage begins, and the one before is done. Fits as a `progress` callback."""
        self._end()
        self._stage, self._began = stage, time.monotonic()
        if self._status is not None:
            self._status.update(f"{stage} …")

    def note(self, text: str) -> None:
        """More about the stage at work."""
        if self._status is not None:
            self._status.update(f"{self._stage} … {text}")

    def say(self, text: str) -> None:
        """A line of its own that people should not miss."""
        self.console.print(text, markup=False)

    def _end(self) -> None:
        if self._stage is None:
            return
        took = time.monotonic() - self._began
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + took
        if took >= self.NOTICED_SECONDS:
            self.console.print(f"{took:6.1f} s  {self._stage}", markup=False)
        self._stage = None
