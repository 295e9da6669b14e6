"""Settings as rows of numbers: each parameter's value by its position among the choices, many settings at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.dse.search.samplers import in_order, is_ordered, means_something
from penstock.dse.space.tiling import Choices, Conditions, Params, Value

Coordinates = tuple[int, ...]
"""A setting as positions among each parameter's choices; one that means nothing stands at 0."""
CoordinateRows = NDArray[np.intp]
"""A place in each row."""
Floats = NDArray[np.floating[Any]]

_REACH = 2  # how many places along an ordered parameter count as near
_LENGTH = 0.35


class Places:
    """What a space's settings look like as rows."""

    def __init__(self, choices: Choices, conditions: Conditions) -> None:
        self._choices, self._conditions = choices, conditions
        self.names = in_order(choices, conditions)
        self.ordered = [is_ordered(choices[name]) for name in self.names]
        self.sizes = np.array([len(choices[name]) for name in self.names], dtype=np.intp)
        counts = np.where(self.ordered, 1, self.sizes)
        self.columns = np.repeat(np.arange(len(self.names)), counts)
        """The parameter of each column of `features`."""
        first = np.cumsum(counts) - counts
        self._lines, self._others = np.flatnonzero(self.ordered), np.flatnonzero(np.logical_not(self.ordered))
        self._on_line, self._first_apart = first[self._lines], first[self._others]
        self._steps = _LENGTH / np.sqrt(np.maximum(self.sizes[self._lines] - 1, 1))
        self._changed = np.repeat(np.arange(len(self.names)), self.sizes)
        self._to = np.array([to for size in self.sizes.tolist() for to in range(size)], dtype=np.intp)
        self._apart = ~np.array(self.ordered, bool)[self._changed]
        self._hashed = np.random.default_rng(0).integers(1 << 63, size=len(self.names), dtype=np.uint64)
        self._allowed = [self._meant_by(name) for name in self.names]

    def _meant_by(self, name: str) -> list[tuple[int, NDArray[np.bool_]]]:
        """Where each parameter stands that decides whether this one means anything, and at which positions it does."""
        parents = self._conditions.get(name, {})
        return [
            (self.names.index(parent), np.array([choice in values for choice in self._choices[parent]]))
            if parent in self.names else (0, np.zeros(self.sizes[0], dtype=bool))
            for parent, values in parents.items()
        ]  # fmt: skip

    def at(self, params: Params) -> Coordinates:
        """Where a setting stands."""
        return tuple(self._choices[name].index(params[name]) if name in params else 0 for name in self.names)

    def params(self, place: Coordinates) -> dict[str, Value]:
        """The setting, without what means nothing in it."""
        params: dict[str, Value] = {}
        for name, position in zip(self.names, place, strict=True):
            if means_something(name, params, self._conditions):
                params[name] = self._choices[name][position]
        return params

    def tidy(self, rows: CoordinateRows) -> CoordinateRows:
        """The same settings, with what means nothing in them at 0."""
        meant = np.ones(rows.shape, dtype=bool)
        for column, parents in enumerate(self._allowed):
            for parent, allowed in parents:
                meant[:, column] &= meant[:, parent] & allowed[rows[:, parent]]
        return np.where(meant, rows, 0)

    def at_random(self, count: int, chance: np.random.Generator) -> CoordinateRows:
        return self.tidy(self._anywhere(count, chance))

    def _anywhere(self, count: int, chance: np.random.Generator) -> CoordinateRows:
        return (chance.random((count, len(self.sizes))) * self.sizes).astype(np.intp)

    def neighbours(self, place: Coordinates) -> CoordinateRows:
        """With one parameter changed: an ordered one by a little, any other to anything."""
        here = np.array(place, dtype=np.intp)
        steps = np.abs(self._to - here[self._changed])
        chosen = (steps > 0) & (self._apart | (steps <= _REACH))
        rows = np.tile(here, (int(chosen.sum()), 1))
        rows[np.arange(len(rows)), self._changed[chosen]] = self._to[chosen]
        return rows

    def around(self, places: Sequence[Coordinates], at_random: int, chance: np.random.Generator) -> CoordinateRows:
        """The neighbours of places, each also with one more parameter changed, and any others: each once."""
        near = np.concatenate([self.neighbours(place) for place in places])
        also = near.copy()
        every = np.arange(len(near))
        column = chance.integers(len(self.sizes), size=len(near))
        also[every, column] = self._anywhere(len(near), chance)[every, column]
        rows = self.tidy(np.concatenate([near, also, self._anywhere(at_random, chance)]))
        _, first = np.unique(rows.astype(np.uint64) @ self._hashed, return_index=True)
        return rows[np.sort(first)]

    def features(self, rows: CoordinateRows) -> Floats:
        """Places such that near ones are alike: ordered parameters along a line, the values of others apart."""
        table = np.zeros((len(rows), len(self.columns)))
        table[:, self._on_line] = rows[:, self._lines] * self._steps
        table[np.arange(len(rows))[:, None], self._first_apart + rows[:, self._others]] = _LENGTH
        return table
