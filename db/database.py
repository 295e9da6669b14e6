"""Connections and transactions. `with database.begin() as tx:` gives the repositories of one transaction."""

from __future__ import annotations

import os
import random
import select
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError, OperationalError, TimeoutError

from penstock.db.repositories.artifacts import Artifacts
from penstock.db.repositories.attempts import Attempts
from penstock.db.repositories.audit import Audit
from penstock.db.repositories.base import Scope
from penstock.db.repositories.events import Events
from penstock.db.repositories.idempotency import Idempotency
from penstock.db.repositories.models import Models
from penstock.db.repositories.pace import Pace
from penstock.db.repositories.profiles import Profiles
from penstock.db.repositories.queues import Queues
from penstock.db.repositories.retention import Retention
from penstock.db.repositories.rung_pairs import RungPairs
from penstock.db.repositories.runs import Runs
from penstock.db.repositories.sessions import Sessions
from penstock.db.repositories.shares import Shares
from penstock.db.repositories.step_logs import StepLogs
from penstock.db.repositories.steps import Steps
from penstock.db.repositories.tokens import Tokens
from penstock.db.repositories.trial_pages import TrialPages
from penstock.db.repositories.trials import Trials
from penstock.db.repositories.views import Views
from penstock.db.repositories.webhooks import Webhooks
from penstock.db.schema.tables import STUDY_SCHEMA

T = TypeVar("T")

# A lock that cannot be had in ten seconds, or a transaction left open for two minutes, is a bug or a dead
# client: an error is better than a service that stands still.
_SESSION = "-c lock_timeout=10s -c idle_in_transaction_session_timeout=120s -c timezone=UTC"
# A network that is cut says nothing: without these a worker would wait for an answer for a quarter of an hour.
_KEEPALIVE = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
_RETRYABLE_CODES = ("40001", "40P01")  # serialisation failure, deadlock


class Transaction:
    """All repositories on one connection; committed when its `with` block ends without an exception."""

    def __init__(self, connection: Connection, actor: str | None = None) -> None:
        self.connection = connection
        scope = Scope(connection, actor)
        self.tokens = Tokens(scope)
        self.sessions = Sessions(scope)
        self.audit = Audit(scope)
        self.models = Models(scope)
        self.runs = Runs(scope)
        self.steps = Steps(scope)
        self.step_logs = StepLogs(scope)
        self.views = Views(scope)
        self.attempts = Attempts(scope)
        self.queues = Queues(scope)
        self.shares = Shares(scope)
        self.artifacts = Artifacts(scope)
        self.trials = Trials(scope)
        self.trial_pages = TrialPages(scope)
        self.profiles = Profiles(scope)
        self.rung_pairs = RungPairs(scope)
        self.pace = Pace(scope)
        self.retention = Retention(scope)
        self.webhooks = Webhooks(scope)
        self.events = Events(scope)
        self.idempotency = Idempotency(scope)

    def now(self) -> datetime:
        """The time by which all decide what has run out: clocks of hosts differ, and jump."""
        return self.connection.execute(text("SELECT now()")).scalar_one()

    def revision(self) -> str:
        """The schema that the database has, as the number of its last migration."""
        return self.connection.execute(text("SELECT version_num FROM penstock.alembic_version")).scalar_one()


class Database:
    """One Postgres. Safe to share between threads; a forked process must make its own."""

    def __init__(self, url: str, *, application: str = "penstock", pool_size: int = 5) -> None:
        self.url = normalise(url)
        self._pid = os.getpid()
        self._application = application
        self._pool_size = pool_size

    @cached_property
    def engine(self) -> Engine:
        made = create_engine(
            self.url,
            pool_size=self._pool_size,
            max_overflow=self._pool_size,
            pool_timeout=15,
            connect_args={
                "connect_timeout": 5,
                "application_name": self._application,
                "options": _SESSION,
                **_KEEPALIVE,
            },
        )
        event.listen(made, "checkout", _refuse_dead)
        event.listen(made, "handle_error", _renew_after_migration)
        return made

    @contextmanager
    def begin(self, actor: str | None = None) -> Iterator[Transaction]:
        """A transaction; the events that it writes name the actor."""
        if os.getpid() != self._pid:
            raise RuntimeError("a Database was carried over a fork; make one in the new process")
        with self.engine.begin() as connection:
            yield Transaction(connection, actor)

    @contextmanager
    def at_once(self) -> Iterator[Transaction]:
        """For a single statement: it is its own transaction, which saves the two questions that begin and end one."""
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            yield Transaction(connection)

    def run(self, work: Callable[[Transaction], T], *, patience: float = 30.0) -> T:
        """Do `work` in a transaction, again and again while the database is away, for `patience` seconds.

        A connection that breaks during the commit leaves it open whether the commit happened, so `work`
        must be right to do twice: guarded transitions are, plain inserts without a key are not.
        """
        deadline = time.monotonic() + patience
        pause = 0.05
        while True:
            try:
                with self.begin() as tx:
                    return work(tx)
            except (OperationalError, InterfaceError, TimeoutError, DBAPIError) as error:
                if not is_transient(error) or time.monotonic() + pause > deadline:
                    raise
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, 2.0)

    def is_up(self) -> bool:
        """Whether Postgres answers now."""
        try:
            with self.engine.connect() as connection:
                connection.execute(text("SELECT 1"))
        except (OperationalError, InterfaceError, TimeoutError):
            return False
        return True

    def quiet_seconds(self, application: str) -> float | None:
        """For how long no program of that name has asked anything; None where none is connected."""
        asked = text(
            "SELECT EXTRACT(EPOCH FROM clock_timestamp() - max(state_change)) FROM pg_stat_activity "
            "WHERE application_name = :name AND datname = current_database()"
        )
        with self.engine.connect() as connection:
            found = connection.execute(asked, {"name": application}).scalar_one()
        return None if found is None else float(found)

    def study_url(self) -> str:
        """The URL for Optuna's storage: the same database, in a schema of its own."""
        url = make_url(self.url)
        options = f"-csearch_path={STUDY_SCHEMA} -ctimezone=UTC"
        return url.update_query_dict({"options": options}).render_as_string(hide_password=False)

    def close(self) -> None:
        if "engine" in self.__dict__:
            self.engine.dispose()


def _refuse_dead(connection: Any, *_: object) -> None:
    """A connection from before a restart of Postgres is replaced unseen.

    Nothing comes from a server that was asked nothing, but that it ends: a look at the socket is a thousandth of a
    question, which every transaction would have to wait for.
    """
    try:
        waiting = select.poll()  # not select.select, which knows no file beyond the thousandth
        waiting.register(connection.fileno(), select.POLLIN)
        ended = bool(waiting.poll(0))
    except (OSError, ValueError, psycopg.Error):
        ended = True
    if ended:
        raise DisconnectionError


def _renew_after_migration(met: ExceptionContext) -> None:
    """A table that has another column now breaks every statement that a connection had prepared before, for good: such
    a connection is dead too. A newer version migrates while programs of this one end what they had begun."""
    error = met.original_exception
    if isinstance(error, psycopg.Error) and error.diag.source_function == "RevalidateCachedQuery":
        met.is_disconnect = True


def normalise(url: str) -> str:
    """The same URL with the driver named: libpq's own form, postgresql://…, is what people write."""
    parsed: URL = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    return parsed.render_as_string(hide_password=False)


def is_transient(error: BaseException) -> bool:
    """Whether the same work may succeed later: the server is away, or a lock cycle was broken."""
    if isinstance(error, TimeoutError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in _RETRYABLE_CODES:
        return True
    return isinstance(error, OperationalError | InterfaceError)
