"""A memory copied into others, as a nest."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest import ALWAYS, Loop
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import memref_type


def copy_nest(name: str, shape: tuple[int, ...], source: SSAValue, targets: Sequence[SSAValue]) -> nest.NestOp:
    """A memory word by word into others."""
    moving = [d for d, n in enumerate(shape) if n > 1]  # a dim of one word needs no counter
    places = [AffineDimExpr(moving.index(d)) if d in moving else AffineConstantExpr(0) for d in range(len(shape))]
    address = AffineMap(max(1, len(moving)), 0, tuple(places))
    element = vector_element(source)
    load = nest.LoadOp(source, address, ALWAYS, VectorType(element, [1] * len(shape)))
    stores = [nest.StoreOp(load.result, target, address, ALWAYS) for target in targets]
    loops = [Loop(f"d{d}", shape[d]) for d in moving] or [Loop("once", 1)]
    return nest.NestOp(name, loops, Region(Block([load, *stores])))


def vector_element(memory: SSAValue) -> Attribute:
    kind = memory.type
    return memref_type(kind.block if isinstance(kind, BlocksType) else kind).element_type
