"""Which unroll factors a kernel may have, what they cost, and the cheapest that keeps up with a pace."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod


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
    without: tuple[int, ...] = (),
    tensors: tuple[tuple[int, ...], ...] = (),
) -> tuple[Lanes, ...]:
    """Ways to unroll with at most `most` lanes of which none is beaten in both lanes and cycles, the fastest first.

    Dims `without` lanes get none.
    Of equals the one with more lanes along reductions: their sums are added up before anything is kept, so
    fewer partial results need memory, and fewer results leave at once. With `tensors`, the dims of each that the kernel
    meets, the one that meets the fewest words of them in an iteration.
    """
    best: dict[int, tuple[int, int, int, tuple[int, ...]]] = {}
    for unroll in _factors([1 if d in without else trip for d, trip in enumerate(trips)], most):
        cycles = prod(trip // lanes for trip, lanes in zip(trips, unroll, strict=True))
        words = sum(prod(unroll[d] for d in dims) for dims in tensors)
        rank = (cycles, words, -prod(unroll[d] for d in reductions), unroll)
        count = prod(unroll)
        if count not in best or rank < best[count]:
            best[count] = rank
    front: list[Lanes] = []
    for count in sorted(best):
        cycles, *_, unroll = best[count]
        if not front or cycles < front[-1].cycles:
            front.append(Lanes(cycles, unroll))
    return tuple(reversed(front))


def _factors(trips: Sequence[int], most: int) -> Iterator[tuple[int, ...]]:
    if not trips:
        yield ()
        return
    for lanes in useful_factors(trips[0]):
        if lanes > most:
            break
        for rest in _factors(trips[1:], most // lanes):
            yield (lanes, *rest)


@cache
def useful_factors(trip: int) -> tuple[int, ...]:
    """The divisors, ascending."""
    return tuple(lanes for lanes in range(1, trip + 1) if trip % lanes == 0)
