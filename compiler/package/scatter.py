"""Where things stand in the picture of an exploration: its trials, the front, the axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.package.report import ExplorationReport, TrialInfo

PLOT_WIDTH, PLOT_HEIGHT = 560, 330
FRONT_ROWS = 10
PLOT_LEFT, PLOT_RIGHT, PLOT_TOP, PLOT_BOTTOM = 64, 18, 14, 46


@dataclass(frozen=True)
class PlotTick:
    at: float
    label: str


@dataclass(frozen=True)
class PlotPoint:
    x: float
    y: float
    trial: TrialInfo


@dataclass(frozen=True)
class Scatter:
    """Trials by latency (logarithmic) and by the largest share of any resource (logarithmic)."""

    points: tuple[PlotPoint, ...]
    front: str
    x_ticks: tuple[PlotTick, ...]
    y_ticks: tuple[PlotTick, ...]
    limit_y: float | None


def scatter(exploration: ExplorationReport) -> Scatter | None:
    """None where fewer than two trials have both figures: two axes would say nothing."""
    shown = [t for t in exploration.trials if t.latency_cycles and t.resource_share]
    if len(shown) < 2:
        return None
    x_axis = _Axis.of([float(t.latency_cycles or 1) for t in shown], PLOT_LEFT, PLOT_WIDTH - PLOT_RIGHT)
    y_axis = _Axis.of([float(t.resource_share or 1) for t in shown], PLOT_HEIGHT - PLOT_BOTTOM, PLOT_TOP)
    points = [PlotPoint(x_axis.at(t.latency_cycles or 1), y_axis.at(t.resource_share or 1), t) for t in shown]
    front = sorted((p for p in points if p.trial.on_front), key=lambda p: p.x)
    return Scatter(
        points=tuple(points),
        front=_staircase(front),
        x_ticks=tuple(PlotTick(x_axis.at(v), short_count(v)) for v in x_axis.ticks()),
        y_ticks=tuple(PlotTick(y_axis.at(v), f"{v * 100:g} %") for v in y_axis.ticks()),
        limit_y=y_axis.at(1.0) if y_axis.low < 1.0 < y_axis.high else None,
    )


def front_rows(exploration: ExplorationReport) -> tuple[TrialInfo, ...]:
    """The Pareto front, fastest first; an even choice of a long one, with its ends and the chosen trial."""
    front = [t for t in exploration.trials if t.on_front and t.latency_cycles is not None]
    front.sort(key=lambda t: t.latency_cycles or 0)
    if len(front) <= FRONT_ROWS:
        return tuple(front)
    kept = {round(i * (len(front) - 1) / (FRONT_ROWS - 1)) for i in range(FRONT_ROWS)}
    return tuple(t for i, t in enumerate(front) if i in kept or t.chosen)


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis from `low` to `high`, drawn between two pixel positions."""

    low: float
    high: float
    start: float
    stop: float

    @staticmethod
    def of(values: Sequence[float], start: float, stop: float) -> _Axis:
        low, high = min(values) / 1.15, max(values) * 1.15
        return _Axis(low, high, start, stop)

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[float]:
        """1, 2, 5 in every decade; only powers of ten where that would be crowded."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [float(f"{s}e{d}") for d in decades for s in steps]
            inside = [t for t in ticks if self.low <= t <= self.high]
            if len(inside) <= 7:
                return inside or [self.low, self.high]
        return [self.low, self.high]


def _staircase(points: Sequence[PlotPoint]) -> str:
    """The border of what the front dominates."""
    if not points:
        return ""
    path = f"M{points[0].x:g} {points[0].y:g}"
    for point in points[1:]:
        path += f" H{point.x:g} V{point.y:g}"
    return path


def short_count(value: float) -> str:
    """A number short enough for a tick or a box."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            scale = 1e3 if unit == "k" else size
            return f"{value / scale:.3g}{unit}"
    return f"{value:g}"
