"""The fewest cycles of kernels that must wait for each other: a linear program over their times and their lanes.

Each kernel has an iteration it begins with, one it ends with, and so many in between; the fewer, the more lanes it
needs, and lanes need operators. Lanes are taken for any number here, not just whole ones: at most as few as the lower
hull of all ways to unroll says. What one kernel must wait for of another is a part of its iterations (`needs.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.dse.bounds.chains import Chains
from penstock.dse.bounds.lanes import FewestLanes
from penstock.dse.bounds.needs import Needs
from penstock.dse.bounds.operators import Needed
from penstock.dse.support.linear import LinearProgram

_CUTS = 8
"""Sides of a hull that are known to begin with."""
_ROUNDS = 8
_NEAR = 0.002
_SURE = 1 - 1e-6
"""The solver's answers are floats."""
LEAST_SHARE = 1e-4
"""Smaller parts are not worth a row."""
COUNTED = ("dsp", "lut")


@dataclass(frozen=True)
class Working:
    """A kernel as its operators and its lanes see it."""

    layer: str
    lanes: FewestLanes
    needed: tuple[Needed, ...]


@dataclass(frozen=True)
class _Side:
    """Of the hull: no way to unroll has fewer lanes than this line says."""

    lanes: float
    slope: float

    def at(self, iterations: float) -> float:
        return self.lanes + self.slope * iterations


def hull_of(lanes: FewestLanes) -> tuple[tuple[int, int], ...]:
    """The corners of what no number of iterations goes below, from the fewest iterations on."""
    found: list[tuple[int, int]] = []
    for x, y in zip(lanes.iterations, lanes.lanes, strict=True):
        while len(found) > 1:
            (ax, ay), (bx, by) = found[-2:]
            if (by - ay) * (x - ax) < (y - ay) * (bx - ax):
                break
            found.pop()
        found.append((x, y))
    return tuple(found)


class Overlap:
    """Of one graph and limits. `shortest` gives cycles that no design is below; it never needs more than seconds."""

    def __init__(
        self, kernels: Sequence[Working], chains: Chains, needs: Needs, limits: Mapping[str, int], most: float
    ) -> None:
        self.kernels, self.chains, self.needs, self.limits = kernels, chains, needs, limits
        self.unit = max(most, 1.0)
        """Times are in this many cycles, so that all numbers are of one size."""
        self.corners = {one.layer: hull_of(one.lanes) for one in kernels}
        self.sides: dict[str, list[_Side]] = {}
        self.known: dict[str, set[int]] = {}
        for one in kernels:
            sides = [_side(a, b) for a, b in pairwise(self.corners[one.layer])]
            self.sides[one.layer] = sides
            self.known[one.layer] = (
                {round(n * (len(sides) - 1) / (_CUTS - 1)) for n in range(_CUTS)} if sides else set()
            )

    def shortest(self) -> float:
        found = 0.0
        for _ in range(_ROUNDS):
            solved = self._solve()
            if solved is None:  # numbers that the solver cannot tell apart: what was found holds
                return found
            cycles, times = solved
            better = cycles > found * (1 + _NEAR)
            found = max(found, cycles)
            if not self._refine(times) or not better:
                break
        return found * _SURE

    def _refine(self, times: Mapping[str, float]) -> bool:
        """One more side of each hull: that which says most of the times that were found."""
        new = False
        for one in self.kernels:
            corners = self.corners[one.layer]
            if len(corners) < 2:
                continue
            place = min(max(bisect_right([x for x, _ in corners], times[one.layer]) - 1, 0), len(corners) - 2)
            new |= place not in self.known[one.layer]
            self.known[one.layer].add(place)
        return new

    def cuts(self, layer: str) -> list[tuple[float, float]]:
        """Lines under all ways to unroll a kernel that were worth knowing: slope, and lanes at no iterations."""
        return [(side.slope, side.lanes) for side in (self.sides[layer][place] for place in sorted(self.known[layer]))]

    def _solve(self) -> tuple[float, dict[str, float]] | None:
        program, unit = LinearProgram("overlap"), self.unit
        whole = program.variable(cost=1)
        works = {one.layer: program.variable(one.lanes.iterations[0] / unit) for one in self.kernels}
        begins = {one.layer: program.variable(self.chains.before[one.layer] / unit) for one in self.kernels}
        ends = {one.layer: program.variable() for one in self.kernels}
        operators: dict[tuple[tuple[int, ...], ...], dict[int, float]] = {}
        ways: dict[tuple[tuple[int, ...], ...], Needed] = {}
        for one in self.kernels:
            layer, fewest = one.layer, one.lanes.lanes[-1]
            lanes = program.variable(fewest)
            for place in sorted(self.known[layer]):
                side = self.sides[layer][place]
                program.row({lanes: 1, works[layer]: -side.slope * unit}, ">=", side.lanes)
            program.row({ends[layer]: 1, begins[layer]: -1, works[layer]: -1}, ">=", 0)
            program.row({whole: 1, ends[layer]: -1}, ">=", self.chains.after[layer] / unit)
            for needed in one.needed:
                key = tuple(tuple(getattr(way, name) for name in COUNTED) for way in needed.ways)
                ways[key] = needed
                row = operators.setdefault(key, {})
                row[lanes] = row.get(lanes, 0.0) + float(needed.of_lanes)
        for layer, parts in self.needs.before.items():
            for other, part in parts.items():
                if part.share > LEAST_SHARE:
                    row = {begins[layer]: 1.0, begins[other]: -1.0, works[other]: -part.share}
                    program.row(row, ">=", (part.cycles - 1) / unit)
        for layer, parts in self.needs.after.items():
            for other, part in parts.items():
                if part.share > LEAST_SHARE:
                    row = {ends[other]: 1.0, ends[layer]: -1.0, works[other]: -part.share}
                    program.row(row, ">=", (part.cycles - 1) / unit)
        self._area(program, operators, ways)
        solution = program.solve(presolve=False)
        if solution is None:
            return None
        return solution.objective * unit, {layer: solution.values[v] * unit for layer, v in works.items()}

    def _area(
        self,
        program: LinearProgram,
        operators: Mapping[tuple[tuple[int, ...], ...], Mapping[int, float]],
        ways: Mapping[tuple[tuple[int, ...], ...], Needed],
    ) -> None:
        """Operators of a kind are built in whatever mixture suits; together they are within the limits."""
        used: dict[str, dict[int, float]] = {name: {} for name in COUNTED}
        for key, wanted in operators.items():
            built = [program.variable() for _ in ways[key].ways]
            program.row({**dict.fromkeys(built, 1.0), **{lanes: -share for lanes, share in wanted.items()}}, ">=", 0)
            for variable, way in zip(built, ways[key].ways, strict=True):
                for name in COUNTED:
                    used[name][variable] = getattr(way, name) / max(self.limits[name], 1)
        for name in COUNTED:
            if used[name]:
                program.row(used[name], "<=", 1.0 if self.limits[name] else 0.0)


def _side(a: tuple[int, int], b: tuple[int, int]) -> _Side:
    slope = (b[1] - a[1]) / (b[0] - a[0])
    return _Side(a[1] - slope * a[0], slope)
