"""What may go: runs and models by their age, content that nobody refers to, events and audit entries of long ago.

A row goes first and its content later: there is never a row whose content is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, func, null, select, text, true, union

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import Freed
from penstock.db.schema.states import RUN_TERMINAL
from penstock.db.schema.tables import (
    artifacts,
    attempts,
    audit,
    events,
    models,
    profile_citations,
    runs,
    step_edges,
    steps,
    trials,
)

_AT_ONCE = 10_000
CONTENT_LOCK = 0x636F6E74656E74  # "content"; a backup holds it shared

_WOULD_FREE = text("""
    WITH gone AS (SELECT unnest(CAST(:runs AS text[])) AS id), doomed AS (
        SELECT id FROM penstock.models AS m
        WHERE m.created_at < now() - make_interval(secs => CAST(:days AS float8) * 86400) AND NOT EXISTS (
            SELECT 1 FROM penstock.runs AS r WHERE r.model_id = m.id AND r.id NOT IN (SELECT id FROM gone)
        )
    ), content AS (
        SELECT sha256, size FROM penstock.artifacts WHERE run_id IN (SELECT id FROM gone)
        UNION
        SELECT sha256, size FROM penstock.models WHERE id IN (SELECT id FROM doomed) AND sha256 IS NOT NULL
    ), freed AS (
        SELECT sha256, max(size) AS size FROM content AS c
        WHERE NOT EXISTS (
            SELECT 1 FROM penstock.artifacts AS a WHERE a.sha256 = c.sha256 AND a.run_id NOT IN (SELECT id FROM gone)
        ) AND NOT EXISTS (
            SELECT 1 FROM penstock.models AS m WHERE m.sha256 = c.sha256 AND m.id NOT IN (SELECT id FROM doomed)
        ) GROUP BY sha256
    )
    SELECT (SELECT count(*) FROM doomed) AS models, (SELECT coalesce(sum(size), 0) FROM freed) AS bytes
""")


@dataclass(frozen=True)
class StoredRun:
    """A run and how much content it refers to."""

    id: str
    name: str
    owner: str | None
    pinned: bool
    finished_at: datetime | None
    bytes: int
    files: int


@dataclass(frozen=True)
class Stored:
    """What takes room: how many of them (None: it is one thing), and their bytes."""

    name: str
    count: int | None
    bytes: int


class Retention(Repository):
    def runs_over(self, days: float, limit: int) -> list[str]:
        """Runs that ended so long ago and that nobody pinned, the oldest first."""
        found = select(runs.c.id).where(*_over(days)).order_by(runs.c.id).limit(limit)
        return list(self.connection.execute(found).scalars())

    def would_free(self, run_ids: Sequence[str], days: float | None = None) -> Freed:
        """What the removal of these runs would take; with `days` also models of that age that no other run is of."""
        row = self.connection.execute(_WOULD_FREE, {"runs": list(run_ids), "days": days}).one()
        return Freed(len(run_ids), int(row.models), int(row.bytes))

    def largest(self, limit: int) -> tuple[StoredRun, ...]:
        """The runs that refer to the most content; what two of them share counts for both."""
        mine = artifacts.c.run_id == runs.c.id
        of_run = select(func.sum(artifacts.c.size).label("bytes"), func.count().label("files")).where(mine).lateral()
        columns = (runs.c.id, runs.c.name, runs.c.owner, runs.c.pinned, runs.c.finished_at)
        statement = select(*columns, of_run.c.bytes, of_run.c.files).join(of_run, true()).where(of_run.c.files > 0)
        found = self._all(StoredRun, statement.order_by(of_run.c.bytes.desc(), runs.c.id).limit(limit))
        return tuple(replace(run, bytes=int(run.bytes)) for run in found)

    def stored(self) -> tuple[Stored, ...]:
        """What the tables hold, each content counted once, and what the database itself takes."""
        each = select(artifacts.c.sha256, func.max(artifacts.c.size).label("size")).group_by(artifacts.c.sha256)
        content = each.subquery()
        sums = (
            ("content of runs", select(func.count(), func.coalesce(func.sum(content.c.size), 0))),
            ("models", select(func.count(), func.coalesce(func.sum(models.c.size), 0)).select_from(models)),
            ("database", select(null(), func.pg_database_size(func.current_database()))),
        )
        found = [(name, self.connection.execute(statement).one()) for name, statement in sums]
        return tuple(Stored(name, None if row[0] is None else int(row[0]), int(row[1])) for name, row in found)

    def delete_run(self, run_id: str) -> None:
        """The run with all that hangs on it, table by table: a cascade would look for each step by itself."""
        self.scope.require_lock(run_id)
        own = select(steps.c.id).where(steps.c.run_id == run_id)
        for table in (events, trials, artifacts, profile_citations):
            self.connection.execute(delete(table).where(table.c.run_id == run_id))
        for table in (attempts, step_edges):
            self.connection.execute(delete(table).where(table.c.step_id.in_(own)))
        self.connection.execute(delete(steps).where(steps.c.run_id == run_id))
        self.connection.execute(delete(runs).where(runs.c.id == run_id))

    def runs_of_model(self, model_id: str) -> int:
        return self.connection.execute(select(func.count()).where(runs.c.model_id == model_id)).scalar_one()

    def delete_model(self, model_id: str) -> None:
        self.connection.execute(delete(models).where(models.c.id == model_id))

    def delete_models_over(self, days: float) -> int:
        """Models of that age of which there is no run."""
        unused = ~exists().where(runs.c.model_id == models.c.id)
        doomed = select(models.c.id).where(models.c.created_at < _ago(days), unused)
        ids = self.connection.execute(doomed.with_for_update(skip_locked=True)).scalars().all()
        # locked by now, so that no run of one can begin; one may just have
        return self.connection.execute(delete(models).where(models.c.id.in_(ids), unused)).rowcount

    def lock_content(self) -> bool:
        """Until the transaction ends, whether content may be removed: not while a backup copies it."""
        return bool(self.connection.execute(select(func.pg_try_advisory_xact_lock(CONTENT_LOCK))).scalar_one())

    def needed(self, sha256s: Sequence[str]) -> set[str]:
        """Those contents that a row refers to."""
        rows = union(
            select(artifacts.c.sha256).where(artifacts.c.sha256.in_(sha256s)),
            select(models.c.sha256).where(models.c.sha256.in_(sha256s)),
        )
        return set(self.connection.execute(rows).scalars())

    def forget_events(self, days: float) -> int:
        """Remove events of runs that ended so long ago, a part at a time; how many went."""
        over = select(runs.c.id).where(runs.c.state.in_(RUN_TERMINAL), runs.c.finished_at < _ago(days))
        some = select(events.c.id).where(events.c.run_id.in_(over)).limit(_AT_ONCE)
        return self.connection.execute(delete(events).where(events.c.id.in_(some))).rowcount

    def forget_audit(self, days: float) -> int:
        some = select(audit.c.id).where(audit.c.at < _ago(days)).limit(_AT_ONCE)
        return self.connection.execute(delete(audit).where(audit.c.id.in_(some))).rowcount


def _over(days: float) -> tuple[ColumnElement[bool], ...]:
    return runs.c.state.in_(RUN_TERMINAL), ~runs.c.pinned, runs.c.finished_at < _ago(days)


def _ago(days: float) -> ColumnElement[object]:
    return func.now() - text(f"interval '{float(days) * 86400:.3f} seconds'")
