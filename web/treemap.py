"""Areas for numbers: a squarified treemap in percent of its room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ASPECT = 2.4
"""How wide the drawing is for its height: rectangles are kept near squares on the screen."""


@dataclass(frozen=True)
class TreemapArea:
    key: str
    value: float
    x: float
    y: float
    width: float
    height: float


def lay_out(values: Sequence[tuple[str, float]]) -> tuple[TreemapArea, ...]:
    """Every value as an area of its share, the largest first; what is not above zero has none."""
    left = sorted(((key, value) for key, value in values if value > 0), key=lambda pair: -pair[1])
    total = sum(value for _, value in left)
    if not total:
        return ()
    scale = 100.0 * ASPECT * 100.0 / total
    areas: list[TreemapArea] = []
    x, y, width, height = 0.0, 0.0, 100.0 * ASPECT, 100.0
    while left:
        row = _best_row([value * scale for _, value in left], min(width, height))
        taken, left = left[:row], left[row:]
        strip = sum(value * scale for _, value in taken)
        along_y = width >= height
        thick = strip / (height if along_y else width)
        at = y if along_y else x
        for key, value in taken:
            long = value * scale / thick
            placed = (x, at, thick, long) if along_y else (at, y, long, thick)
            areas.append(
                TreemapArea(key, value, *(_percent(n, wide) for n, wide in zip(placed, (1, 0, 1, 0), strict=True)))
            )
            at += long
        if along_y:
            x, width = x + thick, width - thick
        else:
            y, height = y + thick, height - thick
    return tuple(areas)


def _best_row(areas: Sequence[float], side: float) -> int:
    """How many of the areas, laid along the side, are nearest to squares."""
    best, count, total = float("inf"), 0, 0.0
    for area in areas:
        total += area
        thick = total / side
        worst = max(max(thick * thick / one, one / (thick * thick)) for one in (areas[0], area))
        if worst > best:
            break
        best, count = worst, count + 1
    return max(1, count)


def _percent(value: float, wide: int) -> float:
    return round(value / ASPECT if wide else value, 3)
