"""Puts an elementwise operation behind reductions whose sums cannot be used as they are after quantisation.

Quantisation narrows values in elementwise operations: a reduction that reads another one needs narrow values, so do
slices and concatenations, and the host can scale a result by columns only. Products summed up that several operations
read are narrowed once, before they part: one of these mostly waits for another, as a norm does for its own sum, and
what waits meanwhile would take 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, func
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, SSAValue, Use
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.transforms.editor import Editor, layer_of, shape_of
from penstock.compiler.transforms.generics import PARALLEL, build_generic, empty, is_reduction, maps_of, yielded
from penstock.compiler.transforms.parts import moves_data
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class InsertRequantise(Rewrite):
    name: ClassVar[str] = "insert-requantise"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            if is_reduction(op):
                several = _sums_products(op) and _is_read_several_times(op)
                readers = [use for use in op.results[0].uses if _needs_other_scale(editor, op, use, several=several)]
                if readers:
                    copy = _copy_behind(editor, op)
                    for use in readers:
                        use.operation.operands[use.index] = copy


def _sums_products(op: linalg.GenericOp) -> bool:
    """Of two tensors: such sums are in 32 bits, where a largest or smallest number is no wider than what it is of."""
    return len(set(op.inputs)) > 1 and isinstance(yielded(op).owner, arith.AddfOp)


def _is_read_several_times(op: linalg.GenericOp) -> bool:
    readers = {use.operation for use in op.results[0].uses}
    return sum(not isinstance(reader, func.ReturnOp) for reader in readers) > 1


def _needs_other_scale(editor: Editor, op: linalg.GenericOp, use: Use, *, several: bool) -> bool:
    if isinstance(use.operation, func.ReturnOp):
        if editor.program.layers is not None:  # whose weights have other scales; the host has one
            return True
        return not _scales_by_columns(editor, op, editor.signature.outputs[use.index].shape)
    return several or is_reduction(use.operation) or moves_data(use.operation)


def _scales_by_columns(editor: Editor, op: linalg.GenericOp, port: tuple[int, ...]) -> bool:
    """Whether a weight's channels are the columns of the rows that the host sees."""
    maps, written = maps_of(op), maps_of(op)[-1]
    weights = [layout for value, layout in zip(op.inputs, maps, strict=False) if editor.is_param(value)]
    channels = set[int]().union(*(layout.used_dims() & written.used_dims() for layout in weights))
    last = written.results[-1]
    assert isinstance(last, AffineDimExpr)
    return channels <= {last.position} and shape_of(op.results[0])[-1:] == port[-1:]


def _copy_behind(editor: Editor, op: linalg.GenericOp) -> SSAValue:
    result = op.results[0]
    block = Block(arg_types=[get_element_type_or_self(result.type)] * 2)
    block.add_op(linalg.YieldOp(block.args[0]))
    target, rank = empty(result.type), len(shape_of(result))
    identity = AffineMap.identity(rank)
    layer = editor.free_layer(f"{layer_of(op)}.requantise")
    copy = build_generic([result], target.tensor, [identity] * 2, [PARALLEL] * rank, block, layer)
    editor.block.insert_ops_after([target, copy], op)
    return copy.results[0]
