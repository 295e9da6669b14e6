"""What a step body gives back, and the ways in which it can end without a result."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.db.schema.records import Json, NewStep, TrialSummary
from penstock.services.run_summary import RunSummary


@dataclass(frozen=True)
class Output:
    """A file, a folder (stored as one tar) or bytes, and what they are."""

    content: Path | bytes
    media_type: str


@dataclass(frozen=True)
class StepResult:
    """`outputs` become artifacts, `data` the step's result; `run_summary` shows in the list of runs."""

    data: Json = field(default_factory=dict[str, Any])
    outputs: dict[str, Output] = field(default_factory=dict[str, Output])
    new_steps: tuple[NewStep, ...] = ()
    trial: TrialSummary | None = None
    run_summary: RunSummary | None = None


class StepStoppedError(Exception):
    """The body is to end now: its run was stopped, its worker ends, or its lease is lost."""


class RetryLaterError(Exception):
    """The step cannot be done now and it is nobody's fault, such as a licence that is taken.

    It goes back to the queue without using up an attempt.
    """

    def __init__(self, code: str, what: str, delay_seconds: float) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.delay_seconds = delay_seconds
