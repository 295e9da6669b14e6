"""Saved views of the list of runs: an owner's own, by name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, func, insert, select, update

from penstock.db.repositories.base import Repository
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Json
from penstock.db.schema.tables import views


@dataclass(frozen=True)
class SavedView:
    """What somebody asks of the list of runs again and again, under a name."""

    id: str
    owner: str | None
    name: str
    query: Json
    created_at: datetime


class Views(Repository):
    def save(self, *, owner: str | None, name: str, query: Json) -> SavedView:
        """A name that is there already stands for the new question."""
        mine = (views.c.owner.is_not_distinct_from(owner), views.c.name == name)
        again = self._first(SavedView, update(views).where(*mine).values(query=dict(query)).returning(views))
        row = {"id": new_id("viw"), "owner": owner, "name": name, "query": dict(query)}
        return again or self._only(SavedView, insert(views).values(row).returning(views))

    def list(self, owner: str | None) -> tuple[SavedView, ...]:
        mine = select(views).where(views.c.owner.is_not_distinct_from(owner))
        return self._all(SavedView, mine.order_by(func.lower(views.c.name), views.c.id))

    def delete(self, view_id: str, owner: str | None) -> bool:
        """False if the owner has no such view."""
        gone = delete(views).where(views.c.id == view_id, views.c.owner.is_not_distinct_from(owner))
        return self.connection.execute(gone.returning(views.c.id)).first() is not None

    def hold(self, owner: str | None) -> None:
        """Let one change of an owner's views at a time count them, until the transaction ends."""
        self.connection.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"views of {owner or ''}"))))
