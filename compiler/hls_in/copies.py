"""A memory copied into others, as a nest."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.nest import ALWAYS, Loop
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.dialects.types import memref_type


def copy_nest(name: str, shape: tuple[int, ...], source: SSAValue, targets: Sequence[SSAValue]) -> nest.NestOp:
    """A memory word by word into others."""
    address = AffineMap.identity(len(shape))
    element = vector_element(source)
    load = nest.LoadOp(source, address, ALWAYS, VectorType(element, [1] * len(shape)))
    stores = [nest.StoreOp(load.result, target, address, ALWAYS) for target in targets]
    loops = [Loop(f"d{i}", n) for i, n in enumerate(shape)]
    return nest.NestOp(name, loops, Region(Block([load, *stores])))


def vector_element(memory: SSAValue) -> Attribute:
    kind = memory.type
    return memref_type(kind.block if isinstance(kind, BlocksType) else kind).element_type
