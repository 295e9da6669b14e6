"""Trials as lines across their parameters and figures: which settings the good ones share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web.text import Document
from penstock.web.trials_view import FIGURES, shown_value

_DRAWN = ("latency_us", "resource_share", "energy_uj")


@dataclass(frozen=True)
class Rail:
    """An axis: where it stands, what it is called, and what its ends mean."""

    at: float
    name: str
    anchor: str
    high: str
    low: str


@dataclass(frozen=True)
class Strand:
    """A trial's line."""

    number: int
    path: str
    style: str


@dataclass(frozen=True)
class ParallelPlot:
    rails: tuple[Rail, ...]
    strands: tuple[Strand, ...]


def draw_parallel(trials: Sequence[Document], names: Sequence[str]) -> ParallelPlot | None:
    """Of trials that have figures; parameters first, figures last. None where there is nothing to compare."""
    ended = [trial for trial in trials if trial["figures"]]
    figures = [
        column for column in FIGURES if column.name in _DRAWN and any(column.name in t["figures"] for t in ended)
    ]
    axes = [_scale(name, [t["params"].get(name) for t in ended], shown_value) for name in names]
    axes += [_scale(c.heading, [t["figures"].get(c.name) for t in ended], c.show) for c in figures]
    if len(ended) < 2 or len(axes) < 2 or not names:
        return None
    places = [round(100 * index / (len(axes) - 1), 2) for index in range(len(axes))]
    strands = [
        Strand(trial["number"], _path(places, [axis[3][index] for axis in axes]), _style(trial))
        for index, trial in enumerate(ended)
    ]
    return ParallelPlot(
        rails=tuple(
            Rail(at, name, "start" if at == 0 else "end" if at == 100 else "middle", high, low)
            for at, (name, high, low, _) in zip(places, axes, strict=True)
        ),
        strands=tuple(sorted(strands, key=lambda strand: ("misfit", "fit", "chosen").index(strand.style))),
    )


def _scale(name: str, values: Sequence[Any], show: Callable[[Any], str]) -> tuple[str, str, str, list[float | None]]:
    """The axis's name, its ends in words, and every value between 0 at the top and 100; None where there is none."""
    known = [value for value in values if value is not None]
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        low, high = min(known), max(known)
        span = (high - low) or 1
        return (
            name,
            show(high),
            show(low),
            [None if v is None else round(100 - 100 * (v - low) / span, 1) for v in values],
        )
    words = sorted({shown_value(value) for value in known})
    place: Mapping[str, float] = {word: 100 * i / max(1, len(words) - 1) for i, word in enumerate(words)}
    at = [None if value is None else round(place[shown_value(value)], 1) for value in values]
    return name, words[0] if words else "", words[-1] if len(words) > 1 else "", at


def _path(places: Sequence[float], values: Sequence[float | None]) -> str:
    """A line that leaves out the axes on which the trial has no value."""
    points = [(x, y) for x, y in zip(places, values, strict=True) if y is not None]
    return "".join(f"{'L' if index else 'M'}{x:g} {y:g}" for index, (x, y) in enumerate(points))


def _style(trial: Document) -> str:
    return "chosen" if trial["chosen"] else "fit" if trial["state"] == "complete" else "misfit"
