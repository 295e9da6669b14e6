"""The fewest cycles of kernels that wait for each other where each is walked in one way: whole lanes in every dim.

A kernel's ways to walk say its lanes, its iterations, how many of these the parts are that others wait for, and how
many additions follow each other once its last terms are there: of a row, lanes along the row leave the most to wait
for, lanes along a sum the longest tree. One dim is outermost: what needs all of it waits for all of its tiles but one.
An integer program picks a way for each kernel. Ways that are near each other are one to begin with, as good as the best
of them in everything; those that it picks are then told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, log, prod

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.errors import PenstockError
from penstock.dse.bounds.chains import Chains
from penstock.dse.bounds.lanes import DimSizes, steps_of_dim
from penstock.dse.bounds.needs import IndexCounts, Needs
from penstock.dse.bounds.operators import Needed
from penstock.dse.bounds.overlap import COUNTED, LEAST_SHARE, Overlap
from penstock.dse.lanes.alignment import divisors
from penstock.dse.support.linear import LinearProgram

_MOST_BUNCHES = 240
"""Of all kernels to begin with, so that a program is solved in a second or so."""
_ROUNDS, _ROUNDS_OF_FEW = 6, 8
_FEW_KERNELS = 8
"""Whose programs are solved in tenths of a second."""
_EFFORT = 0.2
"""Of the solver's, a program: a bound that a second more would raise by little is one already."""
_PARTS_OF_ONE = 4
"""That what was picked is told apart into."""
_MOST_WAYS = 800
_RATIOS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.4, 2.0, 4.0)
"""How near to each other ways of a bunch are."""
_NEAR = 0.002
_SURE = 1 - 1e-6
FAR = 2.0
"""Ways that take so many times as long as is known to be needed are left out: the bound is at most that then."""

Ways = NDArray[np.int64]
"""A row a way: lanes, cycles of its iterations, additions of a tree beyond one, then the cycles of every part."""
LANES, ITERATIONS, TREE, PARTS = 0, 1, 2, 3


@dataclass(frozen=True)
class Unrolled:
    """A kernel with all ways to unroll it. `added` is what an addition of its sums takes until its result is there."""

    layer: str
    ways: Ways
    parts: Mapping[IndexCounts, int]
    """Which column has the iterations of a part."""
    needed: tuple[Needed, ...]
    added: int


def ways_of(
    op: TensorOp,
    sizes: DimSizes,
    parts: Sequence[IndexCounts],
    lanes: float = inf,
    iterations: float = inf,
    again: int = 0,
    keeping: int = 0,
) -> Ways:
    """Those of which none is beaten, with no more lanes and cycles than these; of too many, near ones as one.

    Each with each dim outermost that has steps: whatever needs all of that dim waits for all but its last tile.
    What is summed in several steps is added to one running sum, step after step (`_with_running_sums`).
    """
    most = prod(max(size) for d, size in enumerate(sizes) if d not in op.reductions)
    whole = [n for n, part in enumerate(parts) if all(part[d] >= op.trips[d] for d in op.reductions)]
    found: list[Ways] = []
    for outermost in (None, *(d for d, trip in enumerate(op.trips) if trip > 1)):
        ways = _walked(op, sizes, parts, outermost, lanes, iterations)
        ways[:, TREE] = [_additions(terms, steps) for terms, steps in ways[:, [TREE, -2]].tolist()]
        found += _with_running_sums(ways, whole, most, again, keeping)
    ways = np.concatenate(found)
    return _unbeaten(ways[ways[:, ITERATIONS] <= iterations])


