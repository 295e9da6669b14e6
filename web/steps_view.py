"""The steps of a run: as a strip of stages from the import to the package, and as lines with their attempts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from penstock.web import text
from penstock.web.runs_view import style_of
from penstock.web.text import Document

OVER = ("succeeded", "failed", "cancelled")
TRIALS = "trials"
_STEP_LOOK = {"blocked": "pending"}


class StepLook(Protocol):
    """What the strip must know of one kind of step; whoever fills the page knows all kinds, in their order."""

    @property
    def chooses(self) -> bool: ...
    @property
    def many(self) -> bool: ...


StepKinds = Mapping[str, StepLook]


@dataclass(frozen=True)
class StageBox:
    """A box of the strip: one step, or all of one kind together."""

    name: str
    state: str
    style: str
    line: str
    title: str


@dataclass(frozen=True)
class StepRow:
    """A step with its attempts."""

    key: str
    state: str
    style: str
    attempt: str
    worker: str
    lasted: str
    note: str
    error: Document | None
    attempts: tuple[str, ...]

    @property
    def is_troubled(self) -> bool:
        return self.error is not None or bool(self.attempts)


def stages_of(run: Document, kinds: StepKinds, now: datetime) -> tuple[StageBox, ...]:
    """What was before the trials, the trials, and what comes after them: of its last turn."""
    choosing = [name for name, kind in kinds.items() if kind.chooses]
    newest = max((step["turn"] for step in run["steps"]), default=1)
    drawn = [s for s in run["steps"] if s["kind"] not in choosing or s["turn"] == newest]
    stages = [(step["kind"], _stage(step, now)) for step in drawn]
    before = [stage for kind, stage in stages if kind not in choosing]
    of_kind = {name: [stage for kind, stage in stages if kind == name] for name in choosing}
    after = [stage for name in choosing for stage in _joined(name, kinds[name].many, of_kind[name])]
    return (*before, *_trials(run), *after)


def step_rows(run: Document, kinds: StepKinds, now: datetime) -> tuple[StepRow, ...]:
    return tuple(_step_row(step, now) for step in sorted(run["steps"], key=lambda step: _place(step, kinds)))


def joint_state(states: Sequence[str]) -> str:
    """One state for many steps; a few that failed do not make all of them a failure."""
    present = Counter(states)
    done = present["succeeded"] + present["failed"]
    if done and done == len(states):
        return "failed" if present["failed"] == done else "succeeded"
    if present["running"] or (done and present["queued"] + present["pending"]):
        return "running"
    return next((state for state in ("cancelled", "queued", "failed") if present[state]), "pending")


def _trials(run: Document) -> list[StageBox]:
    progress = run["progress"]
    total, done = progress["trials_total"], progress["trials_done"]
    if not total:
        return []
    state = "succeeded" if done == total else "running" if done or progress["trials_running"] else "pending"
    if progress["trials_failed"] == total:
        state = "failed"
    if run["state"] in OVER and state in ("running", "pending"):
        state = "cancelled"
    return [StageBox(TRIALS, state, _style(state), f"{done} of {total}", f"{done} of {total} trials have ended")]


def _joined(kind: str, many: bool, stages: Sequence[StageBox]) -> list[StageBox]:
    """The measurements of several designs are one stage; each has its line below."""
    if not many or not stages:
        return list(stages)
    done = sum(stage.state == "succeeded" for stage in stages)
    failed = sum(stage.state == "failed" for stage in stages)
    line = f"{done} of {len(stages)}" + (f", {failed} failed" if failed else "")
    state = joint_state([stage.state for stage in stages])
    return [StageBox(kind, state, _style(state), line, "; ".join(stage.title for stage in stages))]


def _stage(step: Document, now: datetime) -> StageBox:
    state = _look(step["state"])
    lasted = text.between(step["started_at"], step["finished_at"], now)
    words = {"pending": "not yet", "queued": "waiting", "succeeded": lasted, "running": lasted}
    line = "already known" if step["reused"] else words.get(state, state)
    title = f"{step['key']}: {state}"
    if step["attempt"] > 1:
        title += f", attempt {step['attempt']} of {step['max_attempts']}"
        line += f" · try {step['attempt']}"
    if step["error"]:
        title += f" – {step['error']['what']}"
    return StageBox(step["key"].partition("@")[0], state, _style(state), line, title)


def _look(state: str) -> str:
    return _STEP_LOOK.get(state, state)


def _style(state: str) -> str:
    return style_of(state)


def _place(step: Document, kinds: StepKinds) -> tuple[int, int]:
    """Where a step stands in the list: as the strip has it, one turn after the other."""
    kind = step["kind"]
    return step["turn"], list(kinds).index(kind) if kind in kinds and kinds[kind].chooses else 0


def _step_row(step: Document, now: datetime) -> StepRow:
    state = _look(step["state"])
    return StepRow(
        key=step["key"],
        state=state,
        style=style_of(state),
        attempt=f"{step['attempt']} of {step['max_attempts']}" if step["attempt"] else "–",
        worker=step["worker"] or "",
        lasted=text.between(step["started_at"], step["finished_at"], now),
        note=_note(step),
        error=step["error"],
        attempts=tuple(_attempt_line(attempt) for attempt in step["attempts"][:-1] if attempt["error"]),
    )


def _note(step: Document) -> str:
    """What a step is at; what it was at last is no news once it is over."""
    if step["reused"]:
        return "its outputs were already known"
    return step["progress_text"] or "" if step["state"] == "running" else ""


def _attempt_line(attempt: Document) -> str:
    return f"attempt {attempt['number']} on {attempt['worker']}: {attempt['error']['what']}"
