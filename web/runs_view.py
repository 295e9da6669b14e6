"""The list of runs: what each row shows, ready for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from urllib.parse import urlencode

from penstock.web import text
from penstock.web.course_view import Bar, Fall, bars_of, outlook, spark
from penstock.web.text import Document

# What the tabs above the list stand for; the API's states that each of them asks for.
SIDE = "questions"
"""Runs that search nothing: a trial evaluated again, a model looked at, a design changed. They have their own tab."""
FILTERS: Mapping[str, tuple[str, ...]] = {
    "all": (),
    "active": ("queued", "running", "failing", "cancelling"),
    "succeeded": ("succeeded",),
    "failed": ("failed",),
    "cancelled": ("cancelled",),
    SIDE: (),
}


@dataclass(frozen=True)
class RunQuery:
    """What is asked of the list; all of it stands in the address."""

    state: str = "all"
    words: str = ""
    platform: str = ""
    owner: str = ""
    tag: str = ""
    cursor: str = ""

    def address(self, **changes: str) -> str:
        """The same with changes; anything but another page begins with the newest."""
        changed = replace(self, **({"cursor": ""} | changes))
        asked = {name: value for name, value in asdict(changed).items() if value}
        return "/runs?" + urlencode(asked)

    @property
    def is_everything(self) -> bool:
        return self == RunQuery()


_NO_GOOD = (("trials_infeasible", "outside the limits"), ("trials_failed", "failed"))


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
    bars: tuple[Bar, ...]
    ahead: str
    spark: str
    owner: str
    tags: tuple[str, ...]
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


def view_runs(runs: Sequence[Document], courses: Mapping[str, Sequence[Fall]], now: datetime) -> list[RunRow]:
    return [_row(run, courses.get(run["id"], ()), now) for run in runs]


def progress_text(progress: Document) -> str:
    """7 / 24 trials, and how many of them are no good; before there are trials, the steps."""
    if not progress["trials_total"]:
        return f"{progress['steps_done']} / {progress['steps_total']} steps"
    said = f"{progress['trials_done']} / {progress['trials_total']}"
    bad = [f"{progress[name]} {word}" for name, word in _NO_GOOD if progress[name]]
    return ", ".join([said, *bad])


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
    return run["best"], text.of_area(run["best"]["evidence"]) if run["best"] else ""


def _row(run: Document, falls: Sequence[Fall], now: datetime) -> RunRow:
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
        bars=bars_of(run["progress"]),
        ahead=outlook(run["progress"]),
        spark=spark(falls, run["progress"]["trials_done"]),
        owner=run["owner"] or "",
        tags=tuple(run["tags"]),
        best=best_latency(best),
        evidence=best["evidence"] if best else "",
        best_share="" if share is None else text.percent(share),
        share_evidence=share_evidence,
        age=text.age(run["created_at"], now),
        created_at=text.stamp(run["created_at"]),
        lasted=text.between(run["started_at"], run["finished_at"], now),
        problem=error["what"] if error else "",
    )
