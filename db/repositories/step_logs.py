"""The last lines of what tools write while their step runs: replaced at every sign of life of the worker."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert

from penstock.db.repositories.base import Repository
from penstock.db.schema.states import StepState
from penstock.db.schema.tables import step_logs, steps

LONGEST_TAIL = 8_000


@dataclass(frozen=True)
class LogTail:
    """The last lines that a tool of a running step has written."""

    key: str
    tail: str
    at: datetime


class StepLogs(Repository):
    def write(self, step_id: str, fence: int, tail: str) -> None:
        row = {"step_id": step_id, "fence": fence, "tail": tail[-LONGEST_TAIL:].replace("\0", "")}
        written = insert(step_logs).values(row)
        self.connection.execute(
            written.on_conflict_do_update(index_elements=["step_id"], set_=row | {"at": func.clock_timestamp()})
        )

    def running(self, run_id: str) -> tuple[LogTail, ...]:
        """Of the steps that run now, in their present attempt; the newest word first."""
        joined = step_logs.join(steps, (steps.c.id == step_logs.c.step_id) & (steps.c.fence == step_logs.c.fence))
        found = select(steps.c.key, step_logs.c.tail, step_logs.c.at).select_from(joined)
        mine = found.where(steps.c.run_id == run_id, steps.c.state == StepState.RUNNING)
        return self._all(LogTail, mine.order_by(step_logs.c.at.desc()))
