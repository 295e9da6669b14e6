"""The trade-off of a run as an SVG scatter: two figures per trial, the front, and what does not fit.

Trials of different evidence are never joined into one front: the front is drawn over the evidence that most
trials carry, and the others keep their own mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.web.axis import Axis, fit_axis

WIDTH, HEIGHT = 560, 340
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 26, 46
MOST_POINTS = 600
_ROOM = (3, 4, 6, 8, 11, 16)
"""Pixels within which one mark stands for all of its kind, tried until there are few enough."""


@dataclass(frozen=True)
class Dot:
    """One trial with both figures known."""

    number: int
    x: float
    y: float
    evidence: str
    feasible: bool
    chosen: bool = False


@dataclass(frozen=True)
class Mark:
    """A trial's place and look on the drawing."""

    dot: Dot
    px: float
    py: float
    style: str
    title: str


@dataclass(frozen=True)
class ParetoTick:
    at: float
    text: str


@dataclass(frozen=True)
class Plot:
    """Everything that the template draws; no arithmetic is left to it."""

    x_name: str
    y_name: str
    x_ticks: tuple[ParetoTick, ...]
    y_ticks: tuple[ParetoTick, ...]
    marks: tuple[Mark, ...]
    front: str
    limit_y: float | None
    evidence: str
    others: int
    left_out: int
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def pareto_front(dots: Sequence[Dot]) -> list[Dot]:
    """The dots that no other dot beats in both figures (smaller is better), from left to right."""
    front: list[Dot] = []
    for dot in sorted(dots, key=lambda d: (d.x, d.y)):
        if not front or dot.y < front[-1].y:
            front.append(dot)
    return front


def draw_pareto(
    dots: Sequence[Dot],
    *,
    x_name: str,
    y_name: str,
    x_text: Callable[[float], str],
    y_text: Callable[[float], str],
    y_limit: float | None = None,
) -> Plot | None:
    """The plot, or None while there is nothing to draw."""
    if not dots:
        return None
    evidence = Counter(dot.evidence for dot in dots).most_common(1)[0][0]
    front = pareto_front([dot for dot in dots if dot.feasible and dot.evidence == evidence])
    x_axis = fit_axis([dot.x for dot in dots], LEFT, WIDTH - RIGHT)
    y_axis = fit_axis([dot.y for dot in dots], HEIGHT - BOTTOM, TOP, from_zero=True)
    on_front = {dot.number for dot in front}
    ordered = sorted(dots, key=lambda dot: (not dot.chosen, dot.number not in on_front, not dot.feasible, dot.x))
    shown = _seen(ordered, on_front, x_axis, y_axis)
    marks = [_mark(dot, x_axis, y_axis, dot.number in on_front, x_text, y_text) for dot in reversed(shown)]
    limit = y_axis.pixel(y_limit) if y_limit is not None and y_axis.low < y_limit < y_axis.high else None
    return Plot(
        x_name=x_name + (" (log)" if x_axis.logarithmic else ""),
        y_name=y_name + (" (log)" if y_axis.logarithmic else ""),
        x_ticks=_ticks(x_axis, x_text),
        y_ticks=_ticks(y_axis, y_text),
        marks=tuple(marks),
        front=_staircase(front, x_axis, y_axis),
        limit_y=limit,
        evidence=evidence,
        others=sum(dot.evidence != evidence for dot in dots),
        left_out=len(dots) - len(shown),
    )


def _seen(dots: Sequence[Dot], on_front: set[int], x_axis: Axis, y_axis: Axis) -> list[Dot]:
    """Of dots that would cover each other the first, so that a drawing of any number of trials stays small.

    The front and the chosen trial are always drawn.
    """
    if len(dots) <= MOST_POINTS:
        return list(dots)
    always = [dot for dot in dots if dot.chosen or dot.number in on_front]
    places = {(round(x_axis.pixel(d.x)), round(y_axis.pixel(d.y)), d.feasible): d for d in reversed(dots)}
    kept: dict[tuple[int, int, bool], Dot] = {}
    for room in _ROOM:
        kept = {(x // room, y // room, fits): dot for (x, y, fits), dot in places.items()}
        if len(kept) <= MOST_POINTS:
            break
    drawn = {dot.number for dot in always}
    return always + [dot for dot in kept.values() if dot.number not in drawn]


def _ticks(axis: Axis, text: Callable[[float], str]) -> tuple[ParetoTick, ...]:
    return tuple(ParetoTick(axis.pixel(value), text(value)) for value in axis.ticks)


def _mark(
    dot: Dot,
    x_axis: Axis,
    y_axis: Axis,
    on_front: bool,
    x_text: Callable[[float], str],
    y_text: Callable[[float], str],
) -> Mark:
    style = "cross" if not dot.feasible else "point on-front" if on_front else "point"
    title = f"trial {dot.number}: {x_text(dot.x)}, {y_text(dot.y)} ({dot.evidence})"
    if not dot.feasible:
        title += ", does not fit the platform"
    return Mark(dot, x_axis.pixel(dot.x), y_axis.pixel(dot.y), style, title)


def _staircase(front: Sequence[Dot], x_axis: Axis, y_axis: Axis) -> str:
    """The front as an SVG path: between two trials only the worse of both is known to be reachable."""
    if not front:
        return ""
    path = f"M{x_axis.pixel(front[0].x)} {y_axis.pixel(front[0].y)}"
    for dot in front[1:]:
        path += f"H{x_axis.pixel(dot.x)}V{y_axis.pixel(dot.y)}"
    return path
