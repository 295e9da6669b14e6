"""Lets a slice or a concatenation cut a tensor with finer dims than before."""

from __future__ import annotations

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.utils.hints import isa

from penstock.compiler.transforms.editor import Editor, layer_of, shape_of, tensor_of
from penstock.compiler.transforms.parts import PartShape, bounds, concat_along, cut_dims, slice_along
from penstock.compiler.transforms.reshapes import groups, reshape
from penstock.compiler.transforms.unit_dims import copy_units, differ_in_units


def split_parts(editor: Editor, op: Operation, value: SSAValue, shape: PartShape) -> bool:
    """Rebuild a slice or concatenation so that `value`, which it reads or makes, has the finer `shape`.

    False if the cut is not at a border of the finer dims: a cut of 6 in (3, 4) is none of rows.
    """
    assert isinstance(op, tensor.ExtractSliceOp | tensor.ConcatOp)
    finer = [tuple(shape[d] for d in group) for group in groups(shape, shape_of(value))]
    dim = cut_dims(op)[0] if isinstance(op, tensor.ExtractSliceOp) else op.dim.value.data
    outer, inner = _cut_place(finer[dim])
    cuts = bounds(op)[0][dim : dim + 1] if isinstance(op, tensor.ExtractSliceOp) else ()
    sizes = [shape_of(part)[dim] for part in (*op.operands, *op.results)]
    if any(number % inner for number in (*cuts, *sizes)):
        return False
    place = sum(len(group) for group in finer[:dim]) + outer
    tail = finer[dim][outer + 1 :]

    def refine(old: PartShape) -> PartShape:
        new: list[int] = []
        for d, (size, group) in enumerate(zip(old, finer, strict=True)):
            new.extend((*group[:outer], size // inner, *tail) if d == dim else group)
        return tuple(new)

    sources = [_reshaped(editor, op, source, refine(shape_of(source))) for source in op.operands]
    if isinstance(op, tensor.ExtractSliceOp):
        size = bounds(op)[1][dim] // inner
        new: Operation = slice_along(sources[0], place, bounds(op)[0][dim] // inner, size, op)
    else:
        new = concat_along(sources, place, op)
    editor.block.insert_op_before(new, op)
    op.results[0].replace_all_uses_with(_in_shape(editor, op, new.results[0], shape_of(op.results[0])))
    op.detach()
    op.erase()
    return True


def _cut_place(group: PartShape) -> tuple[int, int]:
    """Which of the finer dims takes the cut (the outermost that has elements), and how many elements one step is."""
    outer = next((d for d, size in enumerate(group) if size > 1), len(group) - 1)
    inner = 1
    for size in group[outer + 1 :]:
        inner *= size
    return outer, inner


def _reshaped(editor: Editor, op: Operation, value: SSAValue, shape: PartShape) -> SSAValue:
    kind = value.type
    assert isa(kind, TensorType)
    owner = value.owner
    if isinstance(owner, tensor.CollapseShapeOp) and shape_of(owner.operands[0]) == shape:
        return owner.operands[0]
    if editor.is_param(value):
        if value.uses.get_length() == 1:
            return editor.retype(value, tensor_of(shape, kind.element_type))
        return editor.add_param(editor.name(value), editor.data(value).reshape(shape))
    return _in_shape(editor, op, value, shape)


def _in_shape(editor: Editor, op: Operation, value: SSAValue, shape: PartShape) -> SSAValue:
    """By a reshape, which moves on; but for dims of one element, which would come back, each time with one more."""
    if shape == shape_of(value):
        return value
    if differ_in_units(shape_of(value), shape):
        new = copy_units(value, shape, editor.free_layer(f"{layer_of(op)}.part"))
    else:
        new = (reshape(value, shape),)
    editor.block.insert_ops_before(new, op)
    return new[-1].results[0]
