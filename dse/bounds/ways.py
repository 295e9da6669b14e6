"""All ways to unroll a kernel, each by what a bound asks of it: of many the near ones as one that is as good as any.

A way says its lanes, its iterations, how many of these the parts are that others wait for, and how many additions
follow each other once its last terms are there: of a row, lanes along the row leave the most to wait for, lanes along a
sum the longest tree. One dim is outermost: what needs all of it waits for all of its tiles but one. Results that are
done together are waited for together, and a reader takes its iterations for each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import inf, log, prod

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.analysis.graph import TensorOp
from penstock.dse.bounds.lanes import DimSizes, steps_of_dim
from penstock.dse.bounds.needs import IndexCounts
from penstock.dse.lanes.alignment import divisors

_MOST_WAYS, _MOST_COMPARED = 800, 60_000
"""That are kept, and each with all others: a hundredth of a second for a thousand of them."""
_RATIOS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.4, 2.0, 4.0)
"""How near to each other ways of a bunch are."""

Ways = NDArray[np.int64]
"""A row a way, of which all figures are the better the less they are: lanes, cycles of its iterations, additions of a
tree beyond one, the cycles of every part, the iterations of every operand's element, twice the lanes of each loop that
are told apart; then the results that are done together, and what is left of `LONG` when the cycles are taken away in
which they are."""
LANES, ITERATIONS, TREE, PARTS = 0, 1, 2, 3
TOGETHER, LEFT = -2, -1
LONG = 1 << 20
_WHOLE = 10**8
_TOLD = 10**8
"""What lanes along a dim are told from each other by: a way says them, and this divided by them."""


def ways_of(
    op: TensorOp,
    sizes: DimSizes,
    parts: Sequence[IndexCounts],
    lanes: float = inf,
    iterations: float = inf,
    again: int = 0,
    keeping: int = 0,
    operands: Sequence[Collection[int]] | None = None,
    told: Sequence[int] = (),
    *,
    thorough: bool = True,
) -> Ways:
    """Those of which none is beaten, with no more lanes and cycles than these; of too many, near ones as one.

    Each with each dim outermost that has steps: whatever needs all of that dim waits for all but its last tile.
    What is summed in several steps is added to one running sum, step after step (`_with_running_sums`). Where
    `operands` are given, by the loops whose indices each has an element of, ways also say how long they take for one
    of these, and which results are done together, and none is beaten by one with other lanes along a loop that is
    `told`. A `thorough` look at very many ways keeps fewer that are as good as several others, and more to tell apart.
    """
    most = prod(max(size) for d, size in enumerate(sizes) if d not in op.reductions)
    whole = [n for n, part in enumerate(parts) if all(part[d] >= op.trips[d] for d in op.reductions)]
    found: list[Ways] = []
    compared = _MOST_COMPARED if thorough else 0
    for outermost in (None, *(d for d, trip in enumerate(op.trips) if trip > 1)):
        ways = _walked(op, sizes, parts, operands or (), told, outermost, lanes, iterations, compared)
        ways[:, TREE] = [_additions(terms, steps) for terms, steps in ways[:, [TREE, -2]].tolist()]
        found += _with_running_sums(ways, len(parts), whole, most, again, keeping)
    ways = np.concatenate(found)
    ways = ways[ways[:, ITERATIONS] <= iterations]
    return _unbeaten(ways if operands is not None else ways[:, :TOGETHER])


def told_lanes(lanes: int) -> tuple[int, int]:
    """The columns of a loop that is told: each is less where the other is more, so none beats one that has others."""
    return lanes, _TOLD // lanes


def lanes_of(ways: Ways, column: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The fewest lanes, and the most, that each way may have along the loop that this column and the next are of."""
    return ways[:, column], _TOLD // ways[:, column + 1]


def iterations_of(ways: Ways, column: int, dims: int, elements: int) -> NDArray[np.float64]:
    """How many a way takes at least for so many elements of an operand of so many dims, which this column is of."""
    return ways[:, column] * (elements / _parts_of(dims) ** dims)


def _parts_of(dims: int) -> int:
    """What an iteration is divided into along each dim, to be a whole number where many lanes share it."""
    return int(_WHOLE ** (1 / dims))


