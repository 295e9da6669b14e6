"""When a run may begin and end, from what was measured: its own trials, and the steps of runs that ended lately.

An estimate, not a promise: it takes the service to go on as it does. Where nothing was measured yet, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from penstock.db import Transaction
from penstock.db.schema.records import Run, Step
from penstock.db.schema.states import RUN_GOING, STEP_TERMINAL, RunState, StepState
from penstock.services.api.answers.schemas import Progress, RunEstimate
from penstock.services.step_kinds import EXPLORE


def estimate_of(tx: Transaction, run: Run, steps: Sequence[Step], progress: Progress) -> RunEstimate | None:
    """None for a run that is over, paused or stopping, and while nothing is known."""
    if run.paused or run.state not in RUN_GOING:
        return None
    now = datetime.now(UTC)
    open_steps = [step for step in steps if step.state not in STEP_TERMINAL]
    means = tx.pace.of_kinds(sorted({step.kind for step in open_steps}))
    trials = _trials_seconds(tx, run, steps, progress)
    if trials is None or any(step.kind not in means for step in open_steps):
        return None
    left = sum(_left(step, means, now) for step in open_steps) + trials[0]
    wait = _wait(tx, open_steps, means) if run.state == RunState.QUEUED else 0.0
    start = run.started_at or now + timedelta(seconds=wait)
    basis = f"{trials[1]}; other steps as in the runs that ended lately"
    return RunEstimate(start=start, end=now + timedelta(seconds=wait + left), basis=basis)


def _left(step: Step, means: Mapping[str, float], now: datetime) -> float:
    gone = (now - step.started_at).total_seconds() if step.state == StepState.RUNNING and step.started_at else 0.0
    return max(0.0, means[step.kind] - gone)


def _trials_seconds(tx: Transaction, run: Run, steps: Sequence[Step], progress: Progress) -> tuple[float, str] | None:
    """How long the trials that are left may take, and how that is known."""
    left = progress.trials_total - progress.trials_done
    if left <= 0 or not any(step.kind == EXPLORE for step in steps):
        return 0.0, "no trials are left"
    pace = tx.pace.of_trials(run.id)
    if pace is not None:
        return left * pace.seconds / pace.ended, f"{60 * pace.ended / pace.seconds:.3g} trials a minute"
    one = tx.pace.of_a_trial()
    return None if one is None else (left * one, f"trials of {one:.3g} s each, as the newest of all runs")


def _wait(tx: Transaction, open_steps: Sequence[Step], means: Mapping[str, float]) -> float:
    """Until a place is free in the queue of the first step, which goes to whoever has the least."""
    first = next((step for step in open_steps if step.state == StepState.QUEUED), None)
    running = tx.queues.running().get(first.queue, 0) if first is not None else 0
    return means[first.kind] / running if first is not None and running else 0.0
