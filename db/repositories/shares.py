"""What each owner and each run has used: what queues go by, and what quotas count."""

from __future__ import annotations

from sqlalchemy import func, literal, select, text

from penstock.db.repositories.base import Repository
from penstock.db.repositories.queues import owner_of
from penstock.db.schema.records import Usage
from penstock.db.schema.states import RUN_GOING
from penstock.db.schema.tables import artifacts, models, runs, steps, usage

# One statement a step's end: the attempt, the run, the owner, the month. What takes no time is charged a little too,
# so that steps of nothing take turns like all others.
_CHARGE = text("""
    WITH ended AS (
        UPDATE penstock.attempts SET outcome = :outcome, finished_at = now(), error = CAST(:error AS jsonb)
        WHERE step_id = :step AND fence = :fence AND outcome IS NULL
        RETURNING greatest(extract(epoch FROM now() - started_at), 0.001)::float8 AS seconds
    ), run AS (
        UPDATE penstock.runs SET used = used + seconds FROM ended WHERE id = :run
        RETURNING coalesce(owner, '') AS owner, seconds
    ), share AS (
        INSERT INTO penstock.shares AS s (owner, used) SELECT owner, seconds FROM run
        ON CONFLICT (owner) DO UPDATE SET used = s.used + excluded.used
    )
    INSERT INTO penstock.usage AS u (owner, month, steps, seconds)
    SELECT owner, date_trunc('month', now())::date, 1, seconds FROM run
    ON CONFLICT (owner, month) DO UPDATE SET steps = u.steps + 1, seconds = u.seconds + excluded.seconds
""")

# An owner who has nothing going starts with the least that one of the others has used, a run with the least of the
# owner's other runs.
_BEGIN = text("""
    WITH going AS (
        SELECT coalesce(owner, '') AS owner, used FROM penstock.runs
        WHERE state IN ('queued', 'running') AND id <> :run
    ), share AS (
        INSERT INTO penstock.shares AS known (owner, used)
        SELECT :owner, coalesce((SELECT min(s.used) FROM penstock.shares s JOIN going USING (owner)), 0)
        WHERE NOT EXISTS (SELECT FROM going WHERE owner = :owner)
        ON CONFLICT (owner) DO UPDATE SET used = greatest(known.used, excluded.used)
    )
    UPDATE penstock.runs SET used = greatest(used, coalesce((SELECT min(used) FROM going WHERE owner = :owner), 0))
    WHERE id = :run
""")


class Shares(Repository):
    def begin(self, run_id: str, owner: str | None) -> None:
        """A run begins, or begins again: it and its owner start where the least served of the others is."""
        self.connection.execute(_BEGIN, {"run": run_id, "owner": owner or ""})

    def charge(self, run_id: str, step_id: str, fence: int, outcome: str, error: str | None) -> None:
        """An attempt ended: note how, and charge its time to its run, its owner and the month."""
        values = {"run": run_id, "step": step_id, "fence": fence, "outcome": outcome, "error": error}
        self.connection.execute(_CHARGE, values)

    def lock_quotas(self, owner: str | None) -> None:
        """Let one request of an owner at a time count what the owner has, until the transaction ends."""
        self.connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(owner or "", 1))))

    def of_owner(self, owner: str | None) -> Usage:
        """What an owner has going and kept, and the time that its steps took this month."""
        mine = owner_of(runs) == (owner or "")
        going = select(func.count()).where(mine, runs.c.state.in_(RUN_GOING)).scalar_subquery()
        trials = (
            select(func.count())
            .join_from(steps, runs, runs.c.id == steps.c.run_id)
            .where(mine, runs.c.state.in_(RUN_GOING), steps.c.kind == "trial")
            .scalar_subquery()
        )
        stored = (
            select(artifacts.c.sha256, func.max(artifacts.c.size).label("size"))
            .join(runs, runs.c.id == artifacts.c.run_id)
            .where(mine)
            .group_by(artifacts.c.sha256)
            .subquery()
        )
        sent = select(func.coalesce(func.sum(models.c.size), 0)).where(owner_of(models) == (owner or ""))
        size = select(func.coalesce(func.sum(stored.c.size), 0)).scalar_subquery() + sent.scalar_subquery()
        month = func.date_trunc("month", func.now())
        seconds = select(usage.c.seconds).where(usage.c.owner == (owner or ""), usage.c.month == month)
        row = self.connection.execute(
            select(
                literal(owner or "").label("owner"), going.label("runs"), trials.label("trials"), size.label("bytes"),
                func.coalesce(seconds.scalar_subquery(), 0.0).label("seconds"),
            )
        ).one()  # fmt: skip
        return Usage(row.owner, row.runs, row.trials, int(row.bytes), float(row.seconds))

    def totals(self) -> dict[str, tuple[int, float]]:
        """For each owner, how many attempts at steps ended and how many seconds they took, since the first."""
        statement = select(usage.c.owner, func.sum(usage.c.steps), func.sum(usage.c.seconds)).group_by(usage.c.owner)
        return {owner: (int(steps), seconds) for owner, steps, seconds in self.connection.execute(statement)}
