"""Gives slices and concatenations their plain form: one dim at a time, of tensors that are not made of parts again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import tensor
from xdsl.ir import Operation, SSAValue

from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.parts import bounds, concat_along, cut_dims, slice_along
from penstock.compiler.transforms.reshapes import reshape
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class SplitSlices(Rewrite):
    """A slice of several dims becomes a chain; one of a slice, or of one part of a concatenation, cuts that itself."""

    name: ClassVar[str] = "split-slices"

    def rewrite(self, editor: Editor) -> None:
        for op in list(editor.block.ops):
            if isinstance(op, tensor.ExtractSliceOp):
                _split(op)
            elif isinstance(op, tensor.ConcatOp):
                _flatten(op)


def _split(op: tensor.ExtractSliceOp) -> None:
    offsets, sizes = bounds(op)
    value: SSAValue = op.source
    for dim in cut_dims(op):
        value = _cut(op, value, dim, offsets[dim], sizes[dim])
    if shape_of(value) != shape_of(op.result):  # the slice also dropped dims of one element
        value = _insert(op, reshape(value, shape_of(op.result)))
    op.result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _cut(before: Operation, source: SSAValue, dim: int, start: int, size: int) -> SSAValue:
    """The part of a value along one dim, taken from as early a value as holds it."""
    if start == 0 and size == shape_of(source)[dim]:
        return source
    owner = source.owner
    if isinstance(owner, tensor.ExtractSliceOp) and cut_dims(owner) == [dim]:
        return _cut(before, owner.source, dim, bounds(owner)[0][dim] + start, size)
    if isinstance(owner, tensor.ConcatOp) and owner.dim.value.data == dim:
        begin = 0
        for part in owner.inputs:
            end = begin + shape_of(part)[dim]
            if begin <= start and start + size <= end:
                return _cut(before, part, dim, start - begin, size)
            begin = end
    return _insert(before, slice_along(source, dim, start, size, before))


def _flatten(op: tensor.ConcatOp) -> None:
    dim = op.dim.value.data
    parts: list[SSAValue] = []
    for source in op.inputs:
        inner = source.owner
        if isinstance(inner, tensor.ConcatOp) and inner.dim.value.data == dim and source.uses.get_length() == 1:
            parts.extend(inner.inputs)
        else:
            parts.append(source)
    if len(parts) == 1:
        op.result.replace_all_uses_with(parts[0])
    elif parts != list(op.inputs):
        op.result.replace_all_uses_with(_insert(op, concat_along(parts, dim, op)))


def _insert(before: Operation, op: Operation) -> SSAValue:
    assert before.parent is not None
    before.parent.insert_op_before(op, before)
    return op.results[0]
