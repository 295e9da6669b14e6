"""Building tensor.collapse_shape and tensor.expand_shape between two static shapes."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import Operation, SSAValue

from penstock.compiler.analysis.reshaping import merged_groups
from penstock.compiler.transforms.editor import shape_of, tensor_of


def groups(long: tuple[int, ...], short: tuple[int, ...]) -> list[list[int]]:
    """Which neighbouring dims of the longer shape make up each dim of the shorter one, as is known of these."""
    found = merged_groups(long, short)
    assert found is not None
    return found


def refinement(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...] | None:
    """The coarsest shape that both come from by merging dims; None if their dims do not fit into each other.

    Dims of one element make many such shapes: shapes that have any get none.
    """
    if a == b:
        return a
    if 1 in a or 1 in b:
        return None
    left, right, result = list(a), list(b), list[int]()
    while left and right:
        size = min(left[0], right[0])
        if left[0] % size or right[0] % size:
            return None
        result.append(size)
        for rest in (left, right):
            rest[0] //= size
            if rest[0] == 1:
                rest.pop(0)
    return tuple(result)


def reshape(source: SSAValue, shape: tuple[int, ...]) -> Operation:
    """A new operation that gives `source` another shape, which must only merge or only split dims."""
    old = shape_of(source)
    element = cast("TensorType[Any]", source.type).element_type
    long, short = (old, shape) if len(old) > len(shape) else (shape, old)
    reassociation = ArrayAttr(ArrayAttr(IntegerAttr(d, i64) for d in group) for group in groups(long, short))
    if long is old:
        return tensor.CollapseShapeOp.build(
            operands=[source],
            result_types=[tensor_of(shape, element)],
            properties={"reassociation": reassociation},
        )
    return tensor.ExpandShapeOp(
        source, [], reassociation, DenseArrayBase.from_list(i64, shape), tensor_of(shape, element)
    )
