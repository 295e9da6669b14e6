"""One run: its story in a sentence, its graph, its trials and its files, ready for the template."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from penstock.web import text
from penstock.web.event_lines import EventLine, event_lines
from penstock.web.graph import MOST_CELLS, GraphDrawing, GraphNode, draw_graph, joint_state
from penstock.web.pareto import Plot
from penstock.web.rungs_view import RungErrors, view_rungs
from penstock.web.runs_view import best_latency, headline, progress_text, shown_state, style_of
from penstock.web.search_view import ObjectiveViews, Search, is_number, plot_trials, view_search
from penstock.web.text import Document
from penstock.web.trials_view import KnownTrials, TrialTable, scarcest, view_trials


class StepLook(Protocol):
    """What the picture must know of one kind of step; whoever fills the page knows all kinds, in their order."""

    @property
    def chooses(self) -> bool: ...
    @property
    def many(self) -> bool: ...


StepKinds = Mapping[str, StepLook]
OptionLabels = Mapping[str, tuple[str, str]]
"""What each option of a run is called, and what it means where it is empty."""
OVER = ("succeeded", "failed", "cancelled")
_SHOWN_ELSEWHERE = (
    "chosen_trial", "evidence", "latency_cycles", "latency_us", "package", "resource_share", "share_evidence", "trials",
)  # fmt: skip
_PICTURES = ("dies.svg", "memories.svg")
_WHY = "why.svg"
_STEP_LOOK = {"blocked": "pending"}


@dataclass(frozen=True)
class Story:
    """What is going on, for somebody who just opened the page."""

    tone: str
    headline: str
    detail: str


@dataclass(frozen=True)
class FileRow:
    name: str
    url: str
    step: str
    size: str
    media_type: str
    sha256: str
    shows_inline: bool


@dataclass(frozen=True)
class StepRow:
    """A step with its attempts, for the list below the graph."""

    key: str
    state: str
    style: str
    attempt: str
    worker: str
    lasted: str
    note: str
    error: Document | None
    attempts: tuple[str, ...]


@dataclass(frozen=True)
class ChosenView:
    """The design that the run settled on: its times by the evidence that it was chosen by, and where it stands."""

    trial: int
    evidence: str
    latency: str
    beside: str
    interval: str
    fifos: str
    fifos_before: str
    pictures: tuple[FileRow, ...]
    why: tuple[str, ...]
    why_picture: FileRow | None


@dataclass(frozen=True)
class RunView:
    run: Document
    state: str
    style: str
    over: bool
    story: Story
    options: tuple[tuple[str, str], ...]
    headline: Document | None
    share_evidence: str
    best: str
    graph: GraphDrawing
    steps: tuple[StepRow, ...]
    plot: Plot | None
    table: TrialTable
    files: tuple[FileRow, ...]
    events: tuple[EventLine, ...]
    age: str
    lasted: str
    findings: tuple[tuple[str, str], ...]
    binding: str
    chosen: ChosenView | None
    search: Search
    rungs: RungErrors | None


def view_run(
    run: Document,
    *,
    trials: KnownTrials,
    artifacts: Sequence[Document],
    events: Sequence[Document],
    workers_alive: int,
    option_labels: OptionLabels,
    step_kinds: StepKinds,
    objectives: ObjectiveViews,
    now: datetime,
) -> RunView:
    """Everything that the page shows."""
    shown, share_evidence = headline(run)
    return RunView(
        run=run,
        state=shown_state(run),
        style=style_of(shown_state(run)),
        over=run["state"] in OVER,
        story=_story(run, events, workers_alive, now),
        options=_options(run["options"], option_labels),
        headline=shown,
        share_evidence=share_evidence,
        best=best_latency(shown),
        graph=_graph(run, trials.marks, step_kinds, now),
        steps=tuple(_step_row(step, now) for step in sorted(run["steps"], key=lambda step: _place(step, step_kinds))),
        plot=plot_trials(trials.marks, run["options"].get("objectives") or (), objectives),
        table=view_trials(trials),
        files=tuple(_file_row(artifact) for artifact in artifacts),
        events=event_lines(events),
        age=text.age(run["created_at"], now),
        lasted=text.between(run["started_at"], run["finished_at"], now),
        findings=_findings(run["summary"]),
        binding=_binding(shown, trials.model),
        chosen=_chosen(run["summary"], artifacts),
        search=view_search(run),
        rungs=view_rungs(run["summary"].get("rung_errors") or ()),
    )


def _chosen(summary: Document, artifacts: Sequence[Document]) -> ChosenView | None:
    """None until a design was chosen."""
    latency, trial, evidence = (summary.get(name) for name in ("latency_us", "chosen_trial", "evidence"))
    if not is_number(latency) or not isinstance(trial, int) or not isinstance(evidence, str):
        return None
    before, bits = summary.get("unsized_fifo_bits"), summary.get("fifo_bits")
    modelled = summary.get("modelled_latency_cycles")
    modelled_text = f", modelled {text.quantity(modelled)}" if modelled is not None and evidence != "modelled" else ""
    again = summary.get("retimed_latency_cycles")
    again_text = f", simulated with its II and depth {text.quantity(again)}" if again is not None else ""
    return ChosenView(
        trial=trial,
        evidence=evidence,
        latency=text.microseconds(float(latency)),  # pyright: ignore[reportArgumentType]
        beside=f"{_cycles(summary, 'latency_cycles')}{again_text}{modelled_text}",
        interval=_cycles(summary, "interval_cycles"),
        fifos="" if bits is None else f"{text.quantity(bits)} bit",
        fifos_before="" if before is None else f"{text.quantity(before)} without sizing",
        pictures=tuple(_file_row(a) for name in _PICTURES for a in artifacts if a["name"] == name),
        why=tuple(map(str, summary.get("why") or ())),
        why_picture=next((_file_row(a) for a in artifacts if a["name"] == _WHY), None),
    )


def _cycles(summary: Document, name: str) -> str:
    value = summary.get(name)
    return f"{text.quantity(value)} cycles" if value is not None else "not measured"


def _story(run: Document, events: Sequence[Document], workers_alive: int, now: datetime) -> Story:
    state, progress = run["state"], run["progress"]
    lasted = text.between(run["started_at"], run["finished_at"], now)
    if state == "succeeded":
        return Story("good", "Done", f"It took {lasted}; the package is among the artifacts below.")
    if state == "cancelled":
        return Story("warn", "Stopped", "Somebody stopped this run. What it had found is kept.")
    if state == "failed":
        return Story("bad", "Failed", f"It ran for {lasted}." if lasted else "It never started.")
    news = f"Last news {text.age(events[-1]['at'], now)}." if events else ""
    if state in ("failing", "cancelling"):
        why = "A step failed" if state == "failing" else "Somebody stopped this run"
        return Story("warn", "Stopping", f"{why}; what is still running is being ended. {news}")
    if run["paused"]:
        running = f"{progress['trials_running']} trials still come to their end. " if progress["trials_running"] else ""
        return Story("warn", "Paused", f"{running}No trial starts until somebody resumes the run. {news}")
    if not workers_alive:
        return Story(
            "warn",
            "Waiting: no worker is alive",
            f"Nothing moves until one starts; nothing is lost meanwhile. The command penstock up starts one. {news}",
        )
    if run["waiting_for"]:
        return Story("warn", "Waiting", f"{run['waiting_for'][:1].upper()}{run['waiting_for'][1:]}. {news}")
    if state == "queued":
        return Story("busy", "Waiting for a worker", "A worker will take the first step in a moment.")
    running = [step["key"] for step in run["steps"] if step["state"] == "running"]
    doing = ", ".join(running)
    if progress["trials_running"]:
        count = progress["trials_running"]
        doing = f"{progress['trials_done']} of {progress['trials_total']} trials done, {count} being tried"
    return Story("busy", "Working", f"{doing[:1].upper()}{doing[1:]}. {news}" if doing else news)


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


def _graph(run: Document, trials: Sequence[Document], kinds: StepKinds, now: datetime) -> GraphDrawing:
    choosing = [name for name, kind in kinds.items() if kind.chooses]
    newest = max((step["turn"] for step in run["steps"]), default=1)
    drawn = [s for s in run["steps"] if s["kind"] not in choosing or s["turn"] == newest]
    nodes = [(step["kind"], _node(step, now)) for step in drawn]
    before = [node for kind, node in nodes if kind not in choosing]
    after = [
        node for name in choosing for node in _joined(name, kinds[name].many, [n for kind, n in nodes if kind == name])
    ]
    total = run["progress"]["trials_total"]
    looks = [(_cell_state(trial), _cell_title(trial)) for trial in trials]
    looks += [("pending", "not yet begun")] * max(0, min(total, MOST_CELLS) - len(looks))
    state = joint_state([state for state, _ in looks])
    looks = _grouped(trials) if len(trials) > MOST_CELLS else looks
    if run["state"] in OVER and state in ("running", "queued", "pending"):
        state = "pending"
    node = GraphNode(
        "trials", state, progress_text(run["progress"]),
        "one square for each trial" if len(trials) <= MOST_CELLS else "a square for several trials",
    )  # fmt: skip
    return draw_graph(before, looks, node if total or looks else None, after)


def _place(step: Document, kinds: StepKinds) -> tuple[int, int]:
    """Where a step stands in the list: as the picture has it, one turn after the other."""
    kind = step["kind"]
    return step["turn"], list(kinds).index(kind) if kind in kinds and kinds[kind].chooses else 0


def _joined(kind: str, many: bool, nodes: Sequence[GraphNode]) -> list[GraphNode]:
    """The measurements of several designs are one node of the picture; each has its line below."""
    if not many or not nodes:
        return list(nodes)
    done = sum(node.state == "succeeded" for node in nodes)
    failed = sum(node.state == "failed" for node in nodes)
    line = f"{done} of {len(nodes)}" + (f", {failed} failed" if failed else "")
    state = joint_state([node.state for node in nodes])
    return [GraphNode(kind, state, line, "; ".join(node.title for node in nodes))]


def _look(state: str) -> str:
    return _STEP_LOOK.get(state, state)


def _node(step: Document, now: datetime) -> GraphNode:
    state = _look(step["state"])
    line = "already known" if step["reused"] else {"pending": "not yet", "queued": "waiting"}.get(state, state)
    title = f"{step['key']}: {state}"
    if step["attempt"] > 1:
        title += f", attempt {step['attempt']} of {step['max_attempts']}"
        line += f" · try {step['attempt']}"
    if step["error"]:
        title += f" – {step['error']['what']}"
    lasted = "" if step["reused"] else text.between(step["started_at"], step["finished_at"], now)
    return GraphNode(step["key"], state, line, title, lasted)


def _cell_state(trial: Document) -> str:
    looks = {"complete": "succeeded", "infeasible": "infeasible", "blocked": "pending"}
    state: str = trial["state"]
    return looks.get(state, state)


def _grouped(trials: Sequence[Document]) -> list[tuple[str, str]]:
    """State and title of as many squares as there is room for, each for the same number of trials."""
    each = -(-len(trials) // MOST_CELLS)
    looks: list[tuple[str, str]] = []
    for first in range(0, len(trials), each):
        group = trials[first : first + each]
        states = [_cell_state(trial) for trial in group]
        counts = ", ".join(f"{count} {state}" for state, count in Counter(states).most_common())
        looks.append((joint_state(states), f"trials {group[0]['number']} to {group[-1]['number']}: {counts}"))
    return looks


def _cell_title(trial: Document) -> str:
    return f"trial {trial['number']}: {trial['state']}"


def _file_row(artifact: Document) -> FileRow:
    media = str(artifact["media_type"]).partition(";")[0]
    return FileRow(
        name=artifact["name"],
        url=artifact["url"],
        step=artifact["step"],
        size=text.size(artifact["size"]),
        media_type=media,
        sha256=artifact["sha256"],
        shows_inline=media in ("text/html", "application/json", "text/plain", "image/svg+xml", "image/png"),
    )


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


def _figure(name: str, value: float) -> str:
    return f"{value * 100:.1f} %" if name.endswith("accuracy") else text.quantity(value)


def _binding(best: Document | None, model: Document | None) -> str:
    """The resource that the trial needs most of."""
    return scarcest(model["figures"]) if best and model and model["number"] == best["trial"] else ""


def _findings(summary: Document) -> tuple[tuple[str, str], ...]:
    """The plain facts of a run's summary; whatever is nested has a place of its own in the report."""
    found: list[tuple[str, str]] = []
    for name, value in summary.items():
        if name in _SHOWN_ELSEWHERE or name.endswith(("_share", "_cycles", "fifo_bits")):
            continue  # figures of the chosen trial are shown with their evidence
        if isinstance(value, bool):
            found.append((name.replace("_", " "), "yes" if value else "no"))
        elif isinstance(value, int | float | str):
            shown = value if isinstance(value, str) else _figure(name, value)
            if name == "digest":
                shown = shown[:12]  # as the package's name has it
            found.append((name.replace("_", " "), shown))
    return tuple(found)
