"""Slices and concatenations: what they cut, and the building of new ones."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, TypeVar, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.transforms.editor import LAYER, shape_of, tensor_of

PartShape = tuple[int, ...]
AnyOp = TypeVar("AnyOp", bound=Operation)


def is_slice_or_concat(op: object) -> bool:
    return isinstance(op, tensor.ExtractSliceOp | tensor.ConcatOp)


def moves_data(op: object) -> bool:
    """Whether an operation only cuts, joins, reshapes or repeats: its integers are its sources', at their scale."""
    return is_slice_or_concat(op) or isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp | SlideOp)


def dim_behind(op: Operation, dim: int) -> int | None:
    """Where a dim of the one source is in what cuts, reshapes or repeats it; None where it is not there as a whole."""
    if isinstance(op, tensor.ExtractSliceOp):
        return dim if dim not in cut_dims(op) else None
    if isinstance(op, SlideOp):
        return dim if op.by.data.dim != dim else None
    if not isinstance(op, tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        return None
    before, after = shape_of(op.operands[0]), shape_of(op.results[0])
    outer = prod(before[:dim])
    return next((d for d, n in enumerate(after) if n == before[dim] and prod(after[:d]) == outer), None)


def is_static(op: tensor.ExtractSliceOp) -> bool:
    return not (op.offsets or op.sizes or op.strides)


def bounds(op: tensor.ExtractSliceOp) -> tuple[PartShape, PartShape]:
    """Where it starts and how far it goes along every dim of its source."""
    return tuple(op.static_offsets.get_values()), tuple(op.static_sizes.get_values())


def cut_dims(op: tensor.ExtractSliceOp) -> list[int]:
    return [d for d, (whole, size) in enumerate(zip(shape_of(op.source), bounds(op)[1], strict=True)) if whole != size]


def slice_along(source: SSAValue, dim: int, start: int, size: int, like: Operation) -> tensor.ExtractSliceOp:
    """A slice of one dim, in the name of another operation."""
    shape = shape_of(source)
    offsets, sizes = [0] * len(shape), list(shape)
    offsets[dim], sizes[dim] = start, size
    kind = tensor_of(tuple(sizes), _element(source))
    return _named(tensor.ExtractSliceOp(source, offsets, sizes, [1] * len(shape), kind), like)


def concat_along(sources: Sequence[SSAValue], dim: int, like: Operation) -> tensor.ConcatOp:
    shape = list(shape_of(sources[0]))
    shape[dim] = sum(shape_of(source)[dim] for source in sources)
    return _named(tensor.ConcatOp(list(sources), dim, tensor_of(tuple(shape), _element(sources[0]))), like)


def _element(value: SSAValue) -> Any:
    return cast("TensorType[Any]", value.type).element_type


def _named(new: AnyOp, like: Operation) -> AnyOp:
    if LAYER in like.attributes:
        new.attributes[LAYER] = like.attributes[LAYER]
    return new
