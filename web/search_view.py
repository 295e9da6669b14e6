"""What a search was asked to do and how it began: axes of its trade-off, limits, warm start, replays, its buttons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.web import text
from penstock.web.pareto import Dot, Plot, ThirdFigure, draw_pareto
from penstock.web.text import Document


class ObjectiveView(Protocol):
    """What is drawn of an objective; whoever fills the page knows them all."""

    @property
    def figure(self) -> str: ...
    @property
    def plotted(self) -> str: ...
    @property
    def axis(self) -> str: ...
    @property
    def reads_as(self) -> str: ...


ObjectiveViews = Mapping[str, ObjectiveView]


@dataclass(frozen=True)
class ObjectiveAxis:
    """An objective on the drawing: its figure, its name in words, how its values read, and its limit."""

    figure: str
    title: str
    show: Callable[[float], str]
    limit: float | None = None
    kept_small: str = ""
    """What the search compares: cycles, where a time is drawn."""

    @staticmethod
    def of(objective: ObjectiveView) -> ObjectiveAxis:
        kind = objective.reads_as
        return ObjectiveAxis(
            objective.plotted, objective.axis, _SHOW[kind], 1.0 if kind == "share" else None, objective.figure
        )


_SHOW: Mapping[str, Callable[[float], str]] = {
    "time": text.microseconds,
    "share": text.percent,
    "bytes": lambda value: text.size(round(value)),
    "number": text.quantity,
}
_OLDER = {"latency_us": ObjectiveAxis("latency_cycles", "latency in cycles", text.quantity, None, "latency_cycles")}
"""What to draw of records that lack a figure."""


@dataclass(frozen=True)
class Search:
    """What the page says of a search beside its trials."""

    by_latency: bool
    """Whether the best trial is the fastest one."""
    can_pause: bool
    can_resume: bool
    can_extend: bool
    can_replay: bool
    """Not the sources of a kernel, which are tried in one go."""
    warm_start: tuple[tuple[str, int], ...]
    replayed: Document | None
    """The run evaluated a trial again: what it found, and in lines what differs."""
    replay: tuple[str, ...]
    checked: Document | None
    """The run only looked at its model: what it found, and in lines what is refused or worth knowing."""
    check: tuple[str, ...]


def view_search(run: Document) -> Search:
    state, paused = run["state"], bool(run["paused"])
    going = state in ("queued", "running")
    found, checked = run["summary"].get("replay"), run["summary"].get("check")
    is_kernel = any(step["kind"] == "kernel" for step in run["steps"])
    searched = any(step["kind"] == "explore" and step["state"] == "succeeded" for step in run["steps"])
    return Search(
        by_latency=(run["options"].get("objectives") or ["latency"])[0] == "latency",
        can_pause=going and not paused and not isinstance(found, dict) and not is_kernel,
        can_resume=going and paused,
        can_extend=searched
        and not run["summary"].get("design_of")
        and state in ("queued", "running", "succeeded", "failed"),
        can_replay=not is_kernel,
        warm_start=tuple((str(k["run"]), int(k["trial"])) for k in run["summary"].get("warm_start") or ()),
        replayed=found if isinstance(found, dict) else None,
        replay=_replay_lines(found) if isinstance(found, dict) else (),
        checked=checked if isinstance(checked, dict) else None,
        check=_check_lines(checked) if isinstance(checked, dict) else (),
    )


def plot_trials(
    trials: Sequence[Document],
    asked: Sequence[str],
    objectives: ObjectiveViews,
    limits: Sequence[str] = (),
    kept: frozenset[int] | None = None,
) -> Plot | None:
    """The trade-off between the most important objectives, at most three; beside a single one, its usual opposite."""
    x, y, *more = (known_axis(axis, trials) for axis in axes_of(asked, objectives))
    across, upwards, numbers, ended = x.figure, y.figure, (float, int), ("complete", "infeasible")
    shaded = more[0] if more else None
    dots: list[Dot] = []
    for trial in trials:
        state, figures = trial["state"], trial["figures"]
        at, up = figures.get(across), figures.get(upwards)
        third = figures.get(shaded.figure) if shaded else 0.0
        if state in ended and type(at) in numbers and type(up) in numbers and type(third) in numbers:
            fits, evidence = state == "complete", trial["evidence"] or ""
            dots.append(Dot(trial["number"], at, up, evidence, fits, trial["chosen"], third))
    return draw_pareto(
        dots, x_name=x.title, y_name=y.title, x_text=x.show, y_text=y.show,
        x_limit=_limit_of(x, limits), y_limit=_limit_of(y, limits), figures=(x.figure, y.figure),
        third=ThirdFigure(shaded.title, shaded.show) if shaded else None, kept=kept,
    )  # fmt: skip


def _limit_of(axis: ObjectiveAxis, limits: Sequence[str]) -> float | None:
    """What the user set, else the platform's. A share is one of the limit that holds, whoever set it."""
    for limit in limits:
        name, _, value = limit.partition("<=")
        if name.strip() in (axis.figure, axis.kept_small) and axis.limit is None:
            try:
                return float(value)
            except ValueError:
                return None
    return axis.limit


def drawn_figures(asked: Sequence[str], objectives: ObjectiveViews) -> tuple[str, ...]:
    """The figures that the drawing of a run needs of each of its trials."""
    axes = axes_of(asked, objectives)
    return tuple(dict.fromkeys([axis.figure for axis in axes] + [axis.kept_small for axis in axes]))


def axes_of(asked: Sequence[str], objectives: ObjectiveViews) -> list[ObjectiveAxis]:
    """What is drawn across, what upwards, and what is shaded, if there is a third."""
    return [ObjectiveAxis.of(objectives[name]) for name in axis_names(asked, objectives)]


def axis_names(asked: Sequence[str], objectives: ObjectiveViews) -> list[str]:
    """The objectives of these axes."""
    names = list(dict.fromkeys(name for name in asked if name in objectives))[:3]
    names += [name for name in ("latency", "resources") if name not in names]
    return names[: 3 if len([name for name in asked if name in names]) > 2 else 2]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def known_axis(axis: ObjectiveAxis, trials: Sequence[Document]) -> ObjectiveAxis:
    """The axis, or what to draw in its place of trials that lack its figure."""
    older = _OLDER.get(axis.figure)
    return axis if older is None or any(axis.figure in trial["figures"] for trial in trials) else older


def _replay_lines(found: Document) -> tuple[str, ...]:
    rows = [f"{row['figure']}: {row['then']} then, {row['now']} now" for row in found["differs"]]
    return (*rows, *(f"Changed since: {words}" for words in found["changed"]))


def _check_lines(found: Document) -> tuple[str, ...]:
    refusals = [f"{one['where']}: {one['what']} ({one['limit']}). {one['hint']}" for one in found["refusals"]]
    size, estimate = found["size"], found["estimate"]
    lines = [f"{size['parameters']:,} parameters, {size['operations']} operations on the accelerator"] if size else []
    if estimate:
        share = max(estimate["shares"].values(), default=0.0)
        first = f"{estimate['latency_us']:,.4g} µs and {share:.0%} of {found['platform']} [{estimate['evidence']}]"
        lines.append(f"The first design of a search would take {first}")
    return (*refusals, *lines, *found["notes"])
