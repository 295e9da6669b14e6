"""Two products with a factor in common in one multiplier.

A DSP slice of UltraScale+ multiplies 27 bits by 18. Two factors of at most 8 bits, 18 bits apart in one number, times a
third give both products in one, since neither reaches into the other's bits but for one borrow. Lanes side by side have
such a factor in common wherever an operand does not depend on the dim that they lie along: neighbouring outputs of a
layer multiply the same input, neighbouring places of a frame the same weight.

Where lanes are summed, both products pass on in one number, from one slice's adder to the next. In 18 bits there is
room for the sum of seven products of 8 bits by 8. Then the two sums are taken apart: once a chain, not once a product
(AMD's WP486).
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.types import integer_width

PAIRED, CHAINED = "paired", "chained"
"""The implementations' names, in bindings and in operator libraries: products taken apart one by one, or their sums."""
PAIRINGS = (PAIRED, CHAINED)
WIDEST_FACTOR = 8
FIELD = 18
"""Bits between two factors, and so of each sum."""
LONGEST_CHAIN = ((1 << (FIELD - 1)) - 1) >> 2 * (WIDEST_FACTOR - 1)
"""Products whose sum stays within its field, even of factors that are all the lowest number."""


@dataclass(frozen=True)
class Pairing:
    """Lanes 2i and 2i + 1 along `dim` multiply the same `shared` factor (0 or 1) of the product."""

    dim: int
    shared: int

    def operators(self, lanes: Sequence[int]) -> int:
        """How many multipliers the lanes take; of an odd number the last has one of its own."""
        return (lanes[self.dim] + 1) // 2 * (prod(lanes) // lanes[self.dim])


@dataclass(frozen=True)
class Cascade:
    """Lanes along `dims` of a paired product, summed in `count` chains of `length` products; the last has the rest."""

    dims: tuple[int, ...]
    terms: int

    @property
    def count(self) -> int:
        return -(-self.terms // LONGEST_CHAIN)

    @property
    def length(self) -> int:
        return -(-self.terms // self.count)

    def longer_than(self, link: int) -> int:
        """How many of them have a link of this number, from 0."""
        return self.count if link < self.terms - (self.count - 1) * self.length else self.count - 1

    def left(self, lanes: Sequence[int]) -> tuple[int, ...]:
        """The lanes that are still to be summed: one a chain, all along the first of the dims."""
        first = next(d for d in self.dims if lanes[d] > 1)
        return tuple(self.count if d == first else 1 if d in self.dims else n for d, n in enumerate(lanes))


def chains_of(
    pairing: Pairing, product: Block, lanes: Sequence[int], combine: Block, dims: Sequence[int]
) -> Cascade | None:
    """How the lanes of a paired product are chained that are combined along `dims`; None where they cannot be."""
    found, last, added = narrow_product(product), product.last_op, next(iter(combine.ops))
    terms = prod(lanes[d] for d in dims)
    if found is None or not isinstance(last, nest.YieldOp) or last.value is not found[0].result:
        return None
    if not isinstance(added, arith.AddiOp) or pairing.dim in dims or terms == 1:
        return None
    return Cascade(tuple(dims), terms)


def pair_up(lanes: Sequence[int], factors: Sequence[AbstractSet[int]]) -> Pairing | None:
    """The way to pair lanes that takes the fewest multipliers; `factors` are the dims that each factor depends on.

    None where no two lanes have a factor in common.
    """
    left, right = factors
    ways = [Pairing(dim, int(dim in left)) for dim, n in enumerate(lanes) if n > 1 and (dim in left) != (dim in right)]
    return min(ways, key=lambda way: (way.operators(lanes), way.dim), default=None)


def narrow_product(body: Block) -> tuple[arith.MuliOp, tuple[BlockArgument, BlockArgument]] | None:
    """The product of a scalar body whose factors are two of its arguments of so few bits; None if it has none."""
    for op in body.ops:
        if isinstance(op, arith.MuliOp):
            left, right = map(_narrow, op.operands)
            if left is not None and right is not None:
                return op, (left, right)
    return None


def pairing_of(body: Block, projections: Sequence[AffineMap], lanes: Sequence[int]) -> Pairing | None:
    """How the lanes of a body are paired whose arguments take theirs by `projections`."""
    product = narrow_product(body)
    if product is None:
        return None
    return pair_up(lanes, [projections[factor.index].used_dims() for factor in product[1]])


def _narrow(factor: SSAValue) -> BlockArgument | None:
    source = factor.owner.input if isinstance(factor.owner, arith.ExtSIOp) else factor
    narrow = 1 < (integer_width(source.type) or 0) <= WIDEST_FACTOR
    return source if isinstance(source, BlockArgument) and narrow else None