def _with_running_sums(ways: Ways, whole: Sequence[int], most: int, again: int, keeping: int) -> Iterator[Ways]:
    """Ways with their iterations as cycles; the last columns, steps of a sum and results at once, are gone.

    A sum of several steps rests in a memory while others are added to: from one step to the next `again` cycles pass,
    and those that `keeping` it takes. Of `most` results there may be too few others. Or it stays in a register, and
    the next step waits for `again` alone, as does every iteration then.
    """
    steps, results = ways[:, -2], most // ways[:, -1]
    once, several = steps == 1, (steps > 1) & (results > 1)
    yield ways[once, :-2]
    kept = again + keeping
    resting = _every(ways[several], -(-kept // results[several]))
    summed = [ITERATIONS, *(PARTS + n for n in whole)]
    resting[:, summed] = np.maximum(resting[:, summed], kept * (steps[several, None] - 1) + 1)
    yield resting[:, :-2]
    yield _every(ways[~once], np.full(np.count_nonzero(~once), again))[:, :-2]


def _every(ways: Ways, cycles: NDArray[np.int64]) -> Ways:
    """An iteration every so many cycles, but at most one a cycle."""
    found, columns = ways.copy(), [ITERATIONS, *range(PARTS, ways.shape[1] - 2)]
    found[:, columns] = (found[:, columns] - 1) * np.maximum(cycles, 1)[:, None] + 1
    return found


def _walked(
    op: TensorOp, sizes: DimSizes, parts: Sequence[IndexCounts], outermost: int | None, lanes: float, iterations: float
) -> Ways:
    """With one dim outermost, or none where all are through at once.

    Until all dims are known, the third column has the terms that meet in an iteration; the last ones have the steps of
    a sum, and the results that an iteration adds to.
    """
    found = np.ones((1, PARTS + len(parts) + 2), np.int64)
    for d in sorted(range(len(op.trips)), key=lambda d: d == outermost):
        trip, summed = op.trips[d], d in op.reductions
        whole = [part[d] >= trip for part in parts]
        rows: list[tuple[int, ...]] = []
        before: list[int] = []
        for u, steps in steps_of_dim(trip, sizes[d]):
            if (outermost is None and steps > 1) or (d == outermost and steps == 1):
                continue
            done = (-(-min(part[d], trip) // u) for part in parts)
            rows.append((u, steps, u if summed else 1, *done, steps if summed else 1, 1 if summed else u))
            before.append(_before_last_tile(-(-trip // u), steps))
        if not rows:
            return np.empty((0, found.shape[1]), np.int64)
        if d == outermost:
            found = _with_outermost(found, np.array(rows, np.int64), np.array(before, np.int64), whole)
        else:
            found = (found[:, None, :] * _fewer(np.array(rows, np.int64))[None, :, :]).reshape(-1, found.shape[1])
        found = _fewer(found[(found[:, LANES] <= lanes) & (found[:, ITERATIONS] <= iterations)])
    return found


def _with_outermost(inside: Ways, rows: Ways, before: NDArray[np.int64], whole: Sequence[bool]) -> Ways:
    """All ways to walk the other dims, with all ways to walk one outside them.

    A part with all of that dim has every iteration of all its tiles but the last, or the first, and its own of that.
    """
    found = inside[:, None, :] * rows[None, :, :]
    for n, all_of_it in enumerate(whole):
        if all_of_it:
            column = PARTS + n
            own = inside[:, column, None] * (rows[:, column] - before)
            found[:, :, column] = inside[:, ITERATIONS, None] * before + own
    return found.reshape(-1, inside.shape[1])


def _before_last_tile(needed: int, steps: int) -> int:
    """How many of a dim's steps at least are in other tiles than the last that is needed; a dim has several tiles."""
    return min((needed - 1) // tile * tile for tile in divisors(steps)[:-1]) if steps > 1 else 0


def _additions(terms: int, steps: int) -> int:
    """Of so many numbers to one in each of these steps, those that wait for each other, beyond the first: a tree of the
    terms that meet, and then one to what the steps before have left."""
    return max((terms - 1).bit_length() + (steps > 1) - 1, 0)


def _fewer(ways: Ways) -> Ways:
    """Without those that are beaten; too many of them in bunches, each as good as the best of it in everything."""
    ways = np.unique(ways, axis=0)
    for ratio in _RATIOS:
        if len(ways) <= _MOST_WAYS:
            break
        _, bunch = np.unique(np.floor(np.log(ways) / log(ratio) + 1e-9), axis=0, return_inverse=True)
        least = np.full((int(bunch.max()) + 1, ways.shape[1]), np.iinfo(np.int64).max)
        np.minimum.at(least, bunch.ravel(), ways)
        ways = np.unique(least, axis=0)
    return _unbeaten(ways)


def _unbeaten(ways: Ways) -> Ways:
    """Without those that another is as good as in everything."""
    order = np.lexsort((ways[:, LANES], ways.sum(axis=1)))
    ways, kept = ways[order], np.ones(len(ways), bool)
    for n in range(len(ways)):
        if kept[n]:
            beaten = (ways[n + 1 :] >= ways[n]).all(axis=1)
            kept[n + 1 :] &= ~beaten
    return ways[kept]


class WholeLanes:
    """Of one graph and limits. `shortest` gives cycles that no design is below."""

    def __init__(
        self,
        kernels: Sequence[Unrolled],
        chains: Chains,
        needs: Needs,
        limits: Mapping[str, int],
        least: float,
        overlap: Overlap,
    ) -> None:
        self.overlap = overlap
        self.kernels, self.chains, self.needs, self.limits = kernels, chains, needs, limits
        self.unit = max(least, 1.0)
        self.most = ceil(self.unit * FAR)
        self.ways = {one.layer: one.ways[one.ways[:, ITERATIONS] <= self.most] for one in kernels}
        bunches = max(min(_MOST_BUNCHES // len(kernels), 24), 1)
        self.places = {layer: _near_ones(ways, bunches) for layer, ways in self.ways.items()}
        """Which ways count as one: the places of each bunch."""

    def shortest(self) -> float:
        if any(not len(ways) for ways in self.ways.values()):
            return float(self.most)  # and longer, were all ways kept
        found = 0.0
        for _ in range(_ROUNDS_OF_FEW if len(self.kernels) <= _FEW_KERNELS else _ROUNDS):
            try:
                solved = self._solve()
            except PenstockError:  # no solution in time
                solved = None
            if solved is None:
                break
            cycles, picked = solved
            found = max(found, cycles)
            if not self._told_apart(picked):
                break
        return min(found, float(self.most)) * _SURE

    def _told_apart(self, picked: Mapping[str, Sequence[int]]) -> bool:
        """Whether what was picked was more than one way somewhere."""
        new = False
        for layer, numbers in picked.items():
            bunches: list[NDArray[np.int64]] = []
            for number, bunch in enumerate(self.places[layer]):
                split = number in numbers and len(bunch) > 1
                bunches += _apart(self.ways[layer], bunch) if split else [bunch]
                new |= split
            self.places[layer] = bunches
        return new

    def _solve(self) -> tuple[float, Mapping[str, Sequence[int]]] | None:
        program, unit = LinearProgram("whole lanes"), self.unit
        whole = program.variable(cost=1)
        begins = {one.layer: program.variable(self.chains.before[one.layer] / unit) for one in self.kernels}
        ends = {one.layer: program.variable() for one in self.kernels}
        picks: dict[str, list[int]] = {}
        columns: dict[str, Ways] = {}
        for one in self.kernels:
            ways = self.ways[one.layer]
            columns[one.layer] = np.array([ways[bunch].min(axis=0) for bunch in self.places[one.layer]])
            picks[one.layer] = [program.choice() for _ in self.places[one.layer]]
            program.row(dict.fromkeys(picks[one.layer], 1.0), "==", 1)
        known = {one.layer: one for one in self.kernels}
        works = {one.layer: program.variable() for one in self.kernels}
        lanes = {one.layer: program.variable() for one in self.kernels}

        def weigh(layer: str, column: int, by: float) -> dict[int, float]:
            return {v: by * float(n) for v, n in zip(picks[layer], columns[layer][:, column].tolist(), strict=True)}

        def trees(layers: Sequence[str], into: dict[int, float]) -> dict[int, float]:
            for layer in layers:
                for v, n in weigh(layer, TREE, -known[layer].added / unit).items():
                    into[v] = into.get(v, 0.0) + n
            return into

        for one in self.kernels:
            layer = one.layer
            program.row({works[layer]: 1, **weigh(layer, ITERATIONS, -1 / unit)}, ">=", 0)
            program.row({lanes[layer]: 1, **weigh(layer, LANES, -1)}, ">=", 0)
            for slope, fewest in self.overlap.cuts(layer):
                program.row({lanes[layer]: 1, works[layer]: -slope * unit}, ">=", fewest)
            program.row({ends[layer]: 1, begins[layer]: -1, works[layer]: -1}, ">=", 0)
            after = self.chains.after[layer] / unit
            program.row(trees([layer], {whole: 1, ends[layer]: -1}), ">=", after)
            for times, sign, waits in ((begins, 1.0, self.needs.before[layer]), (ends, -1.0, self.needs.after[layer])):
                for other, part in waits.items():
                    between = {times[layer]: sign, times[other]: -sign}
                    cycles = (part.cycles - 1) / unit
                    row = between | weigh(other, known[other].parts[part.loops], -1 / unit)
                    program.row(trees(part.through, row), ">=", cycles)
                    if part.share > LEAST_SHARE:
                        program.row(trees(part.through, between | {works[other]: -part.share}), ">=", cycles)
        self._area(program, {layer: {v: 1.0} for layer, v in lanes.items()})
        solution = program.solve(_EFFORT, _NEAR)
        if solution is None:
            return None
        chosen = {layer: [n for n, v in enumerate(vs) if solution.values[v] > 0.01] for layer, vs in picks.items()}
        return solution.bound * unit, chosen

    def _area(self, program: LinearProgram, lanes: Mapping[str, Mapping[int, float]]) -> None:
        """Operators of a kind are built in whatever mixture suits; together they are within the limits."""
        used: dict[str, dict[int, float]] = {name: {} for name in COUNTED}
        wanted: dict[tuple[tuple[int, ...], ...], dict[int, float]] = {}
        for one in self.kernels:
            for needed in one.needed:
                row = wanted.setdefault(tuple((way.dsp, way.lut) for way in needed.ways), {})
                for v, n in lanes[one.layer].items():
                    row[v] = row.get(v, 0.0) - n * float(needed.of_lanes)
        for ways, row in wanted.items():
            built = [program.variable() for _ in ways]
            program.row({**dict.fromkeys(built, 1.0), **row}, ">=", 0)
            for variable, way in zip(built, ways, strict=True):
                for name, amount in zip(COUNTED, way, strict=True):
                    used[name][variable] = amount / max(self.limits[name], 1)
        for name in COUNTED:
            if used[name]:
                program.row(used[name], "<=", 1.0 if self.limits[name] else 0.0)


def _near_ones(ways: Ways, most: int) -> list[NDArray[np.int64]]:
    """Places of ways that are about as fast."""
    if not len(ways):
        return []
    order = np.lexsort((ways[:, LANES], ways[:, ITERATIONS]))
    return [bunch for bunch in np.array_split(order, min(most, len(order))) if len(bunch)]


def _apart(ways: Ways, bunch: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """A few bunches of one: each time the largest is halved."""
    found = [bunch]
    while len(found) < _PARTS_OF_ONE and len(largest := max(found, key=len)) > 1:
        found = [one for one in found if one is not largest] + _halves(ways, largest)
    return iter(found)


def _halves(ways: Ways, bunch: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Apart where they are least like each other: in the column that differs by most."""
    some = ways[bunch]
    column = int(np.argmax((some.max(axis=0) + 1) / (some.min(axis=0) + 1)))
    order = bunch[np.argsort(some[:, column], kind="stable")]
    return [order[: len(order) // 2], order[len(order) // 2 :]]
