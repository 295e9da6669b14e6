"""One run: its story in a sentence, the design that it stands for, how its search came along, its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from penstock.web import text
from penstock.web.course_view import Bar, Course, bars_of
from penstock.web.files_view import Files, view_files
from penstock.web.pareto import Plot
from penstock.web.rungs_view import RungErrors, view_rungs
from penstock.web.runs_view import best_latency, headline, shown_state, style_of
from penstock.web.search_view import Search, is_number, view_search
from penstock.web.steps_view import OVER, StageBox, StepKinds, StepRow, stages_of, step_rows
from penstock.web.story import Story, story_of
from penstock.web.text import Document
from penstock.web.trials_view import KnownTrials, scarcest

OptionLabels = Mapping[str, tuple[str, str]]
"""What each option of a run is called, and what it means where it is empty."""
TABS = (("", "Overview"), ("/trials", "Trials"), ("/design", "Design"), ("/log", "Log and files"))
_OF_ALL = ("", "/log")
_WITHOUT_DESIGNS = ("import", "check", "array")
_SHOWN_ELSEWHERE = (
    "chosen_trial", "evidence", "latency_cycles", "latency_us", "package", "resource_share", "share_evidence", "trials",
    "bound", "bound_reason", "gap_pct", "measurements", "design_of", "trials_planned", "fallback",
)  # fmt: skip
_MEANINGS = {
    "digest": "of the package, as in its name; the report also has the digest of the design alone",
    "modelled": "settings that were looked at in closed form before the first trial",
    "on front": "trials that no other one beats in every objective",
}


@dataclass(frozen=True)
class RunHead:
    """What every page of a run begins with."""

    run: Document
    state: str
    style: str
    over: bool
    search: Search
    tabs: tuple[tuple[str, str, bool], ...]
    has_designs: bool
    age: str
    lasted: str


@dataclass(frozen=True)
class ChosenView:
    """The design that the run settled on: its times by the evidence that it was chosen by, and where it stands."""

    trial: int | None
    """None: the design was given."""
    evidence: str
    latency: str
    beside: str
    interval: str
    fifos: str
    fifos_before: str
    why: tuple[str, ...]
    bound: str
    layers: tuple[str, str, str]
    """Of layers that one start runs: what all take, how many of what they are, by which evidence; else empty."""


@dataclass(frozen=True)
class RunView:
    head: RunHead
    run: Document
    over: bool
    story: Story
    options: tuple[tuple[str, str], ...]
    headline: Document | None
    share_evidence: str
    best: str
    bars: tuple[Bar, ...]
    course: Course | None
    stages: tuple[StageBox, ...]
    steps: tuple[StepRow, ...]
    plot: Plot | None
    files: Files
    findings: tuple[tuple[str, str, str], ...]
    binding: str
    chosen: ChosenView | None
    search: Search
    rungs: RungErrors | None


def has_designs(run: Document) -> bool:
    """Whether it looks for a design, or has one: a question about a model has none, nor has an array of cores."""
    return not all(step["kind"] in _WITHOUT_DESIGNS for step in run["steps"])


def view_head(run: Document, tab: str, now: datetime) -> RunHead:
    page = run["page"]
    total = run["progress"]["trials_total"]
    designs, names = has_designs(run), {"/trials": f"Trials {total:,}"} if total else {}
    return RunHead(
        run=run,
        state=shown_state(run),
        style=style_of(shown_state(run)),
        over=run["state"] in OVER,
        search=view_search(run),
        tabs=tuple(
            (page + path, names.get(path, name), path == tab) for path, name in TABS if designs or path in _OF_ALL
        ),
        has_designs=designs,
        age=text.age(run["created_at"], now),
        lasted=text.between(run["started_at"], run["finished_at"], now),
    )


def view_run(
    run: Document,
    *,
    trials: KnownTrials,
    artifacts: Sequence[Document],
    last_news: str | None,
    service: Document,
    option_labels: OptionLabels,
    step_kinds: StepKinds,
    now: datetime,
) -> RunView:
    """Everything that the page shows."""
    shown, share_evidence = headline(run)
    head = view_head(run, "", now)
    return RunView(
        head=head,
        run=run,
        over=head.over,
        story=story_of(run, last_news, service, now),
        options=_options(run["options"], option_labels),
        headline=shown,
        share_evidence=share_evidence,
        best=best_latency(shown),
        bars=bars_of(run["progress"]),
        course=trials.drawn.course,
        stages=stages_of(run, step_kinds, now),
        steps=step_rows(run, step_kinds, now),
        plot=trials.drawn.plot,
        files=view_files(artifacts),
        findings=_findings(run["summary"]),
        binding=_binding(shown, trials.model),
        chosen=_chosen(run["summary"]),
        search=head.search,
        rungs=view_rungs(run["summary"].get("rung_errors") or ()),
    )


def _chosen(summary: Document) -> ChosenView | None:
    """None until a design was chosen."""
    latency, trial, evidence = (summary.get(name) for name in ("latency_us", "chosen_trial", "evidence"))
    if (
        not is_number(latency)
        or not (isinstance(trial, int) or summary.get("design_of"))
        or not isinstance(evidence, str)
    ):
        return None
    bits = summary.get("fifo_bits")
    modelled = summary.get("modelled_latency_cycles")
    modelled_text = f", modelled {text.quantity(modelled)}" if modelled is not None and evidence != "modelled" else ""
    again = summary.get("retimed_latency_cycles")
    again_text = f", simulated with its II and depth {text.quantity(again)}" if again is not None else ""
    return ChosenView(
        trial=trial if isinstance(trial, int) else None,
        evidence=evidence,
        latency=text.microseconds(float(latency)),  # pyright: ignore[reportArgumentType]
        beside=f"{_cycles(summary, 'latency_cycles')}{again_text}{modelled_text}",
        interval=_cycles(summary, "interval_cycles"),
        fifos="" if bits is None else f"{text.quantity(bits)} bit",
        fifos_before=_other_fifos(summary),
        why=tuple(map(str, summary.get("why") or ())),
        bound=text.beside_bound(gap) if isinstance(gap := summary.get("gap_pct"), int | float) else "",
        layers=_all_layers(summary.get("all_layers")),
    )


def _all_layers(found: Document | None) -> tuple[str, str, str]:
    if found is None:
        return ("", "", "")
    under = f"{_cycles(found, 'latency_cycles')} for {found['layers']} layers"
    return (text.microseconds(found["latency_us"]), under, str(found["evidence"]))


def _other_fifos(summary: Document) -> str:
    """What the chosen design's FIFOs would hold otherwise: where they may cost time, if they did not."""
    normal, before = summary.get("normal_fifo_bits"), summary.get("unsized_fifo_bits")
    if normal is not None:
        return f"{text.quantity(normal)} with FIFOs that cost no time: {_cycles(summary, 'normal_latency_cycles')}"
    return "" if before is None else f"{text.quantity(before)} without sizing"


