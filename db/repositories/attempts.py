"""Every claim of every step, and how it ended: the evidence when a step is given up."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select

from penstock.db.repositories.base import Repository
from penstock.db.schema.records import Attempt
from penstock.db.schema.tables import attempts


class Attempts(Repository):
    def of_steps(self, step_ids: Sequence[str]) -> dict[str, tuple[Attempt, ...]]:
        """The attempts of each of the steps, in their order; empty for a step that never started."""
        if not step_ids:
            return {}
        statement = select(attempts).where(attempts.c.step_id.in_(step_ids)).order_by(attempts.c.fence)
        found: dict[str, list[Attempt]] = {step_id: [] for step_id in step_ids}
        for attempt in self._all(Attempt, statement):
            found[attempt.step_id].append(attempt)
        return {step_id: tuple(rows) for step_id, rows in found.items()}

    def losses(self, step_id: str, code: str) -> int:
        """How often a worker was lost with the step for a reason of this code."""
        lost = (attempts.c.step_id == step_id, attempts.c.outcome == "lose", attempts.c.error["code"].astext == code)
        return self.connection.execute(select(func.count()).where(*lost)).scalar_one()

    def lost(self) -> int:
        """How many attempts ended because their worker died, since the first."""
        return self.connection.execute(select(func.count()).where(attempts.c.outcome == "lose")).scalar_one()

    def list(self, step_id: str) -> tuple[Attempt, ...]:
        statement = select(attempts).where(attempts.c.step_id == step_id)
        return self._all(Attempt, statement.order_by(attempts.c.fence))
