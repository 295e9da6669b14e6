"""How a memory is cut into banks and words by those who use it, and where in them an access finds its lanes.

Lanes that every access meets together are one granule, the word of a bank. What is met at once beyond that is in
banks of its own. Banks go round in each dim, so a corner that is no multiple of the banks starts at another bank than
the first: the access is turned.
Everyone who counts, checks, schedules or writes a memory asks here, so that what is counted is what is built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import gcd, prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.extents import extents_of
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.nest import MemoryOp
from penstock.compiler.dialects.types import vector_type

WIDEST_WORD = 4096
"""Bits of one word of a bank: the tools take no wider ones for granted, so wider ones lie in several banks."""


@dataclass(frozen=True)
class Linear:
    """`offset + sum(factor * counter)` over the loops of a nest."""

    factors: tuple[int, ...]
    offset: int

    def times(self, factor: int) -> Linear:
        return Linear(tuple(f * factor for f in self.factors), self.offset * factor)

    def over(self, divisor: int) -> Linear:
        return Linear(tuple(f // divisor for f in self.factors), self.offset // divisor)

    def plus(self, other: Linear) -> Linear:
        return Linear(
            tuple(a + b for a, b in zip(self.factors, other.factors, strict=True)), self.offset + other.offset
        )

    @property
    def constant(self) -> int | None:
        return None if any(self.factors) else self.offset


def linear_of(address: AffineMap) -> list[Linear]:
    """The results of an affine map, dim by dim."""
    origin = [0] * address.num_dims
    return [Linear(coefficients(e, address.num_dims), e.eval(origin, [])) for e in address.results]


@dataclass(frozen=True)
class Access:
    """One load or store: so many lanes in each dim, from a corner that moves with the loops of its nest."""

    lanes: tuple[int, ...]
    corner: tuple[Linear, ...]
    trips: tuple[int, ...]
    writes: bool

    @staticmethod
    def of(address: AffineMap, lanes: Sequence[int], trips: Sequence[int], *, writes: bool) -> Access:
        return Access(tuple(lanes), tuple(linear_of(address)), tuple(trips), writes)


@dataclass(frozen=True)
class Dim:
    """One dim: `size` elements in granules of `granule`, over `banks` banks of `words` words."""

    size: int
    granule: int
    banks: int

    @property
    def words(self) -> int:
        return -(-self.size // (self.granule * self.banks))


@dataclass(frozen=True)
class BankPlace:
    """Where an access is in one dim, in granules: `count` of them from bank `turn`, in word `word`.

    Where neither is linear, both come from `corner`: turn is its remainder by the banks, word its quotient.
    """

    count: int
    turn: Linear
    word: Linear
    corner: Linear | None
    wraps: bool
    """Whether the last granules may lie in the word after."""


@dataclass(frozen=True)
class Geometry:
    """A memory of `prod(words)` words of `lanes` elements in each of `prod(banks)` banks."""

    dims: tuple[Dim, ...]

    @cached_property
    def banks(self) -> int:
        return prod(d.banks for d in self.dims)

    @cached_property
    def words(self) -> int:
        return prod(d.words for d in self.dims)

    @cached_property
    def lanes(self) -> int:
        return prod(d.granule for d in self.dims)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        return tuple(prod(d.words for d in self.dims[i + 1 :]) for i in range(len(self.dims)))

    @property
    def in_registers(self) -> Geometry:
        """The same memory with a bank for every word."""
        return Geometry(tuple([Dim(d.size, d.granule, -(-d.size // d.granule)) for d in self.dims]))

    def place(self, access: Access) -> list[BankPlace]:
        """Where the access is in every dim."""
        found: list[BankPlace] = []
        for dim, lanes, corner in zip(self.dims, access.lanes, access.corner, strict=True):
            corner, count = corner.over(dim.granule), lanes // dim.granule
            still = Linear((0,) * len(corner.factors), 0)
            turns = _remainders(corner, dim.banks, access.trips)
            if dim.words == 1:
                found.append(BankPlace(count, corner, still, None, wraps=False))
            elif len(turns) == 1:
                turn = next(iter(turns))
                word = Linear(corner.factors, corner.offset - turn).over(dim.banks)
                at = Linear(still.factors, turn)
                found.append(BankPlace(count, at, word, None, wraps=turn + count > dim.banks))
            else:
                found.append(BankPlace(count, still, still, corner, wraps=max(turns) + count > dim.banks))
        return found

    def choices(self, access: Access) -> int:
        """In how many banks a lane of the access may find its element: so many are multiplexed."""
        corners = [corner.over(dim.granule) for dim, corner in zip(self.dims, access.corner, strict=True)]
        return prod(len(_remainders(c, d.banks, access.trips)) for d, c in zip(self.dims, corners, strict=True))

    def element(self, bank: int, word: int, lane: int) -> tuple[int, ...]:
        """The index of an element, which may lie beyond the memory's end."""
        index: list[int] = []
        for dim in reversed(self.dims):
            bank, b = divmod(bank, dim.banks)
            word, w = divmod(word, dim.words)
            lane, g = divmod(lane, dim.granule)
            index.append((w * dim.banks + b) * dim.granule + g)
        return tuple(reversed(index))