def _cycles(summary: Document, name: str) -> str:
    value = summary.get(name)
    return f"{text.quantity(value)} cycles" if value is not None else "not measured"


def _options(options: Document, labels: OptionLabels) -> tuple[tuple[str, str], ...]:
    """Options in the order of their labels; the database keeps none."""
    ordered = [*(name for name in labels if name in options), *(name for name in options if name not in labels)]
    rows = [(*labels.get(name, (name, "")), options[name]) for name in ordered]
    return tuple((label, _shown(value, absent)) for label, absent, value in rows if value is not None or absent)


def _shown(value: object, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, list):
        return ", ".join(map(str, value)) or absent or "nothing"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _figure(name: str, value: float) -> str:
    return f"{value * 100:.1f} %" if name.endswith("accuracy") else text.quantity(value)


def _binding(best: Document | None, model: Document | None) -> str:
    """The resource that the trial needs most of."""
    return scarcest(model["figures"]) if best and model and model["number"] == best["trial"] else ""


def _findings(summary: Document) -> tuple[tuple[str, str, str], ...]:
    """The plain facts of a run's summary, and what they mean; whatever is nested has a place in the report."""
    found: list[tuple[str, str, str]] = []
    for key, value in summary.items():
        name = key.replace("_", " ")
        if key in _SHOWN_ELSEWHERE or key.endswith(("_share", "_cycles", "fifo_bits")):
            continue  # figures of the chosen trial are shown with their evidence
        if isinstance(value, bool):
            shown = "yes" if value else "no"
        elif isinstance(value, int | float | str):
            shown = value if isinstance(value, str) else _figure(key, value)
        else:
            continue
        found.append((name, shown[:12] if key == "digest" else shown, _MEANINGS.get(name, "")))
    return tuple(found)
