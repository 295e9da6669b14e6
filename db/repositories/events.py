"""What happened, in order: append-only, one row a transition or a notice."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import false, func, insert, select

from penstock.db.repositories.base import MAX_PAGE, Repository
from penstock.db.schema.records import Event, Json
from penstock.db.schema.tables import events


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

    def newest_ids(self, run_ids: Sequence[str]) -> dict[str, int]:
        """The greatest id so far of each of the runs that has events: what many listeners share."""
        statement = (
            select(events.c.run_id, func.max(events.c.id).label("newest"))
            .where(events.c.run_id.in_(run_ids))
            .group_by(events.c.run_id)
        )
        rows = self.connection.execute(statement)
        return {row.run_id: row.newest for row in rows}

    def newest_id(self, run_id: str | None = None) -> int:
        """The greatest id so far, of one run or of all; 0 if there is none."""
        statement = select(func.coalesce(func.max(events.c.id), 0))
        if run_id:
            statement = statement.where(events.c.run_id == run_id)
        return self.connection.execute(statement).scalar_one()
