"""Removes dimensions of size one from all tensors, and the loops that run once from all operations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.utils.hints import isa

from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.names import Names
from penstock.compiler.transforms.drop_unused_operands import drop_unused_operands
from penstock.compiler.transforms.editor import Editor, layer_of, shape_of, tensor_of
from penstock.compiler.transforms.generics import (
    PARALLEL,
    empty,
    filled_with,
    is_reduction,
    iterators_of,
    maps_of,
    rebuild,
    replace,
)
from penstock.compiler.transforms.parts import bounds, concat_along, cut_dims, slice_along
from penstock.compiler.transforms.reshapes import reshape
from penstock.compiler.transforms.rewrite import Rewrite
from penstock.compiler.transforms.unit_dims import copy_units


@dataclass(frozen=True)
class DropUnitDims(Rewrite):
    """A tensor of one element keeps one dimension, and its operations one loop that runs once.

    A reduction whose loops all run once becomes elementwise. Shapes in the signature stay the user's.
    """

    name: ClassVar[str] = "drop-unit-dims"

    def rewrite(self, editor: Editor) -> None:
        plans = {op: _plan(op) for op in editor.generics()}  # made while the old shapes are still there
        slices = [op for op in editor.block.ops if isinstance(op, tensor.ExtractSliceOp)]
        cuts = {op: cut_dims(op)[0] for op in slices}
        windows = {op: shape_of(op.source) for op in editor.block.ops if isinstance(op, SlideOp)}
        for argument in list(editor.block.args):
            if without_units(shape_of(argument)) != shape_of(argument):
                editor.retype(argument, _reduced(argument))
        for op in list(editor.block.ops):
            if isinstance(op, linalg.GenericOp):
                plans[op].apply(op)
            elif isinstance(op, tensor.ExtractSliceOp):
                _reduce_slice(op, cuts[op], editor.free_layer(f"{layer_of(op)}.part"))
            elif isinstance(op, tensor.ConcatOp):
                _reduce_concat(op, f"{layer_of(op)}.part", Names(editor.layers()))
            elif isinstance(op, SlideOp):
                _reduce_windows(op, windows[op])
            else:
                _reduce(op)


@dataclass(frozen=True)
class _Plan:
    maps: tuple[AffineMap, ...]
    iterators: tuple[IteratorTypeAttr, ...]
    unread: frozenset[int]
    """Operands that only said how often loops run that now go: the window of a pooling of one element."""

    def apply(self, op: linalg.GenericOp) -> None:
        was_reduction = is_reduction(op)
        inputs = [value for index, value in enumerate(op.inputs) if index not in self.unread]
        for index in sorted(self.unread, reverse=True):
            op.body.block.erase_arg(op.body.block.args[index])
        new = rebuild(op, inputs=inputs, maps=self.maps, iterators=self.iterators)
        if was_reduction and not is_reduction(new):
            _read_init_as_constant(new)


def _plan(op: linalg.GenericOp) -> _Plan:
    iterators, trips = iterators_of(op), trip_counts(op)
    kept = [d for d, trip in enumerate(trips) if trip > 1]
    one_element = [_is_one_element(value) for value in op.operands]
    unread = {i for i in range(len(op.inputs)) if one_element[i] and op.body.block.args[i].first_use is None}
    one_element = [single and index not in unread for index, single in enumerate(one_element)]
    unit: int | None = None
    if any(one_element):
        unit = next((d for d, t in enumerate(trips) if t == 1 and iterators[d] == PARALLEL), None)
        if unit is None:
            unit = len(trips)
            iterators.append(PARALLEL)
        kept = sorted([*kept, unit])
    position = {old: new for new, old in enumerate(kept)}
    maps: list[AffineMap] = []
    for index, (value, layout, single) in enumerate(zip(op.operands, maps_of(op), one_element, strict=True)):
        if index in unread:
            continue
        results: list[AffineExpr] = []
        if single and unit is not None:
            results.append(AffineDimExpr(position[unit]))
        elif isa(value.type, TensorType):
            for size, expr in zip(shape_of(value), layout.results, strict=True):
                if size > 1:
                    assert isinstance(expr, AffineDimExpr)
                    results.append(AffineDimExpr(position[expr.position]))
        maps.append(AffineMap(len(kept), 0, tuple(results)))
    return _Plan(tuple(maps), tuple(iterators[d] for d in kept), frozenset(unread))


def _is_one_element(value: SSAValue) -> bool:
    return isa(value.type, TensorType) and all(size == 1 for size in shape_of(value))


def without_units(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1) or (1,)


def _reduced(value: SSAValue) -> TensorType[Any]:
    kind = cast("TensorType[Any]", value.type)
    return tensor_of(without_units(shape_of(value)), kind.element_type)


def _reduce(op: Operation) -> None:
    match op:
        case tensor.EmptyOp():
            replace(op, [empty(_reduced(op.tensor))])
        case linalg.FillOp():
            replace(op, [linalg.FillOp([op.inputs[0]], [op.outputs[0]])])
        case tensor.CollapseShapeOp() | tensor.ExpandShapeOp():
            shape = without_units(shape_of(op.results[0]))
            if shape_of(op.operands[0]) == shape:
                op.results[0].replace_all_uses_with(op.operands[0])
            else:
                new = reshape(op.operands[0], shape)
                new.attributes.update(op.attributes)
                replace(op, [new])
        case _:
            pass


def _reduce_slice(op: tensor.ExtractSliceOp, dim: int, layer: str) -> None:
    """The dim that is cut stays in the slice, even if one element is left of it; then it is dropped."""
    offsets, sizes = bounds(op)
    place = sum(size != 1 for size in sizes[:dim])
    new: list[Operation] = [slice_along(op.source, place, offsets[dim], sizes[dim], op)]
    wanted = without_units(shape_of(op.result))
    if shape_of(new[0].results[0]) != wanted:
        new.extend(copy_units(new[0].results[0], wanted, layer))
    replace(op, new)


def _reduce_windows(op: SlideOp, old: tuple[int, ...]) -> None:
    """Windows slide along their dim even if it has one element, or there is one window."""
    by = op.by.data
    kept = [d for d, size in enumerate(old) if size != 1 or d == by.dim]
    new: list[Operation] = []
    source = op.source
    if shape_of(source) != (wanted := tuple(old[d] for d in kept)):
        new.append(reshape(source, wanted))
        source = new[-1].results[0]
    along = by.along(kept.index(by.dim))
    new.append(SlideOp(source, along, op.fill, tensor_of(along.shape(wanted), _reduced(op.result).element_type)))
    new[-1].attributes.update(op.attributes)
    made = along.shape(wanted)
    if made != without_units(made):
        new.append(reshape(new[-1].results[0], without_units(made)))
    replace(op, new)


def _reduce_concat(op: tensor.ConcatOp, layer: str, names: Names) -> None:
    """A part of one element along the joined dim has that dim, and it alone, with one element."""
    dim, shape = op.dim.value.data, shape_of(op.result)
    place = sum(size != 1 for size in shape[:dim])
    parts: list[SSAValue] = []
    new: list[Operation] = []
    for source in op.inputs:
        wanted = [size for size in shape if size != 1]
        wanted[place] = _elements(source) * wanted[place] // _elements(op.result)
        if shape_of(source) != tuple(wanted):
            new.extend(copy_units(source, tuple(wanted), names.take(layer)))
            source = new[-1].results[0]
        parts.append(source)
    replace(op, [*new, concat_along(parts, place, op)])


def _elements(value: SSAValue) -> int:
    product = 1
    for size in shape_of(value):
        product *= size
    return product


def _read_init_as_constant(op: linalg.GenericOp) -> None:
    """What was the start of a sum of one term is now an operand of an elementwise operation."""
    start = filled_with(op.outputs[0])
    assert start is not None, "raise_fills gives every reduction a constant start"
    block = op.body.block
    assert block.first_op is not None
    number = start.clone()
    block.insert_op_before(number, block.first_op)
    block.args[-1].replace_all_uses_with(number.result)
    drop_unused_operands(op)
