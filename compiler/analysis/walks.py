"""Stream orders as plain loops: what the layout analyses count with, once a type has been read.

A walk visits slices of one shape. Its loops, from the outermost in, each move along one data dim or along none
(then they send what is inside them again).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.analysis.loops import shortest_loops
from penstock.compiler.dialects.affine import linear_form
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.errors import PenstockError

LoopOf = tuple[int, int, int | None]
"""Trips, step, and the data dim that the loop moves along (None: it repeats what is below it)."""


@dataclass(frozen=True)
class SliceWalk:
    """The shape of one slice, and the loops that place it."""

    element: tuple[int, ...]
    loops: tuple[LoopOf, ...]

    @property
    def extents(self) -> tuple[int, ...]:
        """How far loops and slice reach along each data dim."""
        return tuple(size + reach(self.loops, dim) for dim, size in enumerate(self.element))

    @property
    def tokens(self) -> int:
        return prod(trip for trip, _, _ in self.loops)

    def within(self, dim: int) -> list[LoopOf]:
        """The loops along one data dim."""
        return [loop for loop in self.loops if loop[2] == dim]

    def touches(self, dim: int) -> NDArray[np.bool_]:
        """Which places of a data dim the slices cover."""
        covered = np.zeros(self.extents[dim], bool)
        corners = positions(self.within(dim))
        for lane in range(self.element[dim]):
            covered[corners + lane] = True
        return covered

    def gapless(self, dim: int) -> bool:
        """Whether the slices cover every place of a data dim."""
        covered = self.element[dim]
        for trip, step, _ in sorted(self.within(dim), key=lambda loop: loop[1]):
            if step > covered:
                return bool(self.touches(dim).all())
            covered += (trip - 1) * step
        return True

    @property
    def tiles(self) -> bool:
        """Whether slices lie side by side, without overlap and without gaps, each loop a multiple of those inside."""
        for dim, size in enumerate(self.element):
            covered = size
            for trip, step, _ in sorted(self.within(dim), key=lambda loop: loop[1]):
                if step != covered:
                    return False
                covered *= trip
        return True


def read_walk(kind: ITensorType) -> SliceWalk:
    """The loops of a type in their shortest form; a type that walks along two dims at once is refused."""
    trips = kind.trip_counts
    targets: list[int | None] = [None] * len(trips)
    for dim, expression in enumerate(kind.iter_map.data.results):
        factors, offset = linear_form(expression, len(trips))
        if offset or any(factor not in (0, 1) for factor in factors):
            raise _no_walk(kind, f"coordinate {expression} is not a plain sum of loops")
        for position, factor in enumerate(factors):
            if factor and targets[position] is not None:
                raise _no_walk(kind, "one loop moves along two data dims at once")
            if factor:
                targets[position] = dim
    return SliceWalk(kind.element_shape, tuple(shortest_loops(list(zip(trips, kind.step_sizes, targets, strict=True)))))


def reach(loops: Sequence[LoopOf], dim: int) -> int:
    """How far the loops move the corner along a data dim."""
    return sum((trip - 1) * step for trip, step, target in loops if target == dim)


def positions(loops: Sequence[LoopOf]) -> NDArray[np.int64]:
    """Where a nest of loops along one dim stands, in the order of its iterations."""
    places = np.zeros(1, np.int64)
    for trip, step, _ in loops:
        places = (places[:, None] + np.arange(trip, dtype=np.int64) * step).ravel()
    return places


def covers(source: SliceWalk, target: SliceWalk, dim: int) -> bool:
    """Whether the source's slices hold every place of a data dim that the target's slices touch."""
    if source.gapless(dim):
        return target.extents[dim] <= source.extents[dim]
    sent, wanted = source.touches(dim), target.touches(dim)
    return len(wanted) <= len(sent) and not bool((wanted & ~sent[: len(wanted)]).any())


def _no_walk(kind: ITensorType, what: str) -> PenstockError:
    return PenstockError(
        code="bad-order", what=f"the layout of this stream cannot be converted: {what}", where=str(kind),
        limit="each coordinate is a sum of loops, each loop in one coordinate at most",
    )  # fmt: skip
