"""Submitted models."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select

from penstock.db.repositories.base import Repository
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Json, Model, Page
from penstock.db.schema.tables import models


class Models(Repository):
    def create(
        self,
        *,
        name: str,
        kind: str,
        source: str,
        sha256: str | None = None,
        size: int | None = None,
        details: Json | None = None,
        owner: str | None = None,
    ) -> Model:
        row = {
            "id": new_id("mdl"), "name": name, "kind": kind, "source": source, "sha256": sha256, "size": size,
            "details": dict(details or {}), "owner": owner,
        }  # fmt: skip
        return self._only(Model, insert(models).values(row).returning(models))

    def get(self, model_id: str) -> Model | None:
        return self._first(Model, select(models).where(models.c.id == model_id))

    def hold(self, model_id: str, *, to_delete: bool = False) -> Model | None:
        """The model, if it is there; until the transaction ends nobody deletes it, or makes a run of it."""
        lock = select(models).where(models.c.id == model_id)
        lock = lock.with_for_update() if to_delete else lock.with_for_update(read=True, key_share=True)
        return self._first(Model, lock)

    def by_ids(self, model_ids: Sequence[str]) -> dict[str, Model]:
        """Those of the models that exist, by id."""
        found = self._all(Model, select(models).where(models.c.id.in_(model_ids)))
        return {model.id: model for model in found}

    def list(self, *, cursor: str | None = None, limit: int = 50, owner: str | None = None) -> Page[Model]:
        where = [models.c.owner == owner] if owner else []
        return self._newest_first(Model, models, where, cursor, limit)
