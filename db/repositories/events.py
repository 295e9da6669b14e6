"""What happened, in order: append-only, one row a transition or a notice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import false, func, insert, select, text

from penstock.db.repositories.base import MAX_PAGE, Repository
from penstock.db.repositories.step_moves import TELL_CREATED
from penstock.db.schema.records import Event, Json
from penstock.db.schema.states import RUN_TERMINAL
from penstock.db.schema.tables import events

_SINCE = text("""
    SELECT e.id, e.run_id, e.kind, e.at, CAST(e.data AS text), e.actor,
        r.state = ANY(:over) AND e.id = (SELECT max(id) FROM penstock.events WHERE run_id = r.id)
    FROM unnest(CAST(:runs AS text[]), CAST(:lasts AS bigint[])) AS known (run_id, last)
    JOIN penstock.runs r ON r.id = known.run_id
    CROSS JOIN LATERAL (
        SELECT * FROM penstock.events WHERE run_id = known.run_id AND id > known.last ORDER BY id LIMIT :each
    ) e ORDER BY e.run_id, e.id
""")


@dataclass(frozen=True, slots=True)
class WrittenEvent:
    """An event as streams send it on, its data as the JSON text that the database has: nobody here looks into them."""

    id: int
    run_id: str
    kind: str
    at: datetime
    data: str
    actor: str | None
    over: bool
    """Whether it is the last one of a run that is over."""


class Events(Repository):
    def add(self, run_id: str, kind: str, data: Json) -> None:
        self.add_many(run_id, [(kind, data)])

    def add_many(self, run_id: str, entries: Sequence[tuple[str, Json]]) -> None:
        """Append under the run's lock, so that a reader who follows ids never misses a late commit."""
        self.scope.require_lock(run_id)
        rows = [
            {"run_id": run_id, "kind": kind, "data": dict(data), "actor": self.scope.actor} for kind, data in entries
        ]
        if rows:
            self.connection.execute(insert(events), rows)

    def add_created(self, run_id: str, step_ids: Sequence[str]) -> None:
        """Tell of new steps, in their order."""
        self.scope.require_lock(run_id)
        self.connection.execute(TELL_CREATED, {"steps": list(step_ids), "actor": self.scope.actor})

    def after(self, run_id: str, last_id: int = 0, limit: int = MAX_PAGE) -> tuple[Event, ...]:
        """The run's events with a greater id, oldest first: what Last-Event-ID asks for."""
        statement = select(events).where(events.c.run_id == run_id, events.c.id > last_id)
        return self._all(Event, statement.order_by(events.c.id).limit(limit))

    def newest(
        self, run_id: str, limit: int, *, without: Sequence[str] = (), ordinary: Sequence[str] = (), of: str = ""
    ) -> tuple[Event, ...]:
        """The last events of the run, oldest first: the end of its log.

        Left out are those `without` worth to people, and the `ordinary` ones of steps whose keys begin with `of`.
        """
        statement = select(events).where(events.c.run_id == run_id, events.c.kind.not_in(without))
        if of:
            own = events.c.data["key"].astext.startswith(of, autoescape=True)
            statement = statement.where(~(events.c.kind.in_(ordinary) & func.coalesce(own, false())))
        statement = statement.order_by(events.c.id.desc()).limit(limit)
        return tuple(reversed(self._all(Event, statement)))

    def since(self, known: Mapping[str, int], each: int) -> list[WrittenEvent]:
        """For each run what came after an id, in order."""
        asked = {"runs": list(known), "lasts": list(known.values()), "each": each, "over": list(RUN_TERMINAL)}
        cursor = self.connection.execute(_SINCE, asked).cursor
        assert cursor is not None, "a SELECT has rows"
        return [WrittenEvent(*row) for row in cursor.fetchall()]

    def newest_id(self, run_id: str | None = None) -> int:
        """The greatest id so far, of one run or of all; 0 if there is none."""
        statement = select(func.coalesce(func.max(events.c.id), 0))
        if run_id:
            statement = statement.where(events.c.run_id == run_id)
        return self.connection.execute(statement).scalar_one()
