"""Removes reshapes between layers by letting the operations around them loop over the finer shape.

A layer that reads a flattened tensor reads the unflattened one with two loops where it had one; a layer whose result
is unflattened writes it that way; slices and concatenations cut the finer shape where it has the cut. Parameters are
reshaped to follow. So merges of dimensions move down and splits move up, until they meet each other or the function's
border.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.utils.hints import isa
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.spatial import frame_dims
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.transforms.editor import Editor, layer_of, shape_of, tensor_of
from penstock.compiler.transforms.fold_reshapes import cancel_reshapes, is_reshape, normalise_reshapes
from penstock.compiler.transforms.generics import (
    build_generic,
    empty,
    filled_with,
    iterators_of,
    maps_of,
)
from penstock.compiler.transforms.parts import is_slice_or_concat
from penstock.compiler.transforms.reshapes import groups, reshape
from penstock.compiler.transforms.rewrite import Rewrite
from penstock.compiler.transforms.split_parts import split_parts


@dataclass(frozen=True)
class SplitLoops(Rewrite):
    """`max_steps` ends the search where two reshapes want to split one dimension differently."""

    name: ClassVar[str] = "split-loops"

    max_steps: int = 1000

    def rewrite(self, editor: Editor) -> None:
        for _ in range(self.max_steps):
            cancel_reshapes(editor)
            normalise_reshapes(editor)
            editor.remove_dead()
            if not _move_all(editor):
                break
            _check_settling(editor)


def _move_all(editor: Editor) -> bool:
    """Each reshape by one operation, if it may move; whether one did.

    Those beside an operation that was just made wait: what moves may meet there, and go away.
    """
    stays, known = merged_frames(editor), set(editor.block.ops)
    moved = False
    for op in list(editor.block.ops):
        if is_reshape(op) and op not in stays and all(one in known for one in _around(op)):
            moved |= _move(editor, op)
    return moved


def _around(op: Operation) -> list[Operation]:
    """What makes its operand, and all that read that or the result."""
    source = op.operands[0]
    makers = [source.owner] if isinstance(source.owner, Operation) else []
    return [*makers, *(use.operation for value in (source, op.results[0]) for use in value.uses)]


def merged_frames(editor: Editor) -> set[Operation]:
    """The merges of what became a frame's rows or columns, as of one that is enlarged: these stay.

    Loops along rows in three parts are no rows: windows could not pass them place by place, and all that is joined with
    the frame would be split as well, up to the model's first layers.
    """
    merges = [op for op in editor.block.ops if isinstance(op, tensor.CollapseShapeOp)]
    if not merges or not any(isinstance(op, SlideOp) for op in editor.block.ops):
        return set()
    dims = frame_dims(read_graph(editor.module).nodes)
    return {op for op in merges if any((op.result, d) in dims for d in _really_merged(op))}


def _really_merged(op: tensor.CollapseShapeOp) -> list[int]:
    """The dims that several of more than one element became."""
    shape = shape_of(op.operands[0])
    found = groups(shape, shape_of(op.results[0]))
    return [number for number, group in enumerate(found) if sum(shape[d] > 1 for d in group) > 1]


_MOST_DIMS = 16


def _check_settling(editor: Editor) -> None:
    """Two reshapes may drive each other in a circle, and each round adds a dim of one element."""
    for op in editor.generics():
        dims = max(layout.num_dims for layout in maps_of(op))
        if dims > _MOST_DIMS:
            raise PenstockError(
                code="unsupported-op", what="slices and reshapes around it want to split its dims in different ways",
                where=f"layer '{layer_of(op)}' of {editor.program.name}", limit=f"at most {_MOST_DIMS} dims",
                hint="reshape before cutting (heads of equal size, or products of their own instead of parts of one)",
            )  # fmt: skip


def _move(editor: Editor, op: Operation) -> bool:
    source, result = op.operands[0], op.results[0]
    if isinstance(op, tensor.CollapseShapeOp):
        for use in result.uses:
            if isinstance(use.operation, linalg.GenericOp):
                _split(editor, use.operation, use.index, shape_of(source), source)
                return True
            if is_slice_or_concat(use.operation) and split_parts(editor, use.operation, result, shape_of(source)):
                return True
        return False
    producer = source.owner
    if isinstance(producer, linalg.GenericOp):
        _split(editor, producer, len(producer.inputs), shape_of(result), None)
        return True
    if isinstance(producer, Operation) and is_slice_or_concat(producer):
        return split_parts(editor, producer, source, shape_of(result))
    return editor.is_input(source) and _give_shape(editor, source, shape_of(result))


def _give_shape(editor: Editor, argument: SSAValue, shape: tuple[int, ...]) -> bool:
    """Let an input have the finer shape that one of its readers wants; the others merge its dims again."""
    old = shape_of(argument)
    finer = editor.retype(argument, tensor_of(shape, get_element_type_or_self(argument.type)))
    readers = list(finer.uses)
    merged = reshape(finer, old)
    first = editor.block.first_op
    assert first is not None
    editor.block.insert_op_before(merged, first)
    for use in readers:
        if is_reshape(use.operation) and shape_of(use.operation.results[0]) == shape:
            use.operation.results[0].replace_all_uses_with(finer)
        else:
            use.operation.operands[use.index] = merged.results[0]
    return True


def _split(
    editor: Editor, op: linalg.GenericOp, operand: int, shape: tuple[int, ...], replacement: SSAValue | None
) -> None:
    """Rebuild `op` so that this operand has the finer shape; an input may have a replacement that has it already."""
    layout, old_shape = maps_of(op)[operand], shape_of(op.operands[operand])
    sizes: dict[int, tuple[int, ...]] = {}
    for expr, group in zip(layout.results, groups(shape, old_shape), strict=True):
        assert isinstance(expr, AffineDimExpr)
        sizes[expr.position] = tuple(shape[d] for d in group)
    first: list[int] = []  # where the loops of each old loop begin
    count = 0
    for loop in range(layout.num_dims):
        first.append(count)
        count += len(sizes.get(loop, (0,)))
    inputs: list[SSAValue] = []
    maps: list[AffineMap] = []
    for index, value in enumerate(op.inputs):
        if index == operand and replacement is not None:
            inputs.append(replacement)
            maps.append(_finer_map(layout, sizes, first, count))
            continue
        old = maps_of(op)[index]
        wanted, reads = _finer_shape(value, old, sizes), _finer_map(old, sizes, first, count)
        if replacement is not None:
            wanted, reads = _without_new_ones(shape_of(value), wanted, reads)
        inputs.append(_finer(editor, op, value, wanted))
        maps.append(reads)
    maps.append(_finer_map(maps_of(op)[-1], sizes, first, count))
    iterators = [kind for loop, kind in enumerate(iterators_of(op)) for _ in sizes.get(loop, (0,))]
    result = op.results[0]
    init = _finer_init(op, _finer_shape(result, maps_of(op)[-1], sizes))
    new = build_generic(inputs, init, maps, iterators, op.body.detach_block(0), layer_of(op))
    editor.block.insert_op_before(new, op)
    replaced: SSAValue = new.results[0]
    if shape_of(replaced) != shape_of(result):
        merge = reshape(replaced, shape_of(result))
        editor.block.insert_op_before(merge, op)
        replaced = merge.results[0]
    result.replace_all_uses_with(replaced)
    op.detach()
    op.erase()


def _finer_shape(value: SSAValue, layout: AffineMap, sizes: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    shape: list[int] = []
    for size, expr in zip(shape_of(value), layout.results, strict=True):
        assert isinstance(expr, AffineDimExpr)
        shape.extend(sizes.get(expr.position, (size,)))
    return tuple(shape)


def _without_new_ones(
    old: tuple[int, ...], shape: tuple[int, ...], reads: AffineMap
) -> tuple[tuple[int, ...], AffineMap]:
    """What the operation reads beside does not need the dims of one element: passed up, they would come back."""
    kept: list[int] = []
    for group in groups(shape, old) if old else []:
        kept += [d for d in group if shape[d] > 1] or group[:1]
    return tuple(shape[d] for d in kept), AffineMap(reads.num_dims, 0, tuple(reads.results[d] for d in kept))


def _finer_map(layout: AffineMap, sizes: dict[int, tuple[int, ...]], first: list[int], count: int) -> AffineMap:
    results: list[AffineExpr] = []
    for expr in layout.results:
        assert isinstance(expr, AffineDimExpr)
        start = first[expr.position]
        results.extend(AffineDimExpr(start + i) for i in range(len(sizes.get(expr.position, (0,)))))
    return AffineMap(count, 0, tuple(results))


def _finer(editor: Editor, op: Operation, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    if shape == shape_of(value):
        return value
    if editor.is_param(value):
        only_reader = all(use.operation is op for use in value.uses)
        if only_reader and value.uses.get_length() == 1:
            return editor.retype(value, tensor_of(shape, get_element_type_or_self(value.type)))
        return editor.add_param(editor.name(value), editor.data(value).reshape(shape))
    finer = reshape(value, shape)
    editor.block.insert_op_before(finer, op)
    return finer.results[0]


def _finer_init(op: linalg.GenericOp, shape: tuple[int, ...]) -> SSAValue:
    kind = op.results[0].type
    assert isa(kind, TensorType)
    target = empty(tensor_of(shape, kind.element_type))
    assert op.parent is not None
    op.parent.insert_op_before(target, op)
    start = filled_with(op.outputs[0])
    if start is None:
        return target.tensor
    fill = linalg.FillOp([start.result], [target.tensor])
    op.parent.insert_op_before(fill, op)
    return fill.results[0]
