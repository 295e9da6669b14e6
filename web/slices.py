"""What a parameter does: its values beside an objective, and two parameters together with the best of each pair."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web.axis import fit_axis
from penstock.web.chart import Tick, dots_path, y_ticks
from penstock.web.search_view import ObjectiveAxis
from penstock.web.text import by_size
from penstock.web.trials_view import shown_value

MOST_SLICES, MOST_VALUES, MOST_DOTS = 12, 24, 300
_SHADES = 6

Sampled = tuple[Mapping[str, Any], float]
"""The setting of a trial that keeps its limits, and its value of the objective."""


@dataclass(frozen=True)
class ParameterSlice:
    """One parameter: a mark for each trial, and a line along the best of each value."""

    name: str
    explained: float
    """How much of the spread of the objective goes with the parameter alone, of 1."""
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    dots: str
    best: str
    words: str


@dataclass(frozen=True)
class PairCell:
    """The best of a pair of values; no text where nobody tried it."""

    text: str
    shade: int
    """0 is the best."""
    count: int


@dataclass(frozen=True)
class PairTable:
    across: str
    down: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PairCell, ...]], ...]


def varying(sample: Sequence[Sampled]) -> dict[str, float]:
    """Parameters with more than one value, the one that the objective goes with most first."""
    names = sorted({name for params, _ in sample for name in params})
    found = {name: _explained(name, sample) for name in names if len({repr(p.get(name)) for p, _ in sample}) > 1}
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def draw_slices(sample: Sequence[Sampled], axis: ObjectiveAxis) -> tuple[ParameterSlice, ...]:
    """The parameters that matter most."""
    return tuple(_slice(name, share, sample, axis) for name, share in [*varying(sample).items()][:MOST_SLICES])


def pair_table(sample: Sequence[Sampled], across: str, down: str, axis: ObjectiveAxis) -> PairTable | None:
    """None where one of both is no parameter, or has too many values to be told apart."""
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for params, value in sample:
        if across in params and down in params:
            found[shown_value(params[across]), shown_value(params[down])].append(value)
    columns, rows = (_values(sample, name) for name in (across, down))
    if not found or across == down or len(columns) > MOST_VALUES or len(rows) > MOST_VALUES:
        return None
    order = sorted(min(values) for values in found.values())

    def cell(pair: tuple[str, str]) -> PairCell:
        values = found.get(pair)
        if not values:
            return PairCell("", _SHADES, 0)
        return PairCell(axis.show(min(values)), _SHADES * order.index(min(values)) // len(order), len(values))

    lines = tuple((row, tuple(cell((column, row)) for column in columns)) for row in rows)
    return PairTable(across, down, tuple(columns), lines)


def _explained(name: str, sample: Sequence[Sampled]) -> float:
    """One minus the spread within its values over the whole; of logarithms, since objectives span decades."""
    groups: dict[str, list[float]] = defaultdict(list)
    for params, value in sample:
        groups[repr(params.get(name))].append(math.log(value) if value > 0 else 0.0)
    whole = squares([value for group in groups.values() for value in group])
    if whole == 0 or 2 * len(groups) > len(sample):  # a value for each trial would explain anything
        return 0.0
    return max(0.0, 1 - sum(map(squares, groups.values())) / whole)


def squares(values: Sequence[float]) -> float:
    """The sum of the squared distances from the mean; those of equal values are 0 whatever their mean rounds to."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values) if min(values) != max(values) else 0.0


def _slice(name: str, explained: float, sample: Sequence[Sampled], axis: ObjectiveAxis) -> ParameterSlice:
    values = _values(sample, name)
    room = max(len(values) - 1, 1)
    place = {value: 4 + 92 * index / room if len(values) > 1 else 50.0 for index, value in enumerate(values)}
    upwards = fit_axis([value for _, value in sample], 100.0, 0.0)
    best: dict[str, float] = {}
    for params, value in sample:
        if name in params:
            text = shown_value(params[name])
            best[text] = min(value, best.get(text, value))
    step = -(-len(sample) // MOST_DOTS)
    dots = [(place[shown_value(p[name])], upwards.pixel(v)) for p, v in sample[::step] if name in p]
    points = [(place[value], upwards.pixel(best[value])) for value in values]
    every = -(-len(values) // 6)
    last = len(values) - 1
    ticks = tuple(
        Tick(place[value], value[:14], "start" if i == 0 else "end" if i == last else "middle", wide=0 < i < last)
        for i, value in enumerate(values)
        if i % every == 0
    )
    winner = min(best, key=lambda text: best[text])
    return ParameterSlice(
        name=name, explained=explained, x_ticks=ticks, y_ticks=y_ticks(upwards, axis.show), dots=dots_path(dots),
        best="".join(f"{'L' if i else 'M'}{x:g} {y:g}" for i, (x, y) in enumerate(points)),
        words=f"best {axis.show(best[winner])} with {winner}",
    )  # fmt: skip


def _values(sample: Sequence[Sampled], name: str) -> list[str]:
    """Numbers by size, words by letter."""
    known = {shown_value(params[name]): params[name] for params, _ in sample if name in params}
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known.values()):
        return sorted(known, key=lambda text: known[text])
    return sorted(known, key=by_size)
