"""How a memory is cut into banks, and where in them an access finds its lanes.

Lanes that always lie together in every access are one granule, the word of a bank. Banks go round in each dim, so a
corner that is no multiple of the banks starts at another bank than the first: the access is turned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.nest import MemoryOp
from penstock.compiler.dialects.types import vector_type


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
class Dim:
    """One dim: `size` elements in granules of `granule`, over `banks` banks of `words` words."""

    size: int
    granule: int
    banks: int
    words: int


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

    def place(self, access: MemoryOp, trips: Sequence[int]) -> list[BankPlace]:
        """Where the access is in every dim."""
        found: list[BankPlace] = []
        for dim, lanes, corner in zip(self.dims, lanes_of(access), linear_of(access.address.data), strict=True):
            corner, count = corner.over(dim.granule), lanes // dim.granule
            still = Linear((0,) * len(corner.factors), 0)
            turns = _remainders(corner, dim.banks, trips)
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

    def element(self, bank: int, word: int, lane: int) -> tuple[int, ...]:
        """The index of an element, which may lie beyond the memory's end."""
        index: list[int] = []
        for dim in reversed(self.dims):
            bank, b = divmod(bank, dim.banks)
            word, w = divmod(word, dim.words)
            lane, g = divmod(lane, dim.granule)
            index.append((w * dim.banks + b) * dim.granule + g)
        return tuple(reversed(index))


def geometry_of(memory: SSAValue, cuts: Sequence[int]) -> Geometry:
    """The geometry of a memory that is cut into so many banks a dim."""
    accesses = accesses_of(memory)
    dims: list[Dim] = []
    for position, (size, cut) in enumerate(zip(nest.memory_shape(memory), cuts, strict=True)):
        granule = cut
        for access in accesses:
            corner = linear_of(access.address.data)[position]
            granule = gcd(granule, corner.offset, *corner.factors, lanes_of(access)[position])
        dims.append(Dim(size, granule, cut // granule, -(-size // cut)))
    return Geometry(tuple(dims))


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


def lanes_of(access: MemoryOp) -> tuple[int, ...]:
    return tuple(vector_type(access.result if isinstance(access, nest.LoadOp) else access.value).get_shape())


def _remainders(corner: Linear, banks: int, trips: Sequence[int]) -> set[int]:
    """Every bank at which the access can start."""
    found = {corner.offset % banks}
    for factor, trip in zip(corner.factors, trips, strict=True):
        steps = {factor * i % banks for i in range(min(trip, banks))}
        found = {(a + b) % banks for a in found for b in steps}
    return found
