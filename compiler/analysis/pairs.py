"""Two products with a factor in common in one multiplier.

A DSP slice of UltraScale+ multiplies 27 bits by 18. Two factors of at most 8 bits, 18 bits apart in one number, times a
third give both products in one, since neither reaches into the other's bits but for one borrow. Lanes side by side have
such a factor in common wherever an operand does not depend on the dim that they lie along: neighbouring outputs of a
layer multiply the same input, neighbouring places of a frame the same weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Block, BlockArgument, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects.types import integer_width

PAIRED = "paired"
"""The implementation's name, in bindings and in operator libraries."""
WIDEST_FACTOR = 8


@dataclass(frozen=True)
class Pairing:
    """Lanes 2i and 2i + 1 along `dim` multiply the same `shared` factor (0 or 1) of the product."""

    dim: int
    shared: int

    def operators(self, lanes: Sequence[int]) -> int:
        """How many multipliers the lanes take; of an odd number the last has one of its own."""
        return (lanes[self.dim] + 1) // 2 * (prod(lanes) // lanes[self.dim])


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
