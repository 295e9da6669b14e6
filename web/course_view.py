"""How a search comes along: the best value so far against what none can be below, its pace, when it will be over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from penstock.web import text
from penstock.web.axis import fit_axis, span_axis
from penstock.web.chart import LimitLine, Tick, stairs_path, x_ticks, y_ticks
from penstock.web.text import Document

SPARK_WIDTH, SPARK_HEIGHT = 88.0, 20.0
FAR = 4.0
"""Times the bound beyond which it is written at the foot of the drawing, outside its axis."""
Fall = tuple[int, float]
"""A trial that was better than all before it, and its value."""


@dataclass(frozen=True)
class Course:
    """The best so far, trial by trial."""

    title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    line: str
    bound: LimitLine | None
    bound_reason: str
    best: str
    words: str


@dataclass(frozen=True)
class Bar:
    """A part of a bar of all trials, in percent of its width."""

    state: str
    count: int
    start: float
    width: float


def falls_of(marks: Sequence[Document], figure: str) -> list[Fall]:
    """Where the best value fell, of trials in the order of their numbers."""
    found: list[Fall] = []
    for mark in marks:
        value = mark["figures"].get(figure)
        if mark["state"] == "complete" and isinstance(value, int | float) and (not found or value < found[-1][1]):
            found.append((mark["number"], float(value)))
    return found


def draw_course(
    falls: Sequence[Fall], trials: int, title: str, show: Callable[[float], str], bound: float | None, reason: str
) -> Course | None:
    """None while no trial is any good."""
    if not falls or trials < 2:
        return None
    values = [value for _, value in falls]
    near = bound if bound and values[-1] <= FAR * bound else None  # a far one would press the course flat
    known = [*values, near] if near else values
    x_axis = span_axis(max(trials, falls[-1][0] + 1), 0.0, 100.0)
    y_axis = fit_axis(known, 100.0, 0.0)
    whole = tuple(tick for tick in x_axis.ticks if tick == round(tick))
    words = f"none is below {show(bound)}" if bound else ""
    line = LimitLine(y_axis.pixel(near), words) if near else LimitLine(100.0, words + ", far down")
    places = [(x_axis.pixel(number), y_axis.pixel(value)) for number, value in falls]
    gap = f", {text.beside_bound(100 * (values[-1] / bound - 1))}" if bound else ""
    return Course(
        title=title + (" (log)" if y_axis.logarithmic else ""),
        x_ticks=x_ticks(replace(x_axis, ticks=whole), lambda value: f"{value:,.0f}"),
        y_ticks=y_ticks(y_axis, show),
        line=stairs_path(places, to=x_axis.pixel(trials)),
        bound=line if bound else None,
        bound_reason=reason,
        best=show(values[-1]),
        words=f"{show(values[-1])} by trial {falls[-1][0]}{gap}",
    )


def spark(falls: Sequence[Fall], trials: int) -> str:
    """The same in the height of a line of text; empty where there is nothing to see."""
    if len(falls) < 2:
        return ""
    low, high = falls[-1][1], falls[0][1]
    across = SPARK_WIDTH / max(trials, falls[-1][0] + 1)
    down = (SPARK_HEIGHT - 4) / (high - low)
    places = [(round(number * across, 1), round(2 + (high - value) * down, 1)) for number, value in falls]
    return stairs_path(places, to=SPARK_WIDTH)


def bars_of(progress: Document) -> tuple[Bar, ...]:
    """All trials as one bar: what is good, what is outside the limits, what failed, what runs, what is to come."""
    total = progress["trials_total"]
    if not total:
        return ()
    infeasible, failed = progress["trials_infeasible"] or 0, progress["trials_failed"]
    running, done = progress["trials_running"], progress["trials_done"]
    counts = {
        "good": max(0, done - failed - infeasible), "infeasible": infeasible, "failed": failed, "running": running,
        "to come": max(0, total - done - running),
    }  # fmt: skip
    bars: list[Bar] = []
    start = 0.0
    for state, count in counts.items():
        width = 100 * count / total
        if count:
            bars.append(Bar(state, count, round(start, 2), round(width, 2)))
        start += width
    return tuple(bars)


def outlook(progress: Document) -> str:
    """12 trials a minute, about 3 min left."""
    pace, left = progress["trials_per_minute"], progress["seconds_left"]
    if pace is None or progress["trials_done"] >= progress["trials_total"]:
        return ""
    pace = round(pace, 0 if pace >= 10 else 1)
    said = f"{text.quantity(pace)} trials a minute" if pace < 120 else f"{text.quantity(pace / 60)} trials a second"
    return said if left is None else f"{said}, about {text.duration(max(left, 1))} left for trials"
