"""How many lanes a kernel needs at least, to be through in so many iterations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.space.padding import MOST_WASTE

LargestSizes = tuple[int, ...]
"""Of a nest's dims: up to how much each may be padded."""


@dataclass(frozen=True)
class FewestLanes:
    """The ways to unroll a nest of which none is beaten: iterations ascending, and the lanes of each descending."""

    iterations: tuple[int, ...]
    lanes: tuple[int, ...]

    def within(self, iterations: float) -> int | None:
        """The fewest lanes that leave no more iterations than these; None where no lanes are enough."""
        place = bisect_right(self.iterations, iterations)
        return self.lanes[place - 1] if place else None


def padded_most(op: TensorOp, dims: Dims) -> LargestSizes:
    """Lanes divide what a dim is padded to, and a dim that nothing pads itself."""
    paddable = {d for d in range(len(op.trips)) if dims.of_loop(op, d) in dims.paddable}
    return tuple(int(trip * (1 + MOST_WASTE)) if d in paddable else trip for d, trip in enumerate(op.trips))


@cache
def lanes_of_dim(trip: int, most: int) -> Sequence[int]:
    """Every number of lanes that divides some size of a dim, ascending; more than its indices are of no use."""
    return [lanes for lanes in range(1, trip + 1) if ceil(trip / lanes) * lanes <= most]


@cache
def fewest_lanes(trips: tuple[int, ...], most: LargestSizes | None = None) -> FewestLanes:
    """Of a nest with these trips, each dim padded up to so much; without that, to whatever its lanes ask for."""
    found: list[tuple[int, int]] = [(1, 1)]
    for trip, size in sorted(zip(trips, most or [2 * trip for trip in trips], strict=True)):
        # of all lanes that leave a dim so many steps, the fewest
        steps = {ceil(trip / lanes): lanes for lanes in reversed(lanes_of_dim(trip, size))}
        found = _unbeaten([(many * step, n * lanes) for many, n in found for step, lanes in steps.items()])
    return FewestLanes(tuple(many for many, _ in found), tuple(n for _, n in found))


def _unbeaten(ways: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for way in sorted(ways):
        if not kept or way[1] < kept[-1][1]:
            kept.append(way)
    return kept
