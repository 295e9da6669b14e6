"""The list of runs: what each row shows, ready for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.web import text
from penstock.web.text import Document

METER_WIDTH = 92

# What the tabs above the list stand for; the API's states that each of them asks for.
FILTERS: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "active": ("queued", "running", "failing", "cancelling"),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
}


@dataclass(frozen=True)
class RunRow:
    """One line of the list."""

    id: str
    name: str
    page: str
    state: str
    style: str
    platform: str
    quantize: str
    progress: str
    filled: float
    best: str
    evidence: str
    best_share: str
    share_evidence: str
    age: str
    created_at: str
    lasted: str
    problem: str


def shown_state(run: Document) -> str:
    """A run that is held does not look as if it moved."""
    return "paused" if run["paused"] and run["state"] in ("queued", "running") else run["state"]


def style_of(state: str) -> str:
    """The look of a state: those that are held or on their way out look alike."""
    return "cancelling" if state in ("failing", "cancelling", "paused") else state


def view_runs(runs: Sequence[Document], now: datetime) -> list[RunRow]:
    return [_row(run, now) for run in runs]


def progress_text(progress: Document) -> str:
    """7 / 24 trials; before there are trials, the steps."""
    if progress["trials_total"]:
        failed = f", {progress['trials_failed']} failed" if progress["trials_failed"] else ""
        return f"{progress['trials_done']} / {progress['trials_total']}{failed}"
    return f"{progress['steps_done']} / {progress['steps_total']} steps"


def filled_width(run: Document) -> float:
    """How much of the meter is full: trials are most of the work, the steps around them the rest."""
    progress = run["progress"]
    if run["state"] == "succeeded":
        return METER_WIDTH
    trials = progress["trials_done"] / progress["trials_total"] if progress["trials_total"] else 0.0
    steps = progress["steps_done"] / progress["steps_total"] if progress["steps_total"] else 0.0
    return round(METER_WIDTH * (0.7 * trials + 0.3 * steps), 1)


def best_latency(best: Document | None) -> str:
    """The latency of the best trial in the unit that is known."""
    if best is None:
        return ""
    if best["latency_us"] is not None:
        return text.microseconds(best["latency_us"])
    return f"{text.quantity(best['latency'])} cycles" if best["latency"] is not None else ""


def headline(run: Document) -> tuple[Document | None, str]:
    """The design that a run stands for (chosen, or the best so far), and where its share of a limit comes from."""
    if run["chosen"]:
        return run["chosen"], run["chosen"]["share_evidence"]
    return run["best"], run["best"]["evidence"] if run["best"] else ""


def _row(run: Document, now: datetime) -> RunRow:
    options, error = run["options"], run["error"]
    best, share_evidence = headline(run)
    share = best["resource_share"] if best else None
    return RunRow(
        id=run["id"],
        name=run["name"],
        page=run["page"],
        state=shown_state(run),
        style=style_of(shown_state(run)),
        platform=str(options.get("platform") or ""),
        quantize=str(options.get("quantize") or ""),
        progress=progress_text(run["progress"]),
        filled=filled_width(run),
        best=best_latency(best),
        evidence=best["evidence"] if best else "",
        best_share="" if share is None else text.percent(share),
        share_evidence=share_evidence,
        age=text.age(run["created_at"], now),
        created_at=text.stamp(run["created_at"]),
        lasted=text.between(run["started_at"], run["finished_at"], now),
        problem=error["what"] if error else "",
    )
