"""How fast work goes, measured: of a run's trials, of the steps of runs that ended lately, of trials in general."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import text

from penstock.db.repositories.base import Repository

RUNS_LOOKED_AT = 20
WINDOW_SECONDS = 600.0

_KINDS = text("""
    SELECT s.kind, avg(extract(epoch FROM s.finished_at - s.started_at))::float8 AS seconds
    FROM (SELECT id FROM penstock.runs WHERE state = 'succeeded' ORDER BY id DESC LIMIT :runs) AS r
    JOIN penstock.steps AS s ON s.run_id = r.id AND s.kind = ANY (:kinds) AND s.state = 'succeeded'
    WHERE s.reused_from IS NULL AND s.started_at IS NOT NULL GROUP BY s.kind
""")
_TRIALS = text("""
    SELECT count(*) FILTER (WHERE finished_at > now() - make_interval(secs => :window)) AS lately, count(*) AS ever,
        least(:window, extract(epoch FROM now() - min(started_at)))::float8 AS window_seconds
    FROM penstock.steps
    WHERE run_id = :run AND kind = 'trial' AND state IN ('succeeded', 'failed') AND started_at IS NOT NULL
""")
_A_TRIAL = text("""
    SELECT avg(seconds)::float8 FROM (SELECT seconds FROM penstock.trials ORDER BY created_at DESC LIMIT 200) AS newest
""")


@dataclass(frozen=True)
class TrialPace:
    """Trials that ended in the last so many seconds."""

    ended: int
    seconds: float


class Pace(Repository):
    def of_kinds(self, kinds: list[str]) -> dict[str, float]:
        """Mean seconds of steps of these kinds, in the newest runs that succeeded; without what was only reused."""
        rows = self.connection.execute(_KINDS, {"runs": RUNS_LOOKED_AT, "kinds": kinds})
        return {str(kind): float(seconds) for kind, seconds in rows}

    def of_trials(self, run_id: str) -> TrialPace | None:
        """A run's own pace, in the last minutes; None before its first trial, and while none ends."""
        row = self.connection.execute(_TRIALS, {"run": run_id, "window": WINDOW_SECONDS}).one()
        return TrialPace(row.lately, row.window_seconds) if row.lately and row.window_seconds else None

    def of_a_trial(self) -> float | None:
        """Mean seconds of the newest trials of all runs."""
        return self.connection.execute(_A_TRIAL).scalar()
