"""A search over time: the value of each trial, how many are as good, and when each of them was worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

from penstock.web import text
from penstock.web.axis import fit_axis, span_axis
from penstock.web.chart import Tick, dots_path, stairs_path, x_ticks, y_ticks
from penstock.web.search_view import ObjectiveAxis

MOST_ROWS, MOST_STEPS = 16, 400


class EndedTrialView(Protocol):
    """What is drawn of a trial that ended."""

    @property
    def number(self) -> int: ...
    @property
    def fits(self) -> bool: ...
    @property
    def value(self) -> float | None: ...
    @property
    def ended(self) -> float: ...
    @property
    def seconds(self) -> float: ...


@dataclass(frozen=True)
class TimeChart:
    """A chart with up to three paths: marks of what fits, of what does not, and a line."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    fitting: str
    misfits: str
    line: str
    x_name: str
    y_name: str
    words: str


def draw_history(trials: Sequence[EndedTrialView], axis: ObjectiveAxis) -> TimeChart | None:
    """The value of each trial by its number, with the best so far of those within the limits."""
    known = [(trial, trial.value) for trial in trials if trial.value is not None]
    if len(known) < 2:
        return None
    across = span_axis(known[-1][0].number + 1, 0.0, 100.0)
    upwards = fit_axis([value for _, value in known], 100.0, 0.0)
    fitting = [(across.pixel(t.number), upwards.pixel(value)) for t, value in known if t.fits]
    misfits = [(across.pixel(t.number), upwards.pixel(value)) for t, value in known if not t.fits]
    best = [*accumulate((value for trial, value in known if trial.fits), min)]
    stairs = [(x, upwards.pixel(value)) for (x, _), value in zip(fitting, best, strict=True)]
    whole = replace(across, ticks=tuple(tick for tick in across.ticks if tick == round(tick)))
    title = axis.title + (" (log)" if upwards.logarithmic else "")
    words = f"{axis.show(best[-1])} is the best of {len(best):,}" if best else "none is"
    return TimeChart(
        x_ticks(whole, lambda value: f"{value:,.0f}"), y_ticks(upwards, axis.show), dots_path(fitting),
        dots_path(misfits), stairs_path(stairs, to=whole.pixel(known[-1][0].number)), "trials", title,
        f"{words} within the limits",
    )  # fmt: skip


def draw_distribution(trials: Sequence[EndedTrialView], axis: ObjectiveAxis) -> TimeChart | None:
    """The share of trials within the limits that are as good as a value or better."""
    values = sorted(trial.value for trial in trials if trial.fits and trial.value is not None)
    if len(values) < 2:
        return None
    across = fit_axis(values, 0.0, 100.0)
    upwards = span_axis(1.0, 100.0, 0.0)
    step = -(-len(values) // MOST_STEPS)
    last = len(values) - 1
    places = [
        (across.pixel(value), upwards.pixel((index + 1) / len(values)))
        for index, value in enumerate(values)
        if index % step == 0 or index == last
    ]
    near = sum(value <= 1.1 * values[0] for value in values)
    share = text.percent(near / len(values))
    return TimeChart(
        x_ticks(across, axis.show), y_ticks(upwards, text.percent), "", "", stairs_path(places, to=100.0),
        axis.title + (" (log)" if across.logarithmic else ""), "share of trials",
        f"{share} are within a tenth of the best; half are at {axis.show(values[last // 2])} or better",
    )  # fmt: skip


def draw_work(trials: Sequence[EndedTrialView]) -> TimeChart | None:
    """When each trial was worked on, those that overlap one below the other."""
    if len(trials) < 2:
        return None
    begun = sorted(trials, key=lambda trial: trial.ended - trial.seconds)
    across = fit_axis([0.0, max(trial.ended for trial in trials)], 0.0, 100.0, from_zero=True)
    free: list[float] = []
    rows: list[int] = []
    for trial in begun:
        start = trial.ended - trial.seconds
        row = next((number for number, end in enumerate(free) if end <= start + 1e-6), len(free))
        row = min(row, MOST_ROWS - 1)  # further ones lie over each other in the last row
        free[row : row + 1] = [trial.ended]
        rows.append(row)
    height = 100.0 / len(free)
    paths = {True: "", False: ""}
    for trial, row in zip(begun, rows, strict=True):
        left, right = across.pixels([trial.ended - trial.seconds, trial.ended])
        paths[trial.fits] += f"M{left:.2f} {(row + 0.5) * height:.1f}H{max(right, left + 0.05):.2f}"
    whole, worked = max(trial.ended for trial in trials), sum(trial.seconds for trial in trials)
    names = tuple(Tick((row + 0.5) * height, str(row + 1), "end", False) for row in range(len(free)) if len(free) < 9)
    return TimeChart(
        x_ticks(across, _seconds), names, paths[True], paths[False], "", "time since the first began", "at once",
        f"{len(trials):,} trials drawn in {text.duration(whole)}; {text.duration(worked)} of work, "
        f"{text.quantity(worked / whole if whole else 0)} at a time",
    )  # fmt: skip


def _seconds(value: float) -> str:
    return f"{value:g} s" if value < 120 else f"{value / 60:g} min" if value < 7200 else f"{value / 3600:g} h"
