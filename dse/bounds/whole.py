"""The fewest cycles of kernels that wait for each other where each is walked in one way: whole lanes in every dim.

An integer program picks a way for each kernel (`ways.py`). Ways that are near each other are one to begin with, as good
as the best of them in everything; those that it picks are then told apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.errors import PenstockError
from penstock.dse.bounds.chains import Chains
from penstock.dse.bounds.needs import IndexCounts, Needs
from penstock.dse.bounds.operators import Needed
from penstock.dse.bounds.overlap import COUNTED, LEAST_SHARE, Overlap
from penstock.dse.bounds.ways import ITERATIONS, LANES, LEFT, LONG, TOGETHER, TREE, Ways, iterations_of, lanes_of
from penstock.dse.support.linear import LinearProgram

_MOST_BUNCHES = 240
"""Of all kernels to begin with, so that a program is solved in a second or so."""
_ROUNDS, _ROUNDS_OF_FEW, _ROUNDS_OF_WIDTHS = 6, 8, 16
_MOST_IN_VAIN = 4
"""Programs one after the other that say nothing new."""
_FEW_KERNELS = 8
"""Whose programs are solved in tenths of a second."""
_EFFORT = 0.2
"""Of the solver's, a program: a bound that a second more would raise by little is one already."""
_PARTS_OF_ONE, _PARTS_BY_WIDTH = 4, 6
"""That what was picked is told apart into, and where the widths of tokens are told."""
_MOST_COUNTS = 12
"""Of results that are done together, which are told from each other."""
_NEAR = 0.002
_SURE = 1 - 1e-6
_PASSED_ON = 1
"""A token that is made of others is written no sooner than these are read, and read a cycle later."""
FAR, NOT_FAR = 2.0, 1.08
"""Ways that take so many times as long as is known to be needed are left out: the bound is at most that then. Of what
is known of whole lanes already little is left to find."""


@dataclass(frozen=True)
class ReadOperand:
    """What a kernel reads straight from another one, by an element of so many of its loops."""

    dims: int
    column: int


@dataclass(frozen=True)
class Unrolled:
    """A kernel with all ways to unroll it. `added` is what an addition of its sums takes until its result is there."""

    layer: str
    ways: Ways
    parts: Mapping[IndexCounts, int]
    """Which column has the iterations of a part."""
    operands: Mapping[str, ReadOperand]
    """By the kernel that makes it."""
    needed: tuple[Needed, ...]
    added: int
    done: int
    """From its last term until others read the result."""
    tokens: Mapping[str, Sequence[tuple[int, int]]]
    """By the kernel that makes it: for each dim of an operand, the columns of the maker's lanes along it, and of its
    own."""


_Picked = tuple[Sequence[int], Ways]
"""The variables of a kernel's ways, and these."""