def _with_running_sums(
    ways: Ways, parts: int, whole: Sequence[int], most: int, again: int, keeping: int
) -> Iterator[Ways]:
    """Ways with their iterations as cycles; instead of the steps of a sum and of results at once, as the last columns,
    they have the results that are done together, and what is left beside the cycles of these.

    A sum of several steps rests in a memory while others are added to: from one step to the next `again` cycles pass,
    and those that `keeping` it takes. Of `most` results there may be too few others. Those that take turns are done
    one right after the other, with their last step; where iterations come more seldom than they could, fewer do. Or a
    sum stays in a register, and the next step waits for `again` alone, as does every iteration then.
    """
    steps, at_once = ways[:, -2], ways[:, -1]
    results = most // at_once
    once, several = steps == 1, (steps > 1) & (results > 1)
    yield _done(ways[once], at_once[once])
    kept, turns, lanes = again + keeping, results[several], at_once[several]
    every = np.maximum(-(-kept // turns), 1)
    together = np.maximum(np.minimum(turns, -(-kept // every)), 1)
    for between, count in ((every, together), (every + 1, np.ones_like(together))):
        resting = _every(ways[several], between, parts)
        summed = [ITERATIONS, *(PARTS + n for n in whole)]
        resting[:, summed] = np.maximum(resting[:, summed], kept * (steps[several, None] - 1) + 1)
        yield _done(resting, lanes * count, (count - 1) * between)
    yield _done(_every(ways[~once], np.full(np.count_nonzero(~once), again), parts), at_once[~once])


def _done(ways: Ways, together: NDArray[np.int64], cycles: NDArray[np.int64] | int = 0) -> Ways:
    """So many results one after the other, in so many cycles before the last."""
    found = ways.copy()
    found[:, TOGETHER], found[:, LEFT] = together, LONG - cycles
    return found


def _every(ways: Ways, cycles: NDArray[np.int64], parts: int) -> Ways:
    """An iteration every so many cycles, but at most one a cycle."""
    found, columns = ways.copy(), [ITERATIONS, *range(PARTS, PARTS + parts)]
    found[:, columns] = (found[:, columns] - 1) * np.maximum(cycles, 1)[:, None] + 1
    return found


def _walked(
    op: TensorOp,
    sizes: DimSizes,
    parts: Sequence[IndexCounts],
    operands: Sequence[Collection[int]],
    told: Sequence[int],
    outermost: int | None,
    lanes: float,
    iterations: float,
    compared: int,
) -> Ways:
    """With one dim outermost, or none where all are through at once.

    Until all dims are known, the third column has the terms that meet in an iteration; the last ones have the steps of
    a sum, and the results that an iteration adds to.
    """
    found = np.ones((1, PARTS + len(parts) + len(operands) + 2 * len(told) + 2), np.int64)
    for d in sorted(range(len(op.trips)), key=lambda d: d == outermost):
        trip, summed = op.trips[d], d in op.reductions
        whole = [part[d] >= trip for part in parts]
        rows: list[tuple[int, ...]] = []
        before: list[int] = []
        for u, steps in steps_of_dim(trip, sizes[d]):
            if (outermost is None and steps > 1) or (d == outermost and steps == 1):
                continue
            done = (-(-min(part[d], trip) // u) for part in parts)
            shared = (_parts_of(len(dims)) // u if d in dims else steps for dims in operands)
            own_lanes = (n for loop in told for n in (told_lanes(u) if loop == d else (1, 1)))
            sums = (steps if summed else 1, 1 if summed else u)
            rows.append((u, steps, u if summed else 1, *done, *shared, *own_lanes, *sums))
            before.append(_before_last_tile(-(-trip // u), steps))
        if not rows:
            return np.empty((0, found.shape[1]), np.int64)
        if d == outermost:
            found = _with_outermost(found, np.array(rows, np.int64), np.array(before, np.int64), whole)
        else:
            own = _fewer(np.array(rows, np.int64), compared)
            found = (found[:, None, :] * own[None, :, :]).reshape(-1, found.shape[1])
        found = _fewer(found[(found[:, LANES] <= lanes) & (found[:, ITERATIONS] <= iterations)], compared)
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


def _fewer(ways: Ways, compared: int) -> Ways:
    """Without those that are beaten; too many of them in bunches, each as good as the best of it in everything. Up to
    so many are `compared` before."""
    ways = np.unique(ways, axis=0)
    if len(ways) <= compared:
        ways = _unbeaten(ways)
    for ratio in _RATIOS:
        if len(ways) <= _MOST_WAYS:
            break
        _, bunch = np.unique(np.floor(np.log(np.maximum(ways, 1)) / log(ratio) + 1e-9), axis=0, return_inverse=True)
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
