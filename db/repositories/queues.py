"""Which step a free worker gets: nothing is handed out before a worker asks, so that every choice is made late.

Owners share the workers, and each owner's runs share what the owner has. Who has the fewest steps running comes
first; of equals, who has used the least time. Whoever begins anew starts where the least served one is: nobody saves
up a share by being idle, and nobody has to wait for another's past.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, and_, func, literal_column, or_, select, text

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import Step
from penstock.db.schema.states import RUN_GOING, StepState
from penstock.db.schema.tables import runs, steps

HELD_BY_PAUSE = ("trial",)
"""Kinds of steps that a paused run does not start."""

# Running steps are counted in the queues that the worker could serve instead. Written out: it is asked at every claim.
_NEXT_RUN = text("""
    WITH busy AS (
        SELECT run_id, count(*) AS steps FROM penstock.steps
        WHERE state = 'running' AND queue = ANY(:queues) GROUP BY run_id
    ), of_owner AS (
        SELECT coalesce(r.owner, '') AS owner, sum(busy.steps) AS steps
        FROM busy JOIN penstock.runs r ON r.id = busy.run_id GROUP BY 1
    )
    SELECT r.id FROM penstock.runs r
    LEFT JOIN busy ON busy.run_id = r.id
    LEFT JOIN of_owner ON of_owner.owner = coalesce(r.owner, '')
    LEFT JOIN penstock.shares share ON share.owner = coalesce(r.owner, '')
    WHERE r.state IN ('queued', 'running') AND EXISTS (
        SELECT FROM penstock.steps s
        WHERE s.run_id = r.id AND s.state = 'queued' AND s.due_at <= now() AND s.queue = ANY(:queues)
        AND NOT (r.paused AND s.kind = ANY(:held))
        AND (s.licence IS NULL OR s.licence <> ALL(CAST(:taken AS text[])))
        OFFSET 0
    )
    ORDER BY
        coalesce(of_owner.steps, 0), coalesce(share.used, 0), coalesce(r.owner, ''),
        r.priority DESC, coalesce(busy.steps, 0), r.used, r.id
    LIMIT 1
""")

CHANNEL = "penstock_queued"


@dataclass(frozen=True)
class Wanted:
    """What a worker asks for: steps of its queues, but none that needs one of these licences."""

    queues: Sequence[str]
    taken_licences: Sequence[str] = ()


@dataclass(frozen=True)
class Portion:
    """How many steps of a run a worker takes at once: several only of a kind that is known to take no time."""

    kind: str = ""
    most: int = 1


@dataclass(frozen=True)
class QueueAge:
    """How many steps of a queue wait, and since when the oldest of them could have been done."""

    queue: str
    waiting: int
    oldest: datetime


class Queues(Repository):
    def announce(self) -> None:
        """Wake the dispatchers when this transaction is committed."""
        self.connection.execute(select(func.pg_notify(CHANNEL, "")))

    def next_run(self, wanted: Wanted) -> str | None:
        """The run whose step is to be done next; not locked, so look again once it is."""
        given = {
            "queues": list(wanted.queues), "taken": list(wanted.taken_licences), "held": list(HELD_BY_PAUSE)
        }  # fmt: skip
        return self.connection.execute(_NEXT_RUN, given).scalar()

    def held_by(self, worker: str) -> tuple[Step, ...]:
        """What a claim under this name got already: its commit was answered by a broken connection."""
        mine = (steps.c.owner == worker, steps.c.state == StepState.RUNNING)
        return self._all(Step, select(steps).where(*mine).order_by(steps.c.id))

    def ready(self, most: Mapping[str, int], taken_licences: Sequence[str] = ()) -> dict[str, int]:
        """How many steps of each queue a worker could claim now, counted up to so many."""
        found: dict[str, int] = {}
        for queue, limit in most.items():
            some = (
                select(steps.c.id)
                .join(runs, runs.c.id == steps.c.run_id)
                .where(runs.c.state.in_(RUN_GOING), *claimable(Wanted((queue,), taken_licences)))
                .limit(limit)
                .subquery()
            )
            found[queue] = self.connection.execute(select(func.count()).select_from(some)).scalar_one()
        return found

    def licences_in_use(self) -> dict[str, int]:
        """For each licence that running steps hold, how many of it."""
        held = (steps.c.state == StepState.RUNNING, steps.c.licence.is_not(None))
        return self._pairs(select(steps.c.licence, func.count()).where(*held).group_by(steps.c.licence))

    def lock_licences(self) -> None:
        """Let one claim at a time count licences, until the transaction ends."""
        self.connection.execute(select(func.pg_advisory_xact_lock(_LICENCES)))

    def depths(self) -> dict[str, int]:
        """How many steps wait in each queue."""
        statement = select(steps.c.queue, func.count()).where(steps.c.state == StepState.QUEUED).group_by(steps.c.queue)
        return self._pairs(statement)

    def ages(self) -> tuple[QueueAge, ...]:
        """What waits in each queue although it is due and nobody holds it back."""
        statement = (
            select(steps.c.queue, func.count().label("waiting"), func.min(steps.c.queued_at).label("oldest"))
            .join(runs, runs.c.id == steps.c.run_id)
            .where(runs.c.state.in_(RUN_GOING), *_due())
            .group_by(steps.c.queue)
        )
        return self._all(QueueAge, statement)

    def running(self) -> dict[str, int]:
        """How many steps of each queue are being worked on."""
        statement = (
            select(steps.c.queue, func.count()).where(steps.c.state == StepState.RUNNING).group_by(steps.c.queue)
        )
        return self._pairs(statement)


_LICENCES = 0x6C6963656E636573  # "licences"


def owner_of(table: Any) -> ColumnElement[str]:
    """Where nobody is asked for a token, all runs belong to one nameless owner."""
    return func.coalesce(table.c.owner, literal_column("''"))


def claimable(wanted: Wanted) -> tuple[ColumnElement[bool], ...]:
    """What makes a step of a going run one that this worker may take now."""
    free = or_(steps.c.licence.is_(None), steps.c.licence.not_in(wanted.taken_licences))
    return (*_due(), steps.c.queue.in_(wanted.queues), *((free,) if wanted.taken_licences else ()))


def _due() -> tuple[ColumnElement[bool], ...]:
    held = and_(runs.c.paused, steps.c.kind.in_(HELD_BY_PAUSE))
    return (steps.c.state == StepState.QUEUED, steps.c.due_at <= func.now(), ~held)
