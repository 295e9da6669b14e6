"""Which unroll factors a kernel may have, what they cost, and the cheapest that keeps up with a pace."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np

Allowed = tuple[tuple[int, tuple[int, ...]], ...]
"""Dims that cannot have every number of lanes, with those that they can have."""
_NO_LOOPS = np.ones((1, 0), np.int64)


@dataclass(frozen=True)
class Lanes:
    """One way to unroll a kernel: how many iterations are left."""

    cycles: int
    unroll: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.unroll)


def cheapest(options: Sequence[Lanes], pace: float) -> Lanes | None:
    """The option with the fewest lanes that takes at most `pace` cycles; `options` are those of `pareto_lanes`."""
    place = bisect_right(options, pace, key=lambda one: one.cycles)
    return options[place - 1] if place else None


@cache
def pareto_lanes(
    trips: tuple[int, ...],
    reductions: tuple[int, ...],
    most: int,
    at_most: tuple[tuple[int, int], ...] = (),
    only: Allowed = (),
    tensors: tuple[tuple[int, ...], ...] = (),
    paired: tuple[int, ...] = (),
    binary: tuple[int, ...] = (),
    parts: tuple[int, ...] = (),
) -> tuple[Lanes, ...]:
    """Ways to unroll with at most `most` lanes of which none is beaten in both lanes and cycles, the fastest first.

    Dims get no more lanes than `at_most` says of them. Those that `only` lists have one of these numbers of lanes, and
    one where the others have lanes enough.
    Of equals the one with more lanes along reductions: their sums are added up before anything is kept, so
    fewer partial results need memory, and fewer results leave at once. With `tensors`, the dims of each that the kernel
    meets, the one that meets the fewest words of them in an iteration. Along one of the dims `paired` the number of
    lanes is even, so that all have a partner, unless there is one lane only. Along the dims `binary` they are powers of
    two. Lanes divide `parts` of the trips, where those are said.
    """
    caps, allowed = dict(at_most), dict(only)
    choices = [
        allowed.get(d)
        or [n for n in useful_factors(part) if n <= caps.get(d, part) and (d not in binary or n & (n - 1) == 0)]
        for d, part in enumerate(parts or trips)
    ]
    unrolls = np.stack([axis.ravel() for axis in np.meshgrid(*choices, indexing="ij")], axis=1) if trips else _NO_LOOPS
    counts = unrolls.prod(axis=1)
    allowed_counts = counts <= most
    if paired:
        allowed_counts &= (counts == 1) | (unrolls[:, list(paired)] % 2 == 0).any(axis=1)
    unrolls, counts = unrolls[allowed_counts], counts[allowed_counts]
    words = sum([unrolls[:, dims].prod(axis=1) for dims in tensors], np.zeros(len(counts), np.int64))
    summed = unrolls[:, reductions].prod(axis=1)
    held = unrolls[:, list(allowed)].prod(axis=1)
    enough = (held == 1) | (counts > counts[held == 1].max())
    unrolls, counts, words, summed, held = (found[enough] for found in (unrolls, counts, words, summed, held))
    order = np.lexsort((*reversed(unrolls.T), -summed, words, held, counts))
    # lanes divide their dims, so that equally many lanes always leave equally many cycles
    firsts = order[np.flatnonzero(np.diff(counts[order], prepend=0))]
    work = prod(trips)
    return tuple([Lanes(work // int(counts[n]), tuple(unrolls[n].tolist())) for n in firsts[::-1]])


@cache
def useful_factors(trip: int) -> tuple[int, ...]:
    """The divisors, ascending."""
    return tuple(lanes for lanes in range(1, trip + 1) if trip % lanes == 0)