def geometry_of(
    shape: Sequence[int], accesses: Iterable[Access], element_bits: int, widest: int = WIDEST_WORD
) -> Geometry:
    """The fewest banks in which every access finds all its lanes at once, and the widest words that none cuts."""
    met = list(accesses)
    cuts = [max((a.lanes[dim] for a in met), default=1) for dim in range(len(shape))]
    granules = [_granule(cut, dim, met) for dim, cut in enumerate(cuts)]
    for dim, granule in enumerate(granules):
        pieces = -(-prod(granules) * element_bits // widest)
        if pieces > 1:
            granules[dim] = granule // next(n for n in range(min(pieces, granule), granule + 1) if granule % n == 0)
    return Geometry(tuple([Dim(n, g, cut // g) for n, g, cut in zip(shape, granules, cuts, strict=True)]))


def _granule(cut: int, dim: int, accesses: Sequence[Access]) -> int:
    """The lanes that no access ever parts."""
    granule = cut
    for access in accesses:
        corner = access.corner[dim]
        moves = [factor for factor, trip in zip(corner.factors, access.trips, strict=True) if trip > 1]
        granule = gcd(granule, corner.offset, *moves, access.lanes[dim])
    return granule


def accesses_of(memory: SSAValue, task: Operation | None = None, *, writes: bool | None = None) -> list[MemoryOp]:
    """All accesses to a memory, or those of one task, or those that go one way."""
    uses = [use.operation for use in memory.uses]
    return [
        op
        for op in uses
        if isinstance(op, nest.LoadOp | nest.StoreOp)
        and (writes is None or isinstance(op, nest.StoreOp) == writes)
        and (task is None or task.is_ancestor(op))
    ]


def access_of(op: MemoryOp) -> Access:
    """What a load or store asks of its memory."""
    parent = op.parent_op()
    trips = extents_of(parent).most if isinstance(parent, nest.NestOp) else (2,) * op.address.data.num_dims
    return Access.of(op.address.data, lanes_of(op), trips, writes=isinstance(op, nest.StoreOp))


def lanes_of(access: MemoryOp) -> tuple[int, ...]:
    return tuple(vector_type(access.result if isinstance(access, nest.LoadOp) else access.value).get_shape())


@lru_cache(maxsize=1 << 14)
def _remainders(corner: Linear, banks: int, trips: tuple[int, ...]) -> frozenset[int]:
    """Every bank at which the access can start."""
    found = {corner.offset % banks}
    for factor, trip in zip(corner.factors, trips, strict=True):
        if factor % banks == 0:
            continue  # along this loop it stays in its bank
        steps = {factor * i % banks for i in range(min(trip, banks))}
        found = {(a + b) % banks for a in found for b in steps}
    return frozenset(found)
