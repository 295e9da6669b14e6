"""Requests that carry an Idempotency-Key: the first one works, the same one again gets the same answer."""

from __future__ import annotations

from typing import Any

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import IdempotencyKey, Json
from penstock.db.schema.tables import idempotency_keys


class Idempotency(Repository):
    def try_lock(self, scope: str, key: str) -> bool:
        """Hold the key until the transaction ends; False while another transaction holds it."""
        lock = func.pg_try_advisory_xact_lock(func.hashtextextended(f"{scope}\n{key}", 0))
        return bool(self.connection.execute(select(lock)).scalar())

    def begin(self, scope: str, key: str, request_hash: str) -> IdempotencyKey | None:
        """None if this request is the first: go on and `complete` it. Else what is known of the first one.

        In one transaction with the work, a crash takes the key back with it; a second request meanwhile
        waits for the first one's end.
        """
        row = {"scope": scope, "key": key, "request_hash": request_hash}
        statement = insert(idempotency_keys).values(row).on_conflict_do_nothing()
        # The driver gives no row count for an INSERT; a returned row says that it was new.
        if self.connection.execute(statement.returning(idempotency_keys.c.key)).first() is not None:
            return None
        where = (idempotency_keys.c.scope == scope, idempotency_keys.c.key == key)
        return self._first(IdempotencyKey, select(idempotency_keys).where(*where))

    def complete(self, scope: str, key: str, *, status: int, headers: Json, body: Any) -> None:
        where = (idempotency_keys.c.scope == scope, idempotency_keys.c.key == key)
        values = {"status": status, "headers": dict(headers), "body": body}
        self.connection.execute(update(idempotency_keys).where(*where).values(values))

    def forget(self, scope: str, key: str) -> None:
        """The first request failed before it changed anything: it may be made again."""
        where = (idempotency_keys.c.scope == scope, idempotency_keys.c.key == key)
        self.connection.execute(delete(idempotency_keys).where(*where))

    def expire(self, scope: str, key: str, hours: float = 24.0) -> None:
        """Forget this one key if it is older than the promise."""
        limit = func.now() - text(f"interval '{float(hours):.3f} hours'")
        where = (idempotency_keys.c.scope == scope, idempotency_keys.c.key == key)
        self.connection.execute(delete(idempotency_keys).where(*where, idempotency_keys.c.created_at < limit))

    def sweep(self, hours: float = 24.0) -> int:
        """Remove keys that are older than the promise to replay them."""
        limit = func.now() - text(f"interval '{float(hours):.3f} hours'")
        old = delete(idempotency_keys).where(idempotency_keys.c.created_at < limit)
        return self.connection.execute(old).rowcount
