"""A memory cut into cells, the largest blocks that every access of a nest takes or leaves as a whole.

All accesses of a nest to one memory have lane windows whose corners are affine in the loop counters. Along each
dim the cell is the greatest common divisor of the windows' extents, of the counters' coefficients and of the
memory's size: no window cuts a cell. Usually a window is one cell; a word that is stored whole and loaded in
parts is several.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from xdsl.ir.affine import AffineMap

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.affine import coefficients

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Window:
    """One access: the lanes' corner in each dim is `factors @ counters + origin`, its size `extents`."""

    factors: tuple[tuple[int, ...], ...]
    origin: tuple[int, ...]
    extents: tuple[int, ...]

    @staticmethod
    def of(address: AffineMap, loops: int, lanes: Sequence[int], word: Sequence[int]) -> Window:
        """A window of a memory; one word of a widened memory is all of its lanes."""
        rows = tuple(coefficients(e, loops) for e in address.results)
        extents = (*(1 for _ in rows), *word) if word else tuple(lanes)
        return Window(
            (*rows, *((0,) * loops for _ in word)), (*address.eval([0] * loops, []), *(0 for _ in word)), extents
        )

    def in_block(self, factors: tuple[int, ...]) -> Window:
        """The same window in a stack of blocks, of which the counters choose one."""
        return Window((factors, *self.factors), (0, *self.origin), (1, *self.extents))


@dataclass(frozen=True)
class Cells:
    """How the accesses of one nest cut one memory. `shape` is the memory's; a stack's first dim may be any size."""

    shape: tuple[int, ...]
    size: tuple[int, ...]

    @staticmethod
    def of(shape: Sequence[int], windows: Sequence[Window]) -> Cells:
        return Cells(
            tuple(shape),
            tuple(
                math.gcd(extent, *(math.gcd(w.extents[d], w.origin[d], *w.factors[d]) for w in windows))
                for d, extent in enumerate(shape)
            ),
        )

    @cached_property
    def counts(self) -> tuple[int, ...]:
        return tuple(n // s for n, s in zip(self.shape, self.size, strict=True))

    @cached_property
    def lanes(self) -> int:
        """How many elements a cell has."""
        return math.prod(self.size)

    def view(self, memory: Array) -> Array:
        """The memory with its dims split in two: which cell, and where in it. Shares the memory's storage."""
        rank = len(self.size)
        counts = [n // s for n, s in zip(memory.shape, self.size, strict=True)]
        split = memory.reshape([n for pair in zip(counts, self.size, strict=True) for n in pair])
        return split.transpose([*range(0, 2 * rank, 2), *range(1, 2 * rank, 2)])

    def table(self, memory: Array) -> Array:
        """One row a cell, in the order of their numbers; a copy unless the memory lies like that."""
        return self.view(memory).reshape(-1, self.lanes)

    def gather(self, memory: Array, numbers: Indices) -> Array:
        """Some rows of the table."""
        view = self.view(memory)
        return view[np.unravel_index(numbers, view.shape[: len(self.size)])].reshape(-1, self.lanes)

    def scatter(self, memory: Array, numbers: Indices, rows: Array) -> None:
        """Overwrite cells, each named once."""
        view = self.view(memory)
        view[np.unravel_index(numbers, view.shape[: len(self.size)])] = rows.reshape(-1, *self.size)


class CellAccess:
    """One load or store as cells: which ones in each iteration, and how its lanes are laid out over them."""

    def __init__(self, cells: Cells, window: Window, lanes: Sequence[int]) -> None:
        counts, rank = cells.counts, len(cells.size)
        strides = [math.prod(counts[d + 1 :]) for d in range(rank)]
        parts = [e // s for e, s in zip(window.extents, cells.size, strict=True)]
        self.lanes = tuple(lanes)
        self.cells = cells
        self.count = math.prod(parts)
        """Cells an access."""
        self.factors = [
            sum(window.factors[d][loop] // cells.size[d] * strides[d] for d in range(rank))
            for loop in range(len(window.factors[0]) if rank else 0)
        ]
        self.origin = sum(o // s * stride for o, s, stride in zip(window.origin, cells.size, strides, strict=True))
        inside = np.indices(parts).reshape(rank, -1) if rank else np.zeros((0, 1), np.int64)
        self.offsets: Indices = (np.array(strides, np.int64) @ inside).astype(np.int64)
        self._interleaved = [n for pair in zip(parts, cells.size, strict=True) for n in pair]
        self._split = [*parts, *cells.size]
        self._together = [0, *(1 + i for d in range(rank) for i in (d, rank + d))]
        self._apart = [0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2)]

    def number(self, counters: Sequence[int]) -> int:
        """The first cell of one iteration."""
        return self.origin + sum(f * c for f, c in zip(self.factors, counters, strict=False))

    def numbers(self, counters: Sequence[Indices], count: int) -> Indices:
        """The cells of every iteration, a row each."""
        first = np.full(count, self.origin, np.int64)
        for factor, counter in zip(self.factors, counters, strict=False):
            if factor:
                first += factor * counter
        return first[:, None] + self.offsets

    def lanes_of(self, rows: Array) -> Array:
        """From (iterations, cells, elements) to the lanes of the vector."""
        if self.count > 1:
            rows = rows.reshape(-1, *self._split).transpose(self._together)
        return rows.reshape(-1, *self.lanes)

    def rows_of(self, lanes: Array) -> Array:
        """From the lanes of a vector to (iterations, cells, elements)."""
        if self.count > 1:
            lanes = lanes.reshape(-1, *self._interleaved).transpose(self._apart)
        return lanes.reshape(-1, self.count, self.cells.lanes)