class WholeLanes:
    """Of one graph and limits. `shortest` gives cycles that no design is below."""

    def __init__(
        self,
        kernels: Sequence[Unrolled],
        chains: Chains,
        needs: Needs,
        limits: Mapping[str, int],
        overlap: Overlap,
        least: float,
        most: float,
        regrouping: int = 0,
    ) -> None:
        """`regrouping` are the stages of what makes tokens of others of which no number is as wide."""
        self.overlap, self.regrouping = overlap, regrouping
        self.widths = any(any(one.tokens.values()) for one in kernels)
        self.kernels, self.chains, self.needs, self.limits = kernels, chains, needs, limits
        self.unit = max(least, 1.0)
        self.most = ceil(max(most, self.unit))
        self.ways = {one.layer: one.ways[one.ways[:, ITERATIONS] <= self.most] for one in kernels}
        bunches = max(min(_MOST_BUNCHES // len(kernels), 24), 1)
        self.places = {layer: _near_ones(ways, bunches) for layer, ways in self.ways.items()}
        """Which ways count as one: the places of each bunch."""

    def shortest(self) -> float:
        if any(not len(ways) for ways in self.ways.values()):
            return float(self.most)  # and longer, were all ways kept
        found, vain = 0.0, 0
        few = len(self.kernels) <= _FEW_KERNELS
        for _ in range(_ROUNDS_OF_WIDTHS if self.widths else _ROUNDS_OF_FEW if few else _ROUNDS):
            try:
                solved = self._solve()
            except PenstockError:  # no solution in time
                solved = None
            if solved is None:
                break
            cycles, picked = solved
            vain = 0 if cycles > found else vain + 1
            found = max(found, cycles)
            if vain == _MOST_IN_VAIN or not self._told_apart(picked):
                break
        return min(found, float(self.most)) * _SURE

    def _told_apart(self, picked: Mapping[str, Sequence[int]]) -> bool:
        """Whether what was picked was more than one way somewhere."""
        new, parts = False, _PARTS_BY_WIDTH if self.widths else _PARTS_OF_ONE
        for layer, numbers in picked.items():
            bunches: list[NDArray[np.int64]] = []
            for number, bunch in enumerate(self.places[layer]):
                split = number in numbers and len(bunch) > 1
                bunches += _apart(self.ways[layer], bunch, parts) if split else [bunch]
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

        differ = {
            (maker, one.layer): _differ(program, dims, *((picks[end], columns[end]) for end in (maker, one.layer)))
            for one in self.kernels
            for maker, dims in one.tokens.items()
            if dims
        }

        def wide(path: Sequence[str], into: dict[int, float]) -> dict[int, float]:
            for pair in pairwise(path):
                for variable, cycles in zip(differ.get(pair, ()), (_PASSED_ON, self.regrouping), strict=False):
                    into[variable] = -cycles / unit
            return into

        def done_together(one: Unrolled) -> None:
            """What others make for it together it has its iterations for still to do."""
            for maker, operand in one.operands.items():
                made, worked = columns[maker], weigh(maker, ITERATIONS, -1 / unit)
                for count, together, resting in _done_together(made):
                    taken = iterations_of(columns[one.layer], operand.column, operand.dims, count) / unit
                    otherwise = float(taken.max())  # so much less is said if the maker is walked in another way
                    row = dict(zip(picks[one.layer], (-taken).tolist(), strict=True))
                    row |= {ends[one.layer]: 1.0, (begins if resting else ends)[maker]: -1.0}
                    for n, v in enumerate(picks[maker]):
                        before = (LONG - int(made[n, LEFT])) / unit - otherwise if together[n] else 0.0
                        row[v] = before + (worked[v] if resting else 0.0)
                    row = wide((maker, one.layer), trees([maker], row))
                    program.row(row, ">=", known[maker].done / unit - otherwise)

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
                    path = (*part.through, layer) if sign > 0 else (*reversed(part.through), other)
                    row = between | weigh(other, known[other].parts[part.loops], -1 / unit)
                    program.row(wide(path, trees(part.through, row)), ">=", cycles)
                    if part.share > LEAST_SHARE:
                        row = between | {works[other]: -part.share}
                        program.row(wide(path, trees(part.through, row)), ">=", cycles)
            done_together(one)
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


def _differ(
    program: LinearProgram, dims: Sequence[tuple[int, int]], maker: _Picked, reader: _Picked
) -> tuple[int, int]:
    """Variables that are 1 where what the one makes at once is not what the other takes in at once, and where along a
    dim neither is several times the other."""
    other, regrouped = program.variable(), program.variable()
    for mine, theirs in dims:
        (few, many), (fewest, most) = lanes_of(maker[1], mine), lanes_of(reader[1], theirs)
        for count in np.unique(few[few == many]).tolist():
            sure = (few == count) & (many == count)
            same = (fewest <= count) & (count <= most)
            fits = same | (fewest != most) | (most % count == 0) | (count % most == 0)
            made = {v: -1.0 for v, one in zip(maker[0], sure, strict=True) if one}
            for variable, alike in ((other, same), (regrouped, fits)):
                taken = {v: 1.0 for v, may in zip(reader[0], alike, strict=True) if may}
                program.row({variable: 1.0, **made, **taken}, ">=", 0)
    return other, regrouped


def _done_together(ways: Ways) -> Iterator[tuple[int, NDArray[np.bool_], bool]]:
    """So many results, which ways are done with no fewer of them at once, and whether one right after the other.

    Then the first of these is done so long before a kernel's end if it never waits; or else they all are with the last
    of its iterations.
    """
    rests = ways[:, LEFT] < LONG
    for resting in (False, True):
        counts = np.unique(ways[rests == resting, TOGETHER])
        some = np.unique(np.linspace(0, len(counts) - 1, min(len(counts), _MOST_COUNTS)).astype(int))
        for count in counts[some].tolist():
            yield count, (rests == resting) & (ways[:, TOGETHER] >= count), resting


def _near_ones(ways: Ways, most: int) -> list[NDArray[np.int64]]:
    """Places of ways that are about as fast."""
    if not len(ways):
        return []
    order = np.lexsort((ways[:, LANES], ways[:, ITERATIONS]))
    return [bunch for bunch in np.array_split(order, min(most, len(order))) if len(bunch)]


def _apart(ways: Ways, bunch: NDArray[np.int64], parts: int) -> Iterator[NDArray[np.int64]]:
    """A few bunches of one: each time the largest is halved."""
    found = [bunch]
    while len(found) < parts and len(largest := max(found, key=len)) > 1:
        found = [one for one in found if one is not largest] + _halves(ways, largest)
    return iter(found)


def _halves(ways: Ways, bunch: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Apart where they are least like each other: in the column that differs by most."""
    some = ways[bunch]
    column = int(np.argmax((some.max(axis=0) + 1) / (some.min(axis=0) + 1)))
    order = bunch[np.argsort(some[:, column], kind="stable")]
    return [order[: len(order) // 2], order[len(order) // 2 :]]
