"""How many lanes a kernel needs at least, to be through in so many iterations."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil

from penstock.dse.lanes.alignment import divisors
from penstock.dse.lanes.pacing import MOST_PADDING
from penstock.dse.space.padding import padded_size
from penstock.dse.space.tiling import TilingSpace

DimSizes = tuple[tuple[int, ...], ...]
"""Of a nest's dims: every size that a design of the space may pad each to, its own the first."""


@dataclass(frozen=True)
class FewestLanes:
    """The ways to unroll a nest of which none is beaten: iterations ascending, and the lanes of each descending."""

    iterations: tuple[int, ...]
    lanes: tuple[int, ...]

    def within(self, iterations: float) -> int | None:
        """The fewest lanes that leave no more iterations than these; None where no lanes are enough."""
        place = bisect_right(self.iterations, iterations)
        return self.lanes[place - 1] if place else None


def sizes_of(space: TilingSpace) -> Mapping[str, DimSizes]:
    """Of every kernel. Lanes divide what a dim is padded to; a dim that nothing pads, or somebody decided, itself."""
    dims, fixed = space.dims, space.options.kernels
    held = {dims.of_loop(op, d) for op in space.graph.operations if op.layer in fixed for d in range(len(op.trips))}
    paddable = {number for number in dims.paddable if number not in held}
    tiles = tuple(int(tile) for tile in space.choices.get("default_tile_size", ()))
    return {
        op.layer: tuple(
            padded_to(trip, tiles) if dims.of_loop(op, d) in paddable else (trip,) for d, trip in enumerate(op.trips)
        )
        for op in space.graph.operations
    }


@cache
def padded_to(size: int, tiles: tuple[int, ...]) -> tuple[int, ...]:
    """To whole tiles of powers of two (`padding`), or by a few percent to any size (fitted and paced).

    A design's tiles divide that, and a dim is padded no further than they ask for: to their next multiple.
    """
    wanted = {*range(size, int(size * MOST_PADDING) + 1), *(padded_size(size, tile) for tile in tiles)}
    return tuple(sorted({ceil(size / tile) * tile for padded in wanted for tile in divisors(padded)}))


@cache
def lanes_of_dim(trip: int, sizes: tuple[int, ...]) -> Sequence[int]:
    """Every number of lanes that divides some size of a dim, ascending; more than its indices are of no use."""
    return sorted({lanes for size in sizes for lanes in divisors(size) if lanes <= trip})


@cache
def steps_of_dim(trip: int, sizes: tuple[int, ...]) -> Sequence[tuple[int, int]]:
    """Those with the steps that they leave of each such size."""
    return sorted({(lanes, size // lanes) for size in sizes for lanes in divisors(size) if lanes <= trip})


@cache
def fewest_lanes(trips: tuple[int, ...], sizes: DimSizes | None = None) -> FewestLanes:
    """Of a nest with these trips, each dim padded to one of its sizes; without those, to whatever its lanes ask for."""
    found: list[tuple[int, int]] = [(1, 1)]
    for trip, some in sorted(zip(trips, sizes or [tuple(range(trip, 2 * trip)) for trip in trips], strict=True)):
        # of all lanes that leave a dim so many steps, the fewest
        steps = {ceil(trip / lanes): lanes for lanes in reversed(lanes_of_dim(trip, some))}
        found = _unbeaten([(many * step, n * lanes) for many, n in found for step, lanes in steps.items()])
    return FewestLanes(tuple(many for many, _ in found), tuple(n for _, n in found))


def _unbeaten(ways: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for way in sorted(ways):
        if not kept or way[1] < kept[-1][1]:
            kept.append(way)
    return kept
