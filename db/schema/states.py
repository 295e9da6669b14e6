"""The state machine of runs and steps: every move either of them can make, by name.

`fence` counts the claims of a step. A worker may write to a step only while the step is running under the
fence that the worker got at its claim, so a worker that lost its lease can never overwrite its successor.
The database enforces the same table with a trigger; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class StepState(StrEnum):
    BLOCKED = "blocked"  # waits for steps that it needs
    QUEUED = "queued"  # ready, once it is due: a worker that is free takes it
    RUNNING = "running"  # claimed by one worker under a lease
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    FAILING = "failing"  # a step failed; what still runs is being stopped
    CANCELLING = "cancelling"  # a person asked to stop; what still runs is being stopped
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class Transition:
    """A named move from any of `sources` to `target`."""

    name: str
    sources: tuple[str, ...]
    target: str
    why: str


def _table(*transitions: Transition) -> dict[str, Transition]:
    return {transition.name: transition for transition in transitions}


_S, _R = StepState, RunState

STEP_TRANSITIONS = _table(
    Transition("release", (_S.BLOCKED,), _S.QUEUED, "everything that it needs is done"),
    Transition("claim", (_S.QUEUED,), _S.RUNNING, "a worker took it: attempt and fence go up by one"),
    Transition("succeed", (_S.RUNNING,), _S.SUCCEEDED, "its outputs are stored"),
    Transition("reuse", (_S.RUNNING,), _S.SUCCEEDED, "an earlier step had the same inputs"),
    Transition("fail", (_S.RUNNING,), _S.FAILED, "an error that another attempt would only repeat"),
    Transition("retry", (_S.RUNNING,), _S.QUEUED, "an error that another attempt may not meet"),
    Transition("hand_back", (_S.RUNNING,), _S.QUEUED, "its worker cannot go on; not counted as an attempt"),
    Transition(
        "lose", (_S.RUNNING,), _S.QUEUED, "its worker is gone; counted as an attempt only where that was its own fault"
    ),
    Transition(
        "poison", (_S.RUNNING,), _S.FAILED, "its last attempt crashed or failed too, or it lost very many workers"
    ),
    Transition("cancel", (_S.BLOCKED, _S.QUEUED), _S.CANCELLED, "its run was stopped before it started"),
    Transition("stop", (_S.RUNNING,), _S.CANCELLED, "its worker saw that the run was stopped"),
)

RUN_TRANSITIONS = _table(
    Transition("start", (_R.QUEUED,), _R.RUNNING, "its first step was claimed"),
    Transition("succeed", (_R.RUNNING,), _R.SUCCEEDED, "all steps are done"),
    Transition("fail", (_R.QUEUED, _R.RUNNING), _R.FAILING, "a step that it cannot do without failed"),
    Transition("cancel", (_R.QUEUED, _R.RUNNING), _R.CANCELLING, "someone asked to stop it"),
    Transition("end_failed", (_R.FAILING,), _R.FAILED, "nothing of it runs any more"),
    Transition("end_cancelled", (_R.CANCELLING,), _R.CANCELLED, "nothing of it runs any more"),
    Transition("extend", (_R.SUCCEEDED, _R.FAILED), _R.RUNNING, "someone asked for further trials"),
)

RUN_GOING = (RunState.QUEUED, RunState.RUNNING)
"""What nobody has stopped yet."""
STEP_TERMINAL = (StepState.SUCCEEDED, StepState.FAILED, StepState.CANCELLED)
RUN_TERMINAL = (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED)


class TransitionRefusedError(Exception):
    """The row was not in a state, or not under the fence, from which the move is legal. Nothing changed."""

    def __init__(self, subject: str, name: str, state: str | None, detail: str = "") -> None:
        self.subject, self.name, self.state = subject, name, state
        found = f"it is {state}" if state else "it does not exist"
        super().__init__(f"cannot {name} {subject}: {found}{detail}")
