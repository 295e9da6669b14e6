"""Moves transposes and broadcasts behind the slices and concatenations that read them, to where they cost nothing.

A copy that is read by computing operations becomes part of their indexing (`ComposeCopies`). One that is cut or joined
first would have to be made: so the source is cut or joined, and the copy made of that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.transforms.editor import Editor, layer_of, shape_of, tensor_of
from penstock.compiler.transforms.generics import build_generic, clone_body, empty, is_copy, iterators_of, maps_of
from penstock.compiler.transforms.parts import bounds, concat_along, cut_dims, slice_along
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class MoveSlices(Rewrite):
    name: ClassVar[str] = "move-slices"

    def rewrite(self, editor: Editor) -> None:
        for op in list(editor.block.ops):
            if isinstance(op, tensor.ExtractSliceOp):
                _slice_source(editor, op)
            elif isinstance(op, tensor.ConcatOp):
                _join_sources(editor, op)


def _slice_source(editor: Editor, op: tensor.ExtractSliceOp) -> None:
    copy = op.source.owner
    if not isinstance(copy, linalg.GenericOp) or not is_copy(copy):
        return
    (dim,) = cut_dims(op)
    axis = _source_axis(copy, dim)
    part: SSAValue = copy.inputs[0]
    if axis is not None:
        cut = slice_along(part, axis, bounds(op)[0][dim], bounds(op)[1][dim], op)
        editor.block.insert_op_before(cut, op)
        part = cut.result
    _replace_by_copy(editor, op, copy, part)


def _join_sources(editor: Editor, op: tensor.ConcatOp) -> None:
    dim = op.dim.value.data
    copies = [x.owner for x in op.inputs if isinstance(x.owner, linalg.GenericOp) and is_copy(x.owner)]
    if len(copies) != len(op.inputs) or any(maps_of(c) != maps_of(copies[0]) for c in copies):
        return
    axis = _source_axis(copies[0], dim)
    others = {tuple(s for d, s in enumerate(shape_of(c.inputs[0])) if d != axis) for c in copies}
    if axis is None or len(others) != 1:
        return
    joined = concat_along([c.inputs[0] for c in copies], axis, op)
    editor.block.insert_op_before(joined, op)
    _replace_by_copy(editor, op, copies[0], joined.result)


def _source_axis(copy: linalg.GenericOp, dim: int) -> int | None:
    """Which dim of a copy's source its result's dim follows; None where it is broadcast along it."""
    source, result = maps_of(copy)
    return _axis(source, result.results[dim])


def _axis(layout: AffineMap, expr: object) -> int | None:
    if not isinstance(expr, AffineDimExpr):
        return None
    return next((axis for axis, e in enumerate(layout.results) if e == expr), None)


def _replace_by_copy(editor: Editor, op: Operation, copy: linalg.GenericOp, source: SSAValue) -> None:
    result = op.results[0]
    target = empty(tensor_of(shape_of(result), get_element_type_or_self(result.type)))
    layer = editor.free_layer(layer_of(copy))
    new = build_generic([source], target.tensor, maps_of(copy), iterators_of(copy), clone_body(copy), layer)
    editor.block.insert_ops_before([target, new], op)
    result.replace_all_uses_with(new.results[0])
    op.detach()
    op.erase()
