"""How far the figures of one rung of evidence are off the next: a bar for each pair of rungs, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.web import text
from penstock.web.axis import fit_axis
from penstock.web.text import Document

WIDTH, LEFT, RIGHT = 560, 8, 16
LEAST_SCALE = 0.01  # what is exact to a hundredth of a per cent shall not look far off


@dataclass(frozen=True)
class RungRow:
    """Half of the designs lie within `typical`, all of them within `worst`; both as pixels too."""

    weaker: str
    stronger: str
    group: str
    words: str
    designs: str
    typical: float
    worst: float


@dataclass(frozen=True)
class RungTick:
    at: float
    text: str


@dataclass(frozen=True)
class RungErrors:
    rows: tuple[RungRow, ...]
    ticks: tuple[RungTick, ...]
    start: float
    width: int = WIDTH


def view_rungs(pairs: Sequence[Document]) -> RungErrors | None:
    """The picture, or None where nothing was measured twice."""
    if not pairs:
        return None
    axis = fit_axis([0.0, LEAST_SCALE, *(float(pair["worst"]) for pair in pairs)], LEFT, WIDTH - RIGHT)
    rows = (
        RungRow(
            weaker=pair["weaker"],
            stronger=pair["stronger"],
            group=str(pair["family"]),
            words=_words(pair),
            designs=f"{pair['designs']:,} design{'s' if pair['designs'] != 1 else ''}",
            typical=axis.pixel(pair["typical"]),
            worst=axis.pixel(pair["worst"]),
        )
        for pair in pairs
    )
    ticks = tuple(RungTick(axis.pixel(value), text.percent(value)) for value in axis.ticks)
    return RungErrors(tuple(rows), ticks, axis.pixel(0.0))


def _words(pair: Document) -> str:
    typical, worst, ratio = pair["typical"], pair["worst"], pair["median_ratio"]
    if worst == 0:
        return "exact"
    shift = "" if ratio == 1 else f", in the middle {text.percent(abs(ratio - 1))} too {'low' if ratio > 1 else 'high'}"
    return f"half are off by at most {text.percent(typical)}, the worst by {text.percent(worst)}{shift}"
