"""Turns at work that takes a thread for seconds: some at once, fewer of one owner, so that nobody has others wait.

All that a process answers shares one set of threads: forty files that take seconds to be looked at would hold up
whoever only asks how their run is.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

AT_ONCE, OF_ONE_OWNER = 4, 2
T = TypeVar("T")


class Turns:
    """Lives on one event loop. Whoever waits holds no thread; an owner's own wait for each other first."""

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(AT_ONCE)
        self._owners: dict[str | None, asyncio.Semaphore] = {}
        self._asking: Counter[str | None] = Counter()

    async def take(self, owner: str | None, work: Callable[[], T]) -> T:
        """What `work` gives, done in a thread once it is this owner's turn."""
        self._asking[owner] += 1
        mine = self._owners.setdefault(owner, asyncio.Semaphore(OF_ONE_OWNER))
        try:
            async with mine, self._all:
                return await run_in_threadpool(work)
        finally:
            self._asking[owner] -= 1
            if not self._asking[owner]:
                del self._asking[owner], self._owners[owner]
