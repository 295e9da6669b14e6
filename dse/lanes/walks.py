"""In which order a kernel walks: the dims that move slowly, and from these the tile, unroll and order of its design."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import prod

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.design import KernelDesign, WeightStore
from penstock.compiler.dialects.affine import projected_dims
from penstock.dse.lanes.alignment import divisors
from penstock.dse.lanes.mixing import STORED

FEW = (1, 2, 4, 8)
"""Lanes along the outermost dim that are few enough to say so."""
SOME = 32
"""Lanes along it with which a kernel whose weights pass once still takes in what the one before it makes as it comes:
with fewer along a reduction, its partial sums would lie in words so much wider."""


@dataclass(frozen=True)
class KernelWalk:
    """The outermost loops of a kernel, one step of its lanes at a time; all other dims are walked whole inside them.

    `slowness` favours (above 1) or neglects (below 1) the kernel when the pace is shared out: it counts as so many
    times as slow. `adders` is what its floating-point adders are built of; with `mixed`, operators are built of what
    else there is where their own kind does not suffice. Of lanes that are equally many and fast, `compact` takes those
    with the fewest words an iteration, not those that add up most. With `most`, there are no more lanes than that along
    the outermost dim: with 1, whatever lanes a neighbour has there, both pass the same slices in the same order; with
    few, the next kernel waits for few of them at once. The elementwise
    kernels that go along are `hurry` times as fast as the pace asks, or take each token at once with `whole_tokens`:
    what comes in bursts is gone sooner. The rows and columns of a `frame` pass in order, some columns at once if need
    be. Lanes along what is joined divide each part of it `in_parts` (`joined.py`).
    """

    outer: tuple[int, ...]
    slowness: float = 1.0
    adders: str = "fabric"
    most: int | None = None
    whole_tokens: bool = False
    hurry: int = 1
    mixed: bool = False
    compact: bool = False
    frame: tuple[int, ...] = ()
    in_parts: bool = False

    @property
    def at_most(self) -> tuple[tuple[int, int], ...]:
        """Dims with the most lanes that they may have."""
        return () if self.most is None or self.frame else tuple((d, self.most) for d in self.outer[:1])

    def store(self, weights: WeightStore) -> WeightStore:
        """Where weights lie that usually lie there. Where a whole frame passes for a few results at a time, the weights
        of these are kept meanwhile: they would be sent again for every place otherwise."""
        return "keep" if weights == "stream" and self.frame and self.outer != self.frame else weights


def walks_of(op: TensorOp, frame: tuple[int, ...] = ()) -> Iterator[KernelWalk]:
    """Every choice of one or two outermost dims; where results come in order is where the next kernel can start."""
    if frame:
        yield KernelWalk(frame, frame=frame)
        return
    dims = [d for d, trip in enumerate(op.trips) if trip > 1]
    for most in (None, *FEW):
        for count in (2, 1):
            for outer in permutations(dims, count):
                if (count < len(dims) or count == 1) and (most is None or most < op.trips[outer[0]]):
                    yield KernelWalk(outer, most=most)


def walks_of_one(op: TensorOp, but: Sequence[int]) -> Iterator[KernelWalk]:
    """One dim outermost, but those: along a reduction, a kernel takes in what the one before it makes as it comes."""
    for most in (None, 1):
        for d in (d for d, trip in enumerate(op.trips) if trip > 1 and (d not in but or most)):
            yield KernelWalk((d,), most=most)


def with_some_lanes(op: TensorOp) -> Iterator[KernelWalk]:
    """One reduction outermost, of which a kernel takes in slices that are neither few elements nor many."""
    yield from (KernelWalk((d,), most=SOME) for d in op.reductions if op.trips[d] > SOME)


def kernel_design(
    op: TensorOp,
    trips: Sequence[int],
    unroll: Sequence[int],
    walk: KernelWalk,
    rest: int,
    weights: WeightStore,
    bindings: dict[str, str],
    largest_tile: int | None = None,
    large: Sequence[int] = (),
    whole_words: bool = False,
    rows: tuple[int, int] | None = None,
    parts: Sequence[int] | None = None,
) -> KernelDesign:
    """The design record of a walk. A partial sum rests for at least `rest` iterations before it is added to again; that
    of a kernel which meets each element once lies in a register, if a cycle is enough to add to it.

    With `largest_tile` dims are not walked whole inside the outermost ones, but in tiles up to that size. Of a
    `large` tensor that external memory brings, other dims than its own are innermost, so that it passes evenly, and
    once. For `whole_words` so many partial sums rest that words, of powers of two, can be of as many ports as needed.
    With `rows`, a dim and how many steps, these are innermost, block after block inside the slow dims. A tile that is
    not its whole dim divides that dim's part, of which there is another than the trips where each call says the size.
    """
    parts, weights = trips if parts is None else parts, walk.store(weights)
    steps = [trip // lanes for trip, lanes in zip(trips, unroll, strict=True)]
    if rows is not None:
        tile = tuple(lanes * (rows[1] if d == rows[0] else 1) for d, lanes in enumerate(unroll))
        order = dict.fromkeys((*walk.outer, rows[0], *range(len(steps))))
        return KernelDesign(tile, tuple(unroll), tuple(order), weights, bindings)
    inside = [1 if d in walk.outer else count for d, count in enumerate(steps)]
    if largest_tile is not None:
        inside = [
            max(n for n in turns(count, lanes, part) if n == 1 or n * lanes <= largest_tile)
            for count, lanes, part in zip(inside, unroll, parts, strict=True)
        ]
    parallel = [d for d in range(len(op.trips)) if d not in op.reductions]
    if prod(steps[d] for d in op.reductions) > 1:
        for d in reversed([d for d in walk.outer if d in parallel]):
            resting = prod(inside[p] for p in parallel)
            in_register = resting == 1 and rest <= STORED + 1 and (walk.in_parts or _meets_all_once(op))
            if resting >= rest or in_register:  # that is added to in a cycle
                break
            wanted = -(-rest // resting)
            enough = [n for n in turns(steps[d], unroll[d], parts[d]) if n >= wanted] or [steps[d]]
            whole = [n for n in enough if whole_words and n & (n - 1) == 0 and n < 2 * wanted]
            inside[d] = min(whole or enough)
    tile = tuple(count * lanes for count, lanes in zip(inside, unroll, strict=True))
    inner = sorted(
        (d for d in range(len(op.trips)) if d not in walk.outer), key=lambda d: bool(large) and d not in large
    )
    order = (*walk.outer, *inner)
    return KernelDesign(tile, tuple(unroll), order, weights, bindings)


def _meets_all_once(op: TensorOp) -> bool:
    """Whether a kernel sums (or has the largest of) what it reads, and reads nothing again for another result."""
    return all(len([d for d in projected_dims(m) if d is not None]) == len(op.trips) for m in op.operand_maps)


def turns(steps: int, lanes: int, part: int) -> list[int]:
    """How many steps of its lanes a tile can have: all of them, or such that it divides a part of its dim."""
    return [n for n in divisors(steps) if n == steps or part % (n * lanes) == 0]


def tensor_dims(op: TensorOp) -> tuple[tuple[int, ...], ...]:
    """The dims of each tensor that a kernel meets in an iteration; a partial result is both loaded and stored."""
    maps = (*op.operand_maps, op.result_map, op.result_map)
    return tuple(tuple(d for d in projected_dims(m) if d is not None) for m in maps)
