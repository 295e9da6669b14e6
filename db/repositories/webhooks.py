"""Webhooks, and what is to be sent to them: a delivery is written in the transaction that ends its run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, insert, or_, select, text, update

from penstock.db.repositories.base import Repository
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Delivery, DueDelivery, Page, Run, Webhook
from penstock.db.schema.tables import deliveries, webhooks

LEASE_SECONDS = 60.0
"""Longer than an attempt may take; whoever dies in one has it repeated after that, under the same id."""

_CLAIM = text("""
    UPDATE penstock.deliveries AS d SET attempts = attempts + 1, due_at = now() + make_interval(secs => :lease)
    FROM penstock.webhooks AS w
    WHERE w.id = d.webhook_id AND d.id IN (
        SELECT one.id FROM penstock.deliveries AS one JOIN penstock.webhooks AS hook ON hook.id = one.webhook_id
        WHERE one.state = 'pending' AND one.due_at <= now() AND hook.enabled
        ORDER BY one.due_at LIMIT :limit FOR UPDATE OF one SKIP LOCKED
    )
    RETURNING d.id, d.webhook_id, d.body, d.attempts, w.url, w.generation, w.rotated_at, now() AS now
""")


class Webhooks(Repository):
    def create(self, *, owner: str | None, everybody: bool, url: str, kinds: Sequence[str]) -> Webhook:
        row = {"id": new_id("whk"), "owner": owner, "everybody": everybody, "url": url, "kinds": list(kinds)}
        return self._only(Webhook, insert(webhooks).values(row).returning(webhooks))

    def get(self, webhook_id: str) -> Webhook | None:
        return self._first(Webhook, select(webhooks).where(webhooks.c.id == webhook_id))

    def list(self, *, owner: str | None = None, everybody: bool = False) -> tuple[Webhook, ...]:
        """An owner's, or everybody's."""
        statement = select(webhooks).order_by(webhooks.c.id)
        return self._all(Webhook, statement if everybody else statement.where(webhooks.c.owner == owner))

    def delete(self, webhook_id: str) -> None:
        self.connection.execute(delete(webhooks).where(webhooks.c.id == webhook_id))

    def rotate(self, webhook_id: str) -> Webhook:
        """Another secret; the one before is signed with for a while, too. Also switches it on again."""
        values = {"generation": webhooks.c.generation + 1, "rotated_at": func.now(), "enabled": True}
        changed = update(webhooks).where(webhooks.c.id == webhook_id).values(values | {"why_disabled": ""})
        return self._only(Webhook, changed.returning(webhooks))

    def disable(self, webhook_id: str, why: str) -> None:
        values = {"enabled": False, "why_disabled": why}
        self.connection.execute(update(webhooks).where(webhooks.c.id == webhook_id).values(values))

    def announce(self, run: Run) -> None:
        """Tell those who want to know that the run is over."""
        kind = f"run.{run.state}"
        wanted = select(webhooks.c.id).where(
            webhooks.c.enabled, webhooks.c.kinds.contains([kind]),
            or_(webhooks.c.everybody, webhooks.c.owner.is_not_distinct_from(run.owner)),
        )  # fmt: skip
        ids = self.connection.execute(wanted).scalars().all()
        data = {
            "run": run.id, "name": run.name, "state": run.state, "owner": run.owner, "model": run.model_id,
            "error": dict(run.error) if run.error else None, "summary": dict(run.summary), "url": f"/v1/runs/{run.id}",
        }  # fmt: skip
        for webhook_id in ids:
            self.send(webhook_id, kind, data)

    def send(self, webhook_id: str, kind: str, data: object) -> str:
        """Have something sent; the id of the delivery, which stays the same however often it is tried."""
        body = json.dumps({"type": kind, "timestamp": datetime.now(UTC).isoformat(), "data": data})
        row = {"id": new_id("msg"), "webhook_id": webhook_id, "kind": kind, "body": body}
        self.connection.execute(insert(deliveries).values(row))
        return row["id"]

    def claim_due(self, limit: int) -> tuple[DueDelivery, ...]:
        """Deliveries to be tried now; nobody else gets them for a while."""
        rows = self.connection.execute(_CLAIM, {"lease": LEASE_SECONDS, "limit": limit}).mappings()
        return tuple(DueDelivery(**row) for row in rows)

    def delivered(self, delivery_id: str, status: int) -> None:
        self._end(delivery_id, "delivered", status, "")

    def missed(self, delivery_id: str, status: int | None, problem: str, again_seconds: float | None) -> None:
        """It did not arrive: to be tried again, or given up."""
        if again_seconds is None:
            self._end(delivery_id, "failed", status, problem)
            return
        due = func.now() + func.make_interval(0, 0, 0, 0, 0, 0, again_seconds)
        values = {"status": status, "problem": problem, "due_at": due}
        self.connection.execute(update(deliveries).where(deliveries.c.id == delivery_id).values(values))

    def log(self, webhook_id: str, *, cursor: str | None = None, limit: int = 50) -> Page[Delivery]:
        """What was sent or is to be sent, the newest first."""
        return self._newest_first(Delivery, deliveries, [deliveries.c.webhook_id == webhook_id], cursor, limit)

    def sweep(self, days: float = 30.0) -> int:
        """Remove deliveries that ended long ago."""
        old = deliveries.c.finished_at < func.now() - func.make_interval(0, 0, 0, 0, 0, 0, days * 86400)
        return self.connection.execute(delete(deliveries).where(old)).rowcount

    def _end(self, delivery_id: str, state: str, status: int | None, problem: str) -> None:
        values = {"state": state, "status": status, "problem": problem, "finished_at": func.now()}
        self.connection.execute(update(deliveries).where(deliveries.c.id == delivery_id).values(values))
