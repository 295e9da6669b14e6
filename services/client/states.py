"""What a run's document says of its state, for both clients."""

from __future__ import annotations

from penstock.services.api.answers.schemas import Chosen, RunDetail, RunOut
from penstock.services.client.errors import ConflictError

OVER = ("succeeded", "failed", "cancelled")


def is_over(run: RunOut) -> bool:
    return run.state in OVER


def started(run: RunOut | str) -> RunDetail | None:
    """The document that is at hand already."""
    return run if isinstance(run, RunDetail) else None


def run_id(run: RunOut | str) -> str:
    return run.id if isinstance(run, RunOut) else run


def chosen_of(run: RunDetail) -> Chosen:
    if run.chosen is None:
        raise ConflictError(f"{run.id} is {run.state} and has chosen no design", code="nothing-chosen")
    return run.chosen


def chosen_trial_of(run: RunDetail) -> int:
    trial = chosen_of(run).trial
    if trial is None:
        raise ConflictError(f"{run.id} was given its design: its figures are in its summary", code="nothing-chosen")
    return trial
