"""Files that steps produced: a database id leads to a content hash, never to a user's path."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import insert, select

from penstock.db.repositories.base import Repository
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Artifact, NewArtifact, Page
from penstock.db.schema.tables import artifacts


class Artifacts(Repository):
    def create(self, run_id: str, step_id: str, new: Sequence[NewArtifact]) -> None:
        rows = [
            {
                "id": new_id("art"), "run_id": run_id, "step_id": step_id, "name": artifact.name,
                "sha256": artifact.sha256, "size": artifact.size, "media_type": artifact.media_type,
            }
            for artifact in new
        ]  # fmt: skip
        if rows:
            self.connection.execute(insert(artifacts), rows)

    def get(self, artifact_id: str) -> Artifact | None:
        return self._first(Artifact, select(artifacts).where(artifacts.c.id == artifact_id))

    def of_step(self, step_id: str) -> tuple[Artifact, ...]:
        statement = select(artifacts).where(artifacts.c.step_id == step_id)
        return self._all(Artifact, statement.order_by(artifacts.c.name))

    def by_name(self, step_id: str, name: str) -> Artifact | None:
        where = (artifacts.c.step_id == step_id, artifacts.c.name == name)
        return self._first(Artifact, select(artifacts).where(*where))

    def list(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> Page[Artifact]:
        """A run's artifacts, newest first."""
        return self._newest_first(Artifact, artifacts, [artifacts.c.run_id == run_id], cursor, limit)
