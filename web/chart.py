"""The frame of a chart in percent of its room, so that it fits any screen while its words keep their size.

A chart is an SVG as wide as its column. Axes, labels and single marks are placed in percent; paths live in a box of
100 by 100 that is stretched, with strokes that are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from penstock.web.axis import Axis

_EDGE = 6.0
_APART_ON_A_PHONE = 18.0
"""What a label needs of the room that there is."""
_SHIFT = {"start": _APART_ON_A_PHONE / 2, "middle": 0.0, "end": -_APART_ON_A_PHONE / 2}


@dataclass(frozen=True)
class Tick:
    at: float
    text: str
    anchor: str
    wide: bool
    """Its label is left out where there is little room."""


@dataclass(frozen=True)
class LimitLine:
    """A line that figures should keep below."""

    at: float
    text: str


def x_ticks(axis: Axis, text: Callable[[float], str]) -> tuple[Tick, ...]:
    """Of a horizontal axis; the first and the last label do not stick out."""
    ticks: list[Tick] = []
    last = -100.0
    for value in axis.ticks:
        at = axis.pixel(value)
        anchor = "start" if at < _EDGE else "end" if at > 100 - _EDGE else "middle"
        middle = at + _SHIFT[anchor]
        is_close = middle - last < _APART_ON_A_PHONE
        last = last if is_close else middle
        ticks.append(Tick(at, text(value), anchor, is_close))
    return tuple(ticks)


def y_ticks(axis: Axis, text: Callable[[float], str]) -> tuple[Tick, ...]:
    return tuple(Tick(axis.pixel(value), text(value), "end", False) for value in axis.ticks)


def dots_path(places: Iterable[tuple[float, float]]) -> str:
    """Many dots as one path: lines of no length, which a round stroke makes visible."""
    return "".join(f"M{x:g} {y:g}h0" for x, y in places)


def stairs_path(places: Iterable[tuple[float, float]], *, to: float | None = None) -> str:
    """From one place to the next first across, then down; at last across to the edge, if one is named."""
    path = ""
    for x, y in places:
        path += f"H{x:g}V{y:g}" if path else f"M{x:g} {y:g}"
    return path + (f"H{to:g}" if path and to is not None else "")
