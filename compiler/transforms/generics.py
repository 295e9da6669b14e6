"""Questions about linalg.generic, and the building of new ones, for the passes on linalg."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
)
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.editor import LAYER

PARALLEL, REDUCTION = IteratorTypeAttr.parallel(), IteratorTypeAttr.reduction()


def maps_of(op: linalg.GenericOp) -> list[AffineMap]:
    return [attribute.data for attribute in op.indexing_maps]


def iterators_of(op: linalg.GenericOp) -> list[IteratorTypeAttr]:
    return list(op.iterator_types)


def is_elementwise(op: Operation) -> bool:
    return isinstance(op, linalg.GenericOp) and all(kind == PARALLEL for kind in op.iterator_types)


def is_reduction(op: Operation) -> bool:
    return isinstance(op, linalg.GenericOp) and any(kind == REDUCTION for kind in op.iterator_types)


def body_ops(op: linalg.GenericOp) -> list[Operation]:
    """The body without its yield."""
    return list(op.body.block.ops)[:-1]


def yielded(op: linalg.GenericOp) -> SSAValue:
    terminator = op.body.block.last_op
    assert isinstance(terminator, linalg.YieldOp)
    return terminator.operands[0]


def is_copy(op: Operation) -> bool:
    """Whether it only moves its one input: a transpose or a broadcast."""
    return (
        isinstance(op, linalg.GenericOp)
        and is_elementwise(op)
        and len(op.inputs) == 1
        and yielded(op) is op.body.block.args[0]
    )


def filled_with(value: SSAValue) -> arith.ConstantOp | None:
    """The constant that a tensor is filled with, if it is a linalg.fill of one."""
    fill = value.owner
    if isinstance(fill, linalg.FillOp):
        source = fill.inputs[0].owner
        if isinstance(source, arith.ConstantOp):
            return source
    return None


def scalar_constant(value: SSAValue) -> NDArray[Any] | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and not isa(op.result.type, TensorType):
        return evaluate(op, [])
    return None


def constant(value: float | int | NDArray[Any], kind: Attribute) -> arith.ConstantOp:
    """An arith.constant of a scalar type."""
    number = np.asarray(value).item()
    if isinstance(kind, IndexType) or isa(kind, IntegerType):
        return arith.ConstantOp(IntegerAttr(int(number), kind))
    assert isinstance(kind, AnyFloat)
    return arith.ConstantOp(FloatAttr(float(number), kind))


def build_generic(
    inputs: Sequence[SSAValue],
    init: SSAValue,
    maps: Sequence[AffineMap],
    iterators: Sequence[IteratorTypeAttr],
    body: Block,
    layer: str,
) -> linalg.GenericOp:
    op = linalg.GenericOp(
        inputs,
        [init],
        Region(body),
        [AffineMapAttr(m) for m in maps],
        list(iterators),
        [init.type],
    )
    op.attributes[LAYER] = StringAttr(layer)
    return op


def empty(kind: Attribute) -> tensor.EmptyOp:
    return tensor.EmptyOp([], kind)


def clone_body(op: linalg.GenericOp) -> Block:
    """A detached copy of the body; values captured from outside stay captured."""
    return op.body.clone().detach_block(0)


def replace(old: Operation, new: Sequence[Operation]) -> None:
    """Put operations in the place of one; the last one's result takes over all uses."""
    assert old.parent is not None
    old.parent.insert_ops_before(new, old)
    old.results[0].replace_all_uses_with(new[-1].results[0])
    old.detach()
    old.erase()


def rebuild(
    op: linalg.GenericOp,
    *,
    inputs: Sequence[SSAValue] | None = None,
    init: SSAValue | None = None,
    maps: Sequence[AffineMap] | None = None,
    iterators: Sequence[IteratorTypeAttr] | None = None,
) -> linalg.GenericOp:
    """Replace an operation by one with other operands, maps or loops; the body moves over as it is."""
    layer = op.attributes[LAYER]
    assert isinstance(layer, StringAttr)
    init = op.outputs[0] if init is None else init
    new = build_generic(
        op.inputs if inputs is None else inputs,
        init,
        maps_of(op) if maps is None else maps,
        iterators_of(op) if iterators is None else iterators,
        op.body.detach_block(0),
        layer.data,
    )
    replace(op, [new])
    return new


def without_unused_loops(
    maps: Sequence[AffineMap], iterators: Sequence[IteratorTypeAttr]
) -> tuple[list[AffineMap], list[IteratorTypeAttr]]:
    """Without the loops that no operand follows any more: those of one trip whose operand became a constant."""
    used = sorted(set[int]().union(*(layout.used_dims() for layout in maps)))
    moved = [AffineDimExpr(used.index(d)) if d in used else AffineDimExpr(0) for d in range(len(iterators))]
    kept = [layout.replace_dims_and_symbols(moved, (), len(used), 0) for layout in maps]
    return kept, [iterators[d] for d in used]
