"""Wakes event streams and long polls: one small query a tick serves all runs that anybody waits for.

Within a run, event ids rise in the order of commits, so the newest id of each run is all there is to watch.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool

from penstock.db import Database
from penstock.services.api.answers.problems import Problem

TICK_SECONDS = 0.4


class EventHub:
    """Lives on one event loop; its task runs only while somebody waits."""

    def __init__(self, database: Database, max_streams: int) -> None:
        self._database = database
        self._max_streams = max_streams
        self._waiting: Counter[str] = Counter()
        self._newest: dict[str, int] = {}
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._closed = False

    def enter(self, run_id: str) -> Callable[[], None]:
        """Counts a listener of the run until the returned function is called; refuses one too many.

        Counted here and now, while the answer can still be a problem document, so that no two take the last place.
        """
        if self._waiting.total() >= self._max_streams:
            raise Problem(
                "too-many-streams",
                "too many event streams and long polls are open",
                limit=f"at most {self._max_streams} at once",
                hint="close some, or ask without `wait`",
                headers={"Retry-After": "5"},
            )

        self._waiting[run_id] += 1
        if self._task is None or self._task.done():
            self._failure = None
            self._task = asyncio.create_task(self._poll())
        left = False

        def leave() -> None:
            nonlocal left
            if left:
                return
            left = True
            self._waiting[run_id] -= 1
            if not self._waiting[run_id]:
                del self._waiting[run_id]
                self._newest.pop(run_id, None)

        return leave

    @property
    def listeners(self) -> int:
        return self._waiting.total()

    async def newer(self, run_id: str, after: int, timeout: float) -> bool:
        """Waits until the run has an event after `after`; False if the time is over, or the service stops."""

        def happened() -> bool:
            return self._closed or self._failure is not None or self._newest.get(run_id, 0) > after

        try:
            async with asyncio.timeout(timeout), self._changed:
                await self._changed.wait_for(happened)
        except TimeoutError:
            return False
        if self._failure is not None:
            raise self._failure
        return not self._closed

    async def close(self) -> None:
        """Lets every waiter go: the process is about to end."""
        self._closed = True
        async with self._changed:
            self._changed.notify_all()
        if self._task is not None:
            self._task.cancel()

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def _poll(self) -> None:
        try:
            while self._waiting and not self._closed:
                newest = await run_in_threadpool(self._query, list(self._waiting))
                async with self._changed:
                    self._newest.update({run: last for run, last in newest.items() if run in self._waiting})
                    self._changed.notify_all()
                await asyncio.sleep(TICK_SECONDS)
        except Exception as error:  # noqa: BLE001 - every waiter raises it
            # Handed to every waiter, whose request then answers 503; the next waiter starts the task again.
            self._failure = error
            async with self._changed:
                self._changed.notify_all()

    def _query(self, run_ids: list[str]) -> dict[str, int]:
        with self._database.begin() as tx:
            return tx.events.newest_ids(run_ids)
