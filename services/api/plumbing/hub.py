"""Wakes event streams and long polls: one small query a tick serves all runs that anybody waits for.

Within a run, event ids rise in the order of commits, so a process that has read up to one id need only ask for what
comes after it, once for all who follow the run. What came is kept for a while as it is sent: a thousand who watch one
run cost one look at the database and one encoding of each event.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from penstock.db import Database
from penstock.db.repositories.events import WrittenEvent
from penstock.services.api.answers.problems import Problem
from penstock.services.jobs.quotas import most_of_one

TICK_SECONDS = 0.15
DELETED_SECONDS = 10.0
"""Between two looks whether runs were deleted, which is no event: one for all of them, however many follow them."""
BATCH = 2000
"""Events that one question brings. On a busy machine the way to the database and back is what takes time: the fewer
questions about what a run tells in a moment, the sooner it is told."""
_KEPT, _KEPT_IN_ALL = 2 * BATCH, 100_000
"""Messages of a run, and of all runs that are followed: about 350 bytes each."""


@dataclass(frozen=True)
class News:
    """What a stream sends next: messages as they go out, the id of the last, and whether the run is over with it."""

    text: str
    last: int
    over: bool
    more: bool = False
    """The database has more for certain, or may have."""


@dataclass
class _Watched:
    """A run that somebody follows: all its events after `first`, as messages, and who waits for the next."""

    first: int
    newest: int
    messages: deque[tuple[int, str]] = field(default_factory=deque[tuple[int, str]])
    over: bool = False
    gone: bool = False
    """It was deleted."""
    waiting: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])

    def add(self, event: WrittenEvent, message: str, most: int) -> None:
        self.messages.append((event.id, message))
        self.newest, self.over = event.id, event.over
        while len(self.messages) > most:
            self.first = self.messages.popleft()[0]

    def wake(self) -> None:
        for future in self.waiting:
            if not future.done():
                future.set_result(None)
        self.waiting.clear()


class EventHub:
    """Lives on one event loop; its task runs only while somebody waits. `write` makes an event a message."""

    def __init__(self, database: Database, max_streams: int, write: Callable[[WrittenEvent], str]) -> None:
        self._database = database
        self._max_streams = max_streams
        self._write = write
        self._listeners: Counter[str] = Counter()
        self._owners: Counter[str] = Counter()
        self._watched: dict[str, _Watched] = {}
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._closed = False

    def enter(self, run_id: str, last: int, owner: str | None = None) -> Callable[[], None]:
        """Counts a listener, who knows the run's events up to `last`, until the returned function is called.

        Refuses one too many, and of one owner before that; here and now, while the answer can still be a problem
        document, so that no two take the last place.
        """
        of_one = most_of_one(self._max_streams)
        own = self._owners[owner] if owner is not None else 0
        if self._listeners.total() >= self._max_streams or own >= of_one:
            raise Problem(
                "too-many-streams",
                "too many event streams and long polls are open" + (f", {own} of them yours" if owner else ""),
                limit=f"at most {self._max_streams} at once" + (f", and {of_one} of one owner" if owner else ""),
                hint="close some, or ask without `wait`",
                headers={"Retry-After": "5"},
            )

        self._listeners[run_id] += 1
        if owner is not None:
            self._owners[owner] += 1
        if run_id not in self._watched:
            self._watched[run_id] = _Watched(first=last, newest=last)
        if self._task is None or self._task.done():
            self._failure = None
            self._task = asyncio.create_task(self._poll())
        left = False

        def leave() -> None:
            nonlocal left
            if left:
                return
            left = True
            if owner is not None:
                self._owners[owner] -= 1
                if not self._owners[owner]:
                    del self._owners[owner]
            self._listeners[run_id] -= 1
            if not self._listeners[run_id]:
                del self._listeners[run_id]
                del self._watched[run_id]

        return leave

    @property
    def listeners(self) -> int:
        return self._listeners.total()

    async def newer(self, run_id: str, after: int, timeout: float) -> bool:
        """Waits until the run has an event after `after`; False if the time is over, or the service stops.

        The caller has entered, and leaves when it has what it wants.
        """
        watched = self._watched[run_id]
        loop = asyncio.get_running_loop()
        end = loop.time() + timeout
        while watched.newest <= after and not (watched.gone or self._closed) and self._failure is None:
            future: asyncio.Future[None] = loop.create_future()
            watched.waiting.add(future)
            try:
                await asyncio.wait_for(future, max(0.0, end - loop.time()))
            except TimeoutError:
                return False
            finally:
                watched.waiting.discard(future)
        if self._failure is not None:
            raise self._failure
        return not self._closed

    def news(self, run_id: str, after: int) -> News | None:
        """What came after an id, as far as it is kept; None where the database has to be asked."""
        watched = self._watched[run_id]
        if after < watched.first:
            return None
        found: list[tuple[int, str]] = []
        for number, message in reversed(watched.messages):
            if number <= after:
                break
            found.append((number, message))
        if not found:
            return News("", after, over=watched.gone)
        return News("".join(message for _, message in reversed(found)), found[0][0], watched.over)

    async def close(self) -> None:
        """Lets every waiter go: the process is about to end."""
        self._closed = True
        self._wake_all()
        if self._task is not None:
            self._task.cancel()

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def _poll(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            look_at = loop.time() + DELETED_SECONDS
            while self._listeners and not self._closed:
                if loop.time() >= look_at:
                    self._let_go(await run_in_threadpool(self._missing, list(self._watched)))
                    look_at = loop.time() + DELETED_SECONDS
                known = {run_id: watched.newest for run_id, watched in self._watched.items()}
                found = await run_in_threadpool(self._query, known)
                if not self._take(found):
                    await asyncio.sleep(TICK_SECONDS)
        except Exception as error:  # noqa: BLE001 - every waiter raises it
            # Handed to every waiter, whose request then answers 503; the next waiter starts the task again.
            self._failure = error
            self._wake_all()

    def _take(self, found: Sequence[tuple[WrittenEvent, str]]) -> bool:
        """Keep what came and wake who waits for it; whether there may be more already."""
        count: Counter[str] = Counter()
        most = min(_KEPT, _KEPT_IN_ALL // max(1, len(self._watched)))
        for event, message in found:
            watched = self._watched.get(event.run_id)
            if watched is not None and event.id > watched.newest:
                watched.add(event, message, most)
                count[event.run_id] += 1
        for run_id in count:
            self._watched[run_id].wake()
        return any(events >= BATCH for events in count.values())

    def _let_go(self, deleted: set[str]) -> None:
        for run_id in deleted & self._watched.keys():
            self._watched[run_id].gone = True
            self._watched[run_id].wake()

    def _wake_all(self) -> None:
        for watched in self._watched.values():
            watched.wake()

    def _missing(self, run_ids: Sequence[str]) -> set[str]:
        with self._database.at_once() as tx:
            return tx.runs.missing(run_ids)

    def _query(self, known: dict[str, int]) -> list[tuple[WrittenEvent, str]]:
        with self._database.at_once() as tx:
            found = tx.events.since(known, BATCH)
        return [(event, self._write(event)) for event in found]
