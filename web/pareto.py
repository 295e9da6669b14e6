"""The trade-off of a run as a scatter: two figures of each trial, the front, the limits, and what does not fit.

A third figure is told by shade: the third of the trials that have least of it is the darkest.

Trials of different evidence are never joined into one front: the front is drawn over the evidence that most
trials carry, and the others keep their own mark.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from penstock.web.axis import Axis, fit_axis
from penstock.web.chart import LimitLine, Tick, dots_path, stairs_path, x_ticks, y_ticks

MOST_POINTS = 600
MOST_LINKS = 60
_ROOM = (0.5, 0.8, 1.2, 1.6, 2.2, 3.2)
"""Of a hundredth of the drawing within which one mark stands for all of its kind, until there are few enough."""

ShowValue = Callable[[float], str]


class Dot(NamedTuple):
    """One trial with both figures known. A tuple, since there are ten thousand of them."""

    number: int
    x: float
    y: float
    evidence: str
    feasible: bool
    chosen: bool = False
    z: float = 0.0


@dataclass(frozen=True)
class ThirdFigure:
    """A figure that is told by shade."""

    name: str
    text: ShowValue


@dataclass(frozen=True)
class Shade:
    """What a shade stands for, and the marks that have it."""

    style: str
    words: str
    path: str


@dataclass(frozen=True)
class Mark:
    """A trial that is drawn by itself: it leads to the trial's page."""

    dot: Dot
    px: float
    py: float
    title: str


@dataclass(frozen=True)
class Plot:
    """Everything that the template draws; no arithmetic is left to it."""

    x_name: str
    y_name: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    shades: tuple[Shade, ...]
    """What fits: one shade, or one for each third of the trials by a third figure."""
    third: str
    misfits: str
    faded: str
    """What was not asked for."""
    front: str
    marks: tuple[Mark, ...]
    """Of the front, and the chosen one."""
    chosen: Mark | None
    x_limit: LimitLine | None
    y_limit: LimitLine | None
    evidence: str
    others: int
    left_out: int
    shown: tuple[int, ...]
    points: str
    """Of every trial that is drawn its number, place and words, as JSON: what hovering looks at."""
    axes: str
    """Which figures lie across and upwards, and from where to where, as JSON: what a drawn frame stands for."""


def pareto_front(dots: Sequence[Dot]) -> list[Dot]:
    """The dots that no other dot beats in all figures (smaller is better), from left to right."""
    front: list[Dot] = []
    least: list[Dot] = []
    """Of the front those that beat more of what is to come: no other of them has less of both y and z."""
    for dot in sorted(dots, key=attrgetter("x", "y", "z")):
        if not any(one.y <= dot.y and one.z <= dot.z for one in least):
            front.append(dot)
            least = [one for one in least if one.y < dot.y or one.z < dot.z] + [dot]
    return front


def draw_pareto(
    dots: Sequence[Dot],
    *,
    x_name: str,
    y_name: str,
    x_text: ShowValue,
    y_text: ShowValue,
    x_limit: float | None = None,
    y_limit: float | None = None,
    third: ThirdFigure | None = None,
    figures: tuple[str, str] = ("", ""),
    kept: frozenset[int] | None = None,
) -> Plot | None:
    """The plot, or None while there is nothing to draw. Trials that are not `kept` are pale and cannot be hit."""
    if not dots:
        return None
    evidence = Counter(dot.evidence for dot in dots).most_common(1)[0][0]
    front = pareto_front([dot for dot in dots if dot.feasible and dot.evidence == evidence])
    x_axis = fit_axis([dot.x for dot in dots], 0.0, 100.0)
    y_axis = fit_axis([dot.y for dot in dots], 100.0, 0.0, from_zero=True)
    on_front = {dot.number for dot in front}
    seen = _seen(dots, on_front, x_axis, y_axis, kept)
    shown = sorted(seen, key=lambda dot: (not dot.chosen, dot.number not in on_front, not dot.feasible, dot.x))
    drawn = [Mark(d, x_axis.pixel(d.x), y_axis.pixel(d.y), _title(d, x_text, y_text, third)) for d in shown]
    marks = [mark for mark in drawn if kept is None or mark.dot.number in kept]
    linked = [mark for mark in marks if mark.dot.number in on_front][:MOST_LINKS]
    alone = {mark.dot.number for mark in linked}
    plain = [mark for mark in marks if mark.dot.number not in alone]
    return Plot(
        x_name=x_name + (" (log)" if x_axis.logarithmic else ""),
        y_name=y_name + (" (log)" if y_axis.logarithmic else ""),
        x_ticks=x_ticks(x_axis, x_text),
        y_ticks=y_ticks(y_axis, y_text),
        shades=_shades([mark for mark in marks if mark.dot.feasible], alone, third),
        third=third.name if third else "",
        misfits=dots_path((mark.px, mark.py) for mark in plain if not mark.dot.feasible),
        front="" if third else stairs_path((x_axis.pixel(dot.x), y_axis.pixel(dot.y)) for dot in front),
        marks=tuple(sorted(linked, key=lambda mark: mark.dot.x)),
        faded=dots_path((m.px, m.py) for m in drawn if kept is not None and m.dot.number not in kept),
        chosen=next((mark for mark in drawn if mark.dot.chosen), None),
        x_limit=_limit(x_axis, x_limit, x_text),
        y_limit=_limit(y_axis, y_limit, y_text),
        evidence=evidence,
        others=sum(dot.evidence != evidence for dot in dots),
        left_out=len(dots) - len(shown),
        shown=tuple(mark.dot.number for mark in marks),
        points=json.dumps([[m.dot.number, m.px, m.py, m.title] for m in marks], separators=(",", ":")),
        axes=json.dumps([_range(*one) for one in zip(figures, (x_axis, y_axis), strict=True)]),
    )


