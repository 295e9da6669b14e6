"""HIDA's intensity- and connection-aware unrolling: connected loop nests agree on factors, lanes follow the work.

Two nests are connected where one reads the buffer that the other writes. A permutation map says which loops of the
two walk the same dim of the buffer, a scaling map how their strides relate. Nests are unrolled in the order of their
connections; factors of a later one divide, or are divided by, those of the nests that it is connected to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product
from math import lcm, prod
from typing import Literal

Factors = tuple[int, ...]
Along = Literal["parallel", "reduction", "balanced"]


@dataclass(frozen=True)
class BufferWalk:
    """How a nest walks a buffer: for every dim of it the loop that drives it, and with which stride."""

    buffer: str
    dims: tuple[tuple[int | None, int], ...]

    @staticmethod
    def of(buffer: str, *loops: int | None) -> BufferWalk:
        """With stride 1 everywhere."""
        return BufferWalk(buffer, tuple((loop, 1) for loop in loops))


@dataclass(frozen=True)
class LoopNest:
    """A node of the dataflow: trip counts of its loops, what it writes and reads."""

    name: str
    trips: tuple[int, ...]
    writes: tuple[BufferWalk, ...] = ()
    reads: tuple[BufferWalk, ...] = ()

    @property
    def intensity(self) -> int:
        """How many times its body runs."""
        return prod(self.trips)

    @property
    def accesses(self) -> tuple[BufferWalk, ...]:
        return (*self.writes, *self.reads)

    @property
    def reductions(self) -> frozenset[int]:
        """Loops that no result has a dim for."""
        written = {loop for access in self.writes for loop, _ in access.dims}
        return frozenset(range(len(self.trips))) - written if self.writes else frozenset()


@dataclass(frozen=True)
class View:
    """One nest seen from another: for each loop here the loop there that walks the same dim, and the ratio."""

    permutation: tuple[int | None, ...]
    """By loop of the nest that looks: the matching loop of the other."""
    scaling: tuple[Fraction, ...]
    """By loop of the other nest: what its factor is multiplied by; 0 where no loop matches."""

    def constraints(self, factors: Factors) -> tuple[Fraction | None, ...]:
        """What the other's factors ask of each loop here; None where they ask nothing."""
        return tuple(None if p is None else factors[p] * self.scaling[p] for p in self.permutation)


@dataclass(frozen=True)
class Connection:
    """Source writes what target reads."""

    source: str
    target: str
    buffer: str
    source_to_target: View
    """The source's loops as the target sees them."""
    target_to_source: View


def connections(nests: Sequence[LoopNest]) -> tuple[Connection, ...]:
    """Every pair of a writer and a reader of one buffer, with the maps between their loops."""
    found: list[Connection] = []
    for source, target in product(nests, nests):
        for written, read in product(source.writes, target.reads):
            if written.buffer == read.buffer and source.name != target.name:
                forth, back = _view(source, written, target, read), _view(target, read, source, written)
                found.append(Connection(source.name, target.name, written.buffer, forth, back))
    return tuple(found)


def _view(seen: LoopNest, there: BufferWalk, looking: LoopNest, here: BufferWalk) -> View:
    permutation: list[int | None] = [None] * len(looking.trips)
    scaling = [Fraction(0)] * len(seen.trips)
    for (other, other_stride), (own, own_stride) in zip(there.dims, here.dims, strict=True):
        if other is not None and own is not None:
            permutation[own] = other
            scaling[other] = Fraction(other_stride, own_stride)
    return View(tuple(permutation), tuple(scaling))


