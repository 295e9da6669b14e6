"""The audit log: who asked for which change, from where, and how it ended. Rows are added, never changed."""

from __future__ import annotations

from sqlalchemy import insert

from penstock.db.repositories.base import Repository, number_cursor
from penstock.db.schema.records import AuditEntry, Page
from penstock.db.schema.tables import audit


class Audit(Repository):
    def add(
        self,
        *,
        actor: str,
        action: str,
        target: str,
        token_id: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        client: str | None = None,
    ) -> None:
        row = {
            "actor": actor, "action": action, "target": target, "token_id": token_id, "status": status,
            "request_id": request_id, "client": client,
        }  # fmt: skip
        self.connection.execute(insert(audit).values(row))

    def list(self, *, cursor: str | None = None, limit: int = 50, actor: str | None = None) -> Page[AuditEntry]:
        """The newest first."""
        statement = audit.select().order_by(audit.c.id.desc())
        if actor is not None:
            statement = statement.where(audit.c.actor == actor)
        before = number_cursor(cursor)
        if before is not None:
            statement = statement.where(audit.c.id < before)
        return self._page(AuditEntry, statement, limit, lambda row: row["id"])
