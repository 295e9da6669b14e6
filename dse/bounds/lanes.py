"""How many lanes a kernel needs at least, to be through in so many iterations."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from math import ceil


@dataclass(frozen=True)
class FewestLanes:
    """The ways to unroll a nest of which none is beaten: iterations ascending, and the lanes of each descending."""

    iterations: tuple[int, ...]
    lanes: tuple[int, ...]

    def within(self, iterations: float) -> int | None:
        """The fewest lanes that leave no more iterations than these; None where no lanes are enough."""
        place = bisect_right(self.iterations, iterations)
        return self.lanes[place - 1] if place else None


@cache
def fewest_lanes(trips: tuple[int, ...]) -> FewestLanes:
    """Of a nest with these trips, every dim padded to whatever its lanes ask for: less would not do either."""
    found: list[tuple[int, int]] = [(1, 1)]
    for trip in sorted(trips):
        # of all lanes that leave a dim so many steps, the fewest
        steps = sorted({ceil(trip / lanes) for lanes in range(1, trip + 1)})
        found = _unbeaten([(many * step, n * ceil(trip / step)) for many, n in found for step in steps])
    return FewestLanes(tuple(many for many, _ in found), tuple(n for _, n in found))


def _unbeaten(ways: list[tuple[int, int]]) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for way in sorted(ways):
        if not kept or way[1] < kept[-1][1]:
            kept.append(way)
    return kept