def parallel_factors(nests: Sequence[LoopNest], most: int, *, by_intensity: bool = True) -> dict[str, int]:
    """How many lanes each nest may have: the busiest one the most, the others in proportion to their work."""
    busiest = max(nest.intensity for nest in nests)
    share = {n.name: most * n.intensity // busiest if by_intensity else most for n in nests}
    return {name: max(1, lanes) for name, lanes in share.items()}


def unrolling_order(nests: Sequence[LoopNest]) -> list[LoopNest]:
    """The most connected nest first, of equals the one with more work."""
    links = connections(nests)
    count = {n.name: sum(n.name in (c.source, c.target) for c in links) for n in nests}
    return sorted(nests, key=lambda n: (-count[n.name], -n.intensity))


def unroll_factors(
    nests: Sequence[LoopNest],
    most: int,
    *,
    by_intensity: bool = True,
    by_connection: bool = True,
    along: Along = "parallel",
    allowed: Mapping[str, Sequence[Sequence[int]]] | None = None,
) -> dict[str, Factors]:
    """Factors for every loop of every nest, a nest having at most its share of `most` lanes.

    `allowed` restricts a nest's factors loop by loop; by default every divisor of a trip count will do. Of all
    factors that agree with the neighbours those with the most lanes win, then those with most of them `along` the
    loops asked for, then those with the fewest banks in the buffers that are shared with neighbours, then the most
    even ones, then those with more lanes inside.
    """
    share = parallel_factors(nests, most, by_intensity=by_intensity)
    links = connections(nests) if by_connection else ()
    decided: dict[str, Factors] = {}
    by_name = {nest.name: nest for nest in nests}
    for nest in unrolling_order(nests):
        choices = (allowed or {}).get(nest.name) or [divisors(trip) for trip in nest.trips]
        constraints = _constraints(nest, links, decided)
        neighbours = [by_name[name] for name in _decided_neighbours(nest, links, decided)]
        fitting = [f for f in _within(choices, share[nest.name]) if all(_agree(asked, f) for asked in constraints)]
        most_lanes = max(map(prod, fitting), default=0)
        best: tuple[tuple[int, int, int, Factors], Factors] | None = None
        for factors in fitting:
            if prod(factors) == most_lanes:
                banks = _banks_shared(nest, factors, neighbours, decided)
                rank = (*_liking(nest, factors, along, banks), factors)
                if best is None or rank < best[0]:
                    best = (rank, factors)
        decided[nest.name] = best[1] if best else tuple(min(c) for c in choices)
    return {nest.name: decided[nest.name] for nest in nests}


def _liking(nest: LoopNest, factors: Factors, along: Along, banks: int) -> tuple[int, int, int]:
    """Smaller is better: lanes along the wrong loops, banks, how uneven the factors are."""
    free = [f for loop, f in enumerate(factors) if loop not in nest.reductions]
    adding = [f for loop, f in enumerate(factors) if loop in nest.reductions]
    wrong, even = {"parallel": (prod(adding), free), "reduction": (prod(free), adding), "balanced": (1, factors)}[along]
    return wrong, banks, max(even, default=1) - min(even, default=1)


def bank_factors(nests: Sequence[LoopNest], factors: Mapping[str, Factors], buffer: str) -> Factors:
    """How a buffer is cut so that every access finds all its elements in different banks."""
    walks = [_banks(access, factors[n.name]) for n in nests for access in n.accesses if access.buffer == buffer]
    return tuple(lcm(*column) for column in zip(*walks, strict=True))


def _banks(access: BufferWalk, factors: Factors) -> list[int]:
    """Lanes a stride apart reach over so many elements; a single lane asks for nothing."""
    return [1 if loop is None or factors[loop] == 1 else factors[loop] * stride for loop, stride in access.dims]


def _constraints(
    nest: LoopNest, links: Sequence[Connection], decided: Mapping[str, Factors]
) -> list[tuple[Fraction | None, ...]]:
    asked: list[tuple[Fraction | None, ...]] = []
    for link in links:
        if link.target == nest.name and link.source in decided:
            asked.append(link.source_to_target.constraints(decided[link.source]))
        if link.source == nest.name and link.target in decided:
            asked.append(link.target_to_source.constraints(decided[link.target]))
    return asked


def _agree(asked: tuple[Fraction | None, ...], factors: Factors) -> bool:
    """One divides the other, loop by loop."""
    return all(
        constraint is None or constraint % factor == 0 or factor % constraint == 0
        for constraint, factor in zip(asked, factors, strict=True)
    )


def _decided_neighbours(nest: LoopNest, links: Sequence[Connection], decided: Mapping[str, Factors]) -> list[str]:
    names = [link.source if link.target == nest.name else link.target for link in links
             if nest.name in (link.source, link.target)]  # fmt: skip
    return [name for name in dict.fromkeys(names) if name in decided]


def _banks_shared(
    nest: LoopNest, factors: Factors, neighbours: Sequence[LoopNest], decided: Mapping[str, Factors]
) -> int:
    if not neighbours:
        return 0
    known = {**{n.name: decided[n.name] for n in neighbours}, nest.name: factors}
    others = {access.buffer for n in neighbours for access in n.accesses}
    shared = dict.fromkeys(access.buffer for access in nest.accesses if access.buffer in others)
    return sum(prod(bank_factors([*neighbours, nest], known, buffer)) for buffer in shared)


def _within(choices: Sequence[Sequence[int]], most: int) -> list[Factors]:
    """Every choice of one factor a loop whose product is at most `most`."""
    found: list[Factors] = [()]
    for options in choices:
        found = [(*head, f) for head in found for f in options if prod(head) * f <= most]
    return found


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))
