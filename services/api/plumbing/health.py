"""Whether the service can do its work: database, broker, workers, queues, disk, each looked at by itself.

The broker and the workers are asked in a thread of their own every few seconds, so that asking for health is
cheap however often it is done, and a broker that hangs delays nobody.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.exc import ProgrammingError, SQLAlchemyError

from penstock.db import Database
from penstock.db.schema.revision import newest_revision
from penstock.services.api.answers.health import HealthOut, PartHealth, QueueHealth, WorkerHealth
from penstock.services.api.plumbing.context import Context
from penstock.services.version import version
from penstock.services.worker.sign_of_life import Sign

LOOK_EVERY_SECONDS = 2.0
IDLE_AFTER_SECONDS = 60.0
STARTING_SECONDS = 30.0


@dataclass(frozen=True)
class HealthLook:
    """What one look at the broker found; `problem` is empty if it answered."""

    problem: str
    workers: tuple[Sign, ...]


class BrokerWatch:
    """Keeps the last look at the broker fresh while somebody asks for it."""

    def __init__(self, look: Callable[[], HealthLook]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._found = HealthLook("has not answered yet", ())
        self._asked_at = 0.0
        self._first = threading.Event()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._made_at = time.monotonic()
        self._saw_workers = False

    def is_young(self) -> bool:
        """Whether so little time has passed since this process began that workers may just not be there yet."""
        return not self._saw_workers and time.monotonic() - self._made_at < STARTING_SECONDS

    def note_workers(self) -> None:
        """Some were there: from now on, none is a fault."""
        self._saw_workers = True

    def latest(self) -> HealthLook:
        """The last look; the first call waits a moment for one."""
        with self._lock:
            self._asked_at = time.monotonic()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="broker-watch", daemon=True)
                self._thread.start()
        self._first.wait(1.0)
        with self._lock:
            return self._found

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=3.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            found = self._look()
            with self._lock:
                self._found = found
                idle = time.monotonic() - self._asked_at > IDLE_AFTER_SECONDS
                if idle:
                    self._thread = None
            self._first.set()
            if idle:
                return
            self._stop.wait(LOOK_EVERY_SECONDS)


def check(context: Context, broker: BrokerWatch, *, in_full: bool) -> HealthOut:
    """The health of the service; names of workers only `in_full`, for callers who may know them."""
    database, queues, leases = _database(context.database)
    look = broker.latest()
    workers = _workers(look.workers, leases)
    if any(worker.alive for worker in workers):
        broker.note_workers()
    disk = _disk(context)
    alive = sum(worker.alive for worker in workers)
    parts = (database.status, "down" if look.problem else "ok", disk.status)
    status = "down" if database.status == "down" else "ok"
    if status == "ok" and (not alive or any(part != "ok" for part in parts)):
        status = "starting" if broker.is_young() and disk.status == "ok" else "degraded"
    return HealthOut(
        status=status,
        version=version(),
        auth="tokens" if context.options.auth else "off: whoever reaches this address may do everything",
        database=database,
        broker=PartHealth(status="down" if look.problem else "ok", detail=look.problem or "answers"),
        disk=disk,
        workers_alive=alive,
        workers=workers if in_full else [],
        queues=queues if in_full else [],
        python_models=context.settings.allow_python_models,
    )


def workers_of(database: Database, look: HealthLook) -> list[WorkerHealth]:
    """Everybody who works here, by their signs of life or by their leases."""
    _, _, leases = _database(database)
    return _workers(look.workers, leases)


def schema_problem(database: Database) -> str:
    """Why this process should not be asked although the database answers; empty if there is no reason."""
    try:
        with database.begin() as tx:
            found = tx.revision()
    except ProgrammingError:
        return "has no schema yet"
    except SQLAlchemyError:
        return "does not answer"
    known = newest_revision()
    return f"has schema {found}, and this version knows none after {known}" if found > known else ""


def _database(database: Database) -> tuple[PartHealth, list[QueueHealth], dict[str, tuple[int, datetime]]]:
    started = time.perf_counter()
    if problem := schema_problem(database):
        return PartHealth(status="down", detail=problem), [], {}
    try:
        with database.begin() as tx:
            waiting = tx.queues.depths()
            running = tx.queues.running()
            leases = tx.steps.running_by_worker()
    except SQLAlchemyError:
        return PartHealth(status="down", detail="does not answer"), [], {}
    queues = [
        QueueHealth(name=name, waiting=waiting.get(name, 0), running=running.get(name, 0))
        for name in sorted(waiting.keys() | running.keys())
    ]
    detail = f"answers in {(time.perf_counter() - started) * 1000:.0f} ms"
    return PartHealth(status="ok", detail=detail), queues, leases


def _workers(signs: tuple[Sign, ...], leases: dict[str, tuple[int, datetime]]) -> list[WorkerHealth]:
    """Workers by their signs of life. While the broker is away, good leases show that some are at work."""
    found = [
        WorkerHealth(
            name=sign.name,
            queues=list(sign.queues),
            concurrency=sign.concurrency,
            last_sign_of_life=sign.seen_at,
            alive=sign.alive,
            drains=sign.drains,
        )
        for sign in signs
    ]
    if not any(worker.alive for worker in found):
        now = datetime.now(UTC)
        found += [
            WorkerHealth(
                name=name, queues=[], concurrency=count, last_sign_of_life=min(until, now), alive=True, drains=False
            )
            for name, (count, until) in sorted(leases.items())
            if until > now
        ]
    return found


def _disk(context: Context) -> PartHealth:
    try:
        free = shutil.disk_usage(context.settings.home).free
    except OSError as error:
        return PartHealth(status="down", detail=f"the data folder cannot be read: {error.strerror}")
    detail = f"{free / 1e9:.1f} GB free"
    if free < context.settings.work_disk_bytes:
        least = f"less than the {context.settings.work_disk_bytes / 1e9:.1f} GB without which no step is begun"
        return PartHealth(status="down", detail=f"{detail}, {least}; nothing is lost")
    if free < context.options.low_disk_bytes:
        return PartHealth(status="warning", detail=f"{detail}: nothing new is taken in")
    return PartHealth(status="ok", detail=detail)