def _range(figure: str, axis: Axis) -> tuple[str, float, float, bool]:
    return figure, axis.low, axis.high, axis.logarithmic


def _limit(axis: Axis, value: float | None, text: ShowValue) -> LimitLine | None:
    """Drawn where it lies on the drawing; one that is far away says nothing about these trials."""
    if value is None or not axis.low < value < axis.high:
        return None
    return LimitLine(axis.pixel(value), f"limit {text(value)}")


def _seen(
    dots: Sequence[Dot], on_front: set[int], x_axis: Axis, y_axis: Axis, kept: frozenset[int] | None
) -> list[Dot]:
    """Of dots that would cover each other one, so that a drawing of any number of trials stays small.

    The front and the chosen trial are always drawn.
    """
    if len(dots) <= MOST_POINTS:
        return list(dots)
    always = [dot for dot in dots if dot.chosen or dot.number in on_front]
    is_kept = (lambda dot: True) if kept is None else (lambda dot: dot.number in kept)
    across, upwards = x_axis.pixels([dot.x for dot in dots]), y_axis.pixels([dot.y for dot in dots])
    left = list(zip(across, upwards, dots, strict=True))
    for room in _ROOM:
        left = list({(x // room, y // room, dot.feasible, is_kept(dot)): (x, y, dot) for x, y, dot in left}.values())
        if len(left) <= MOST_POINTS:
            break
    drawn = {dot.number for dot in always}
    return always + [dot for _, _, dot in left if dot.number not in drawn]


def _shades(fitting: Sequence[Mark], alone: set[int], third: ThirdFigure | None) -> tuple[Shade, ...]:
    """The marks, but for those that stand alone, by how much of the third figure they have."""

    def path(marks: Sequence[Mark]) -> str:
        return dots_path((mark.px, mark.py) for mark in marks if mark.dot.number not in alone)

    values = sorted(mark.dot.z for mark in fitting)
    if third is None or not values or values[0] == values[-1]:
        return (Shade("fit", "fits", path(fitting)),)
    ends = [values[(len(values) - 1) * part // 3] for part in (1, 2)]
    bounds = list(dict.fromkeys([*ends, values[-1]]))
    shades: list[Shade] = []
    below = float("-inf")
    for bound, style in zip(bounds, ("fit least", "fit middle", "fit most"), strict=False):
        words = f"{third.name} up to {third.text(bound)}"
        shades.append(Shade(style, words, path([mark for mark in fitting if below < mark.dot.z <= bound])))
        below = bound
    return tuple(shades)


def _title(dot: Dot, x_text: ShowValue, y_text: ShowValue, third: ThirdFigure | None) -> str:
    more = f", {third.text(dot.z)}" if third else ""
    title = f"trial {dot.number}: {x_text(dot.x)}, {y_text(dot.y)}{more} ({dot.evidence})"
    return title if dot.feasible else title + ", outside the limits"
