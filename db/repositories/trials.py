"""What each trial of a run found: one row a trial step, written in the transaction that finishes it."""

from __future__ import annotations

from dataclasses import asdict

from sqlalchemy import func, insert, select

from db.records import Page, Trial, TrialSummary
from db.repositories.base import Repository, number_cursor
from db.tables import trials


class Trials(Repository):
    def create(self, run_id: str, step_id: str, summary: TrialSummary) -> None:
        row = asdict(summary) | {"run_id": run_id, "step_id": step_id}
        self.connection.execute(insert(trials).values(row))

    def of_step(self, step_id: str) -> Trial | None:
        return self._first(Trial, select(trials).where(trials.c.step_id == step_id))

    def by_number(self, run_id: str, number: int) -> Trial | None:
        where = (trials.c.run_id == run_id, trials.c.number == number)
        return self._first(Trial, select(trials).where(*where))

    def list(self, run_id: str, *, cursor: str | None = None, limit: int = 200) -> Page[Trial]:
        """A run's trials by number."""
        statement = select(trials).where(trials.c.run_id == run_id).order_by(trials.c.number)
        after = number_cursor(cursor)
        if after is not None:
            statement = statement.where(trials.c.number > after)
        return self._page(Trial, statement, limit, lambda row: row["number"])

    def count(self, run_id: str) -> int:
        statement = select(func.count()).where(trials.c.run_id == run_id)
        return self.connection.execute(statement).scalar_one()
