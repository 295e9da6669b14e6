"""Elements on a grid of places whose neighbours are linked: where each stands, and which links its streams take.

What a placement costs is tokens times hops, summed over streams. It begins with elements in the order of their streams
and with a grid of tasks as it stands, then swaps the pair that gains most until none does. No placement costs less than
the bound: a stream between two elements takes a hop, and only four others stand one hop away, eight two, and so on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.tasks.network import Instances, tokens
from penstock.compiler.tasks.schedules import CODE, GridOfPlaces

_MOST_SWAPS = 4096
_KICKS, _DEALT = 64, 8
_Spot = tuple[int, int]
_Link = tuple[_Spot, _Spot]


@dataclass(frozen=True)
class GridPlacement:
    """Row and column of each element; `hops` is of each stream between two."""

    grid: GridOfPlaces
    at: Mapping[str, _Spot]
    hops: Mapping[str, int]
    cost: int
    bound: int
    most_on_a_link: int


@dataclass(frozen=True)
class _Wire:
    """A stream between two elements, by their numbers."""

    name: str
    writer: int
    reader: int
    tokens: int


def place(network: Instances, grid: GridOfPlaces) -> GridPlacement:
    """The elements of a network on a grid, or why they cannot stand there."""
    names = [one.name for one in network.instances]
    if len(names) > grid.rows * grid.columns:
        raise PenstockError(
            code=CODE, what=f"{len(names)} elements do not fit {grid.rows} x {grid.columns} places", where=f"{grid}",
            hint="let instances share elements with bundle and chain, or fit(elements=...)",
        )  # fmt: skip
    wires = list(_wires(network))
    weights = np.zeros((grid.rows * grid.columns,) * 2, np.int64)
    for one in wires:
        weights[one.writer, one.reader] += one.tokens
        weights[one.reader, one.writer] += one.tokens
    spots = [(spot // grid.columns, spot % grid.columns) for spot in range(len(weights))]
    rows = np.array(spots, np.int64)
    distance = np.abs(rows[:, None, :] - rows[None, :, :]).sum(axis=2)
    starts = [_swapped(start, weights, distance) for start in _starts(network, grid, weights)]
    bound = _bound(weights)
    found = _kicked(min(starts, key=lambda one: one[0]), weights, distance, bound)
    at = {name: spots[int(found[1][number])] for number, name in enumerate(names)}
    hops = {one.name: _apart(at[names[one.writer]], at[names[one.reader]]) for one in wires}
    if grid.neighbours:
        _check_neighbours(grid, names, wires, hops)
    busiest, count = _busiest(names, wires, at)
    if grid.links and count > grid.links:
        (here, there), most = busiest, grid.links
        raise PenstockError(
            code=CODE, what=f"{count} streams go from row {here[0]}, column {here[1]} to row {there[0]}, column "
            f"{there[1]}", where=f"{grid}", limit=f"{most} a link, in each direction",
            hint="a larger grid leaves more room; bundle makes streams between two elements one",
        )  # fmt: skip
    return GridPlacement(grid, at, hops, found[0], bound, count)


def _wires(network: Instances) -> Iterator[_Wire]:
    ends: dict[str, dict[bool, tuple[int, int]]] = {}
    counts = {body: tokens(body) for body in network.bodies}
    for number, one in enumerate(network.instances):
        for (port, puts), count in counts[one.body].items():
            ends.setdefault(one.channels[port], {})[puts] = number, count
    for name, end in ends.items():
        if len(end) == 2 and end[True][0] != end[False][0]:
            yield _Wire(name, end[True][0], end[False][0], end[True][1])


def _apart(one: _Spot, other: _Spot) -> int:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _starts(network: Instances, grid: GridOfPlaces, weights: Array) -> Iterator[Array]:
    """For each number of an element, and of an empty place, its place."""
    size, count = len(weights), len(network.instances)
    snake = [r * grid.columns + (c if r % 2 == 0 else grid.columns - 1 - c)
             for r in range(grid.rows) for c in range(grid.columns)]  # fmt: skip
    yield _filled(dict(zip(_in_order(weights, count), snake, strict=False)), size)
    grids: Counter[str] = Counter(one.task.name for one in network.instances if len(one.place) == 2)
    for name, _ in grids.most_common(1):
        for top, left in ((0, 0), (1, 1)):
            standing = {
                number: (one.place[0] + top) * grid.columns + one.place[1] + left
                for number, one in enumerate(network.instances)
                if one.task.name == name and one.place[0] + top < grid.rows and one.place[1] + left < grid.columns
            }
            yield _filled(_beside(standing, weights, grid, count), size)
    first = int(weights.sum(axis=1)[:count].argmax())
    middle = (grid.rows // 2) * grid.columns + grid.columns // 2
    yield _filled(_beside({first: middle}, weights, grid, count), size)


def _in_order(weights: Array, count: int) -> list[int]:
    """Elements as their streams lead from the first one."""
    order: list[int] = []
    known = np.zeros(count, bool)
    for first in range(count):
        waiting = [] if known[first] else [first]
        known[first] = True
        while waiting:
            here = waiting.pop()
            order.append(here)
            beside = [int(x) for x in np.flatnonzero(weights[here, :count]) if not known[x]]
            known[beside] = True
            waiting += sorted(beside, key=lambda x: int(weights[here, x]))
    return order


def _beside(standing: dict[int, int], weights: Array, grid: GridOfPlaces, count: int) -> dict[int, int]:
    """The others, those with most streams to what stands first, each where its streams are shortest."""
    rows = np.array([(s // grid.columns, s % grid.columns) for s in range(len(weights))], np.int64)
    distance = np.abs(rows[:, None, :] - rows[None, :, :]).sum(axis=2)
    free = np.ones(len(weights), bool)
    pull, cost = np.zeros(count, np.int64), np.zeros((count, len(weights)), np.int64)
    left = np.ones(count, bool)
    found: dict[int, int] = {}

    def stand(one: int, spot: int) -> None:
        found[one], free[spot], left[one] = spot, False, False
        pull[:] += weights[one, :count]
        cost[:] += weights[one, :count, None] * distance[spot][None, :]

    for one, spot in standing.items():
        stand(one, spot)
    while left.any():
        one = int(np.where(left, pull, -1).argmax())
        stand(one, int(np.where(free, cost[one], np.iinfo(np.int64).max).argmin()))
    return found


def _filled(standing: Mapping[int, int], size: int) -> Array:
    """With numbers for the places that stay empty."""
    taken = set(standing.values())
    rest = iter([spot for spot in range(size) if spot not in taken])
    return np.array([standing[n] if n in standing else next(rest) for n in range(size)], np.int64)


def _swapped(spots: Array, weights: Array, distance: Array) -> tuple[int, Array]:
    """The cost of a placement once no swap of two gains, and where everything stands then."""
    spots = spots.copy()
    numbers = np.arange(len(spots))
    costs = weights @ distance[spots]  # of each number at each place, the others as they stand
    for _ in range(_MOST_SWAPS):
        here = costs[numbers, spots]
        moved = costs[:, spots]
        gains = moved + moved.T - here[:, None] - here[None, :] + 2 * weights * distance[np.ix_(spots, spots)]
        one, other = divmod(int(gains.argmin()), len(spots))
        if gains[one, other] >= 0:
            break
        step = distance[spots[other]] - distance[spots[one]]
        costs += weights[:, one, None] * step[None, :] - weights[:, other, None] * step[None, :]
        spots[one], spots[other] = spots[other], spots[one]
    return int(costs[numbers, spots].sum()) // 2, spots


def _kicked(found: tuple[int, Array], weights: Array, distance: Array, bound: int) -> tuple[int, Array]:
    """Better placements than one that no swap betters: a few places are dealt anew, and swaps go on from there."""
    generator = np.random.default_rng(0)
    size = len(weights)
    for _ in range(_KICKS):
        if found[0] == bound or size < 3:
            break
        dealt = found[1].copy()
        chosen = generator.choice(size, min(_DEALT, size), replace=False)
        dealt[chosen] = dealt[generator.permutation(chosen)]
        found = min(found, _swapped(dealt, weights, distance), key=lambda one: one[0])
    return found


def _bound(weights: Array) -> int:
    """Of each element its heaviest streams to the nearest places; each stream is counted at both of its ends."""
    total = 0
    for row in weights:
        heavy = np.sort(row[row > 0])[::-1]
        ring, start = 1, 0
        while start < len(heavy):
            total += ring * int(heavy[start : start + 4 * ring].sum())
            start += 4 * ring
            ring += 1
    return -(-total // 2)


def _check_neighbours(
    grid: GridOfPlaces, names: Sequence[str], wires: Sequence[_Wire], hops: Mapping[str, int]
) -> None:
    far = [one for one in wires if hops[one.name] > 1]
    if far:
        worst = max(far, key=lambda one: hops[one.name])
        raise PenstockError(
            code=CODE, what=f"the stream {worst.name} from {names[worst.writer]} to {names[worst.reader]} takes "
            f"{hops[worst.name]} hops", where=f"{grid}",
            limit=f"only neighbours are linked; {len(far)} of {len(wires)} streams lead further in the best found",
            hint="pass tokens on from element to element, chain or bundle tasks, or leave out neighbours=True",
        )  # fmt: skip


def _busiest(names: Sequence[str], wires: Sequence[_Wire], at: Mapping[str, _Spot]) -> tuple[_Link, int]:
    """The link with most streams, each of them along its row or its column first, where fewer are already."""
    used: Counter[_Link] = Counter()
    for one in sorted(wires, key=lambda wire: (-wire.tokens, wire.name)):
        begin, end = at[names[one.writer]], at[names[one.reader]]
        ways = [_way(begin, (begin[0], end[1]), end), _way(begin, (end[0], begin[1]), end)]
        used.update(min(ways, key=lambda way: max((used[link] for link in way), default=0)))
    return max(used.items(), key=lambda pair: pair[1], default=(((0, 0), (0, 0)), 0))


def _way(begin: _Spot, corner: _Spot, end: _Spot) -> list[_Link]:
    found: list[_Link] = []
    here = begin
    for goal in (corner, end):
        while here != goal:
            step = (np.sign(goal[0] - here[0]), np.sign(goal[1] - here[1]))
            there = (here[0] + int(step[0]), here[1] + int(step[1]))
            found.append((here, there))
            here = there
    return found
