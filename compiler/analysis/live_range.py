"""How many elements must be kept at least between two stream orders: the exact maximum, without a replay.

Both orders run as early as possible: after every slice that the source sends, the target takes all slices that have
become complete. An element is alive from when it is first sent until the target takes it for the last time.

No slice is visited one by one. When an element is sent first is a sum over the data dims, each of which is a small
table; so is its last slice in the target's order. The rest is one running maximum and one histogram.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.analysis.walks import LoopOf, SliceWalk, positions

Moments = NDArray[np.int64]
ELEMENTS_AT_ONCE = 1 << 20
"""How many elements the histograms take in one step; bounds the memory, not the result."""


def live_maximum(source: SliceWalk, target: SliceWalk) -> int:
    """The largest number of elements alive at once. The source must send all that the target takes."""
    source, target, scale = _coarsest(source, target)
    sent = [_first_sent(source, dim, extent) for dim, extent in enumerate(source.extents)]
    complete = np.maximum.accumulate(_completed(target, sent))
    taken = [_last_taken(target, dim, extent) for dim, extent in enumerate(source.extents)]
    moments = prod(trip for trip, _, dim in source.loops if dim is not None)
    born, gone = np.zeros(moments, np.int64), np.zeros(moments + 1, np.int64)
    for first, last in _all_elements(sent, taken):
        needed = last >= 0
        born += np.bincount(first[needed], minlength=moments)
        gone += np.bincount(complete[last[needed]] + 1, minlength=moments + 1)
    return int(np.cumsum(born - gone[:-1]).max()) * scale


def _coarsest(source: SliceWalk, target: SliceWalk) -> tuple[SliceWalk, SliceWalk, int]:
    """Count groups of elements that always travel together as one; how many are in a group."""
    grains: list[int] = []
    for dim, sizes in enumerate(zip(source.element, target.element, strict=True)):
        grains.append(reduce(gcd, [step for _, step, d in (*source.loops, *target.loops) if d == dim], gcd(*sizes)))
    coarse = [
        SliceWalk(
            tuple(size // grain for size, grain in zip(order.element, grains, strict=True)),
            tuple((trip, step if dim is None else step // grains[dim], dim) for trip, step, dim in order.loops),
        )
        for order in (source, target)
    ]
    return coarse[0], coarse[1], prod(grains)


def _weights(loops: Sequence[LoopOf]) -> list[int]:
    """How many slices one trip of each loop passes, when loops that only repeat are left out."""
    weights, inside = list[int](), 1
    for trip, _, dim in reversed(loops):
        weights.append(inside)
        inside *= trip if dim is not None else 1
    return weights[::-1]


def _moments(loops: Sequence[LoopOf], weights: Sequence[int], dim: int) -> Moments:
    """What the loops along one dim add to the number of a slice, in the order of their iterations."""
    return positions([(trip, weight, dim) for (trip, _, d), weight in zip(loops, weights, strict=True) if d == dim])


def _first_sent(source: SliceWalk, dim: int, extent: int) -> Moments:
    """For each place of a dim, its part of the number of the first slice that holds it."""
    never = np.iinfo(np.int64).max // (2 * len(source.element))
    first = np.full(extent, never, np.int64)
    corners = positions(source.within(dim))
    moments = _moments(source.loops, _weights(source.loops), dim)
    for lane in range(source.element[dim]):
        np.minimum.at(first, corners + lane, moments)
    return first


def _last_taken(target: SliceWalk, dim: int, extent: int) -> Moments:
    """For each place of a dim, its part of the number of the slice by whose time it is taken for good.

    A loop that repeats takes what is inside it again at once, as soon as its first trip is over. So whatever is
    inside the outermost such loop counts as taken in the last slice of that first trip.
    """
    weights = _weights(target.loops)
    repeats = [i for i, (trip, _, d) in enumerate(target.loops) if d is None and trip > 1]
    outside = repeats[0] if repeats else len(target.loops)
    settled = [weight if i < outside else 0 for i, weight in enumerate(weights)]
    after = sum((t - 1) * w for i, ((t, _, d), w) in enumerate(zip(target.loops, weights, strict=True))
                if i >= outside and d == dim)  # fmt: skip
    last = np.full(extent, -(10**15), np.int64)
    corners, moments = positions(target.within(dim)), _moments(target.loops, settled, dim)
    for lane in range(target.element[dim]):
        np.maximum.at(last, corners + lane, moments + after)
    return last


def _completed(target: SliceWalk, sent: Sequence[Moments]) -> Moments:
    """For each slice of the target, repeats left out: the number of the source's slice that completes it."""
    axes = [(trip, dim) for trip, _, dim in target.loops if dim is not None]
    total = np.zeros((1,) * len(axes), np.int64)
    for dim, times in enumerate(sent):
        corners = positions(target.within(dim))
        latest = times[corners]
        for lane in range(1, target.element[dim]):
            latest = np.maximum(latest, times[corners + lane])
        total = total + latest.reshape([trip if d == dim else 1 for trip, d in axes])
    return np.broadcast_to(total, [trip for trip, _ in axes]).ravel()


def _all_elements(sent: Sequence[Moments], taken: Sequence[Moments]) -> Iterator[tuple[Moments, Moments]]:
    """First and last moment of every element, in portions of bounded size."""
    inner = prod(len(times) for times in sent[1:])
    portion = max(1, ELEMENTS_AT_ONCE // inner)
    for start in range(0, len(sent[0]), portion):
        rows = slice(start, start + portion)
        yield _sums([sent[0][rows], *sent[1:]]), _sums([taken[0][rows], *taken[1:]])


def _sums(parts: Sequence[Moments]) -> Moments:
    """The sums of one entry of each table, for all combinations."""
    total = parts[0]
    for part in parts[1:]:
        total = np.add.outer(total, part)
    return total.ravel()
