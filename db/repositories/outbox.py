"""Steps on their way to the broker: a row lives exactly as long as its step is queued.

It is written in the transaction that queues the step, so no queued step is without one, but for the trials of a
paused run: theirs are written when it goes on. A published row stays until the claim, so a message that got lost can
be sent again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import delete, func, insert, select, text, update

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import OutboxEntry
from penstock.db.schema.tables import outbox

CHANNEL = "penstock_outbox"


class Outbox(Repository):
    def add(self, entries: Sequence[tuple[str, str]], delay_seconds: float = 0.0) -> None:
        """Have (step, queue) pairs published when the delay is over, and wake the dispatchers."""
        if not entries:
            return
        due = func.now() + text(f"interval '{float(delay_seconds):.3f} seconds'")
        rows = [{"step_id": step_id, "queue": queue} for step_id, queue in entries]
        self.connection.execute(insert(outbox).values(due_at=due), rows)
        self.connection.execute(select(func.pg_notify(CHANNEL, "")))

    def take(self, limit: int = 50) -> tuple[OutboxEntry, ...]:
        """Due entries that no other dispatcher holds, locked until the transaction ends."""
        statement = (
            select(outbox.c.id, outbox.c.step_id, outbox.c.queue)
            .where(outbox.c.published_at.is_(None), outbox.c.due_at <= func.now())
            .order_by(outbox.c.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        return self._all(OutboxEntry, statement)

    def mark_published(self, entries: Sequence[OutboxEntry]) -> None:
        ids = [entry.id for entry in entries]
        self.connection.execute(update(outbox).where(outbox.c.id.in_(ids)).values(published_at=func.now()))

    def remove(self, step_ids: Sequence[str]) -> None:
        """The steps are not queued any more."""
        self.connection.execute(delete(outbox).where(outbox.c.step_id.in_(step_ids)))

    def published_counts(self) -> dict[str, int]:
        """For each queue, how many messages ought to be with the broker or on their way to a worker."""
        statement = (
            select(outbox.c.queue, func.count()).where(outbox.c.published_at.is_not(None)).group_by(outbox.c.queue)
        )
        return self._pairs(statement)

    def republish(self, queue: str, count: int, age_seconds: float) -> int:
        """Have the `count` longest published entries of the queue sent again if they are old enough.

        The broker's list is first in, first out: the missing ones are the oldest.
        """
        limit = func.now() - text(f"interval '{float(age_seconds):.3f} seconds'")
        oldest = (
            select(outbox.c.id)
            .where(outbox.c.queue == queue, outbox.c.published_at < limit)
            .order_by(outbox.c.published_at, outbox.c.id)
            .limit(count)
            .with_for_update(skip_locked=True)
        )
        again = update(outbox).where(outbox.c.id.in_(oldest)).values(published_at=None)
        return self.connection.execute(again).rowcount
