"""Building tensor.collapse_shape and tensor.expand_shape between two static shapes."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects import tensor
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, TensorType, i64
from xdsl.ir import Operation, SSAValue

from compiler.transforms.editor import shape_of, tensor_type


def groups(long: tuple[int, ...], short: tuple[int, ...]) -> list[list[int]]:
    """Which neighbouring dims of the longer shape make up each dim of the shorter one."""
    result: list[list[int]] = []
    position = 0
    for index, size in enumerate(short):
        group, product = [position], long[position]
        position += 1
        while product < size:
            group.append(position)
            product *= long[position]
            position += 1
        if index == len(short) - 1:
            group += range(position, len(long))
        result.append(group)
    return result


def reshape(source: SSAValue, shape: tuple[int, ...]) -> Operation:
    """A new operation that gives `source` another shape, which must only merge or only split dims."""
    old = shape_of(source)
    element = cast("TensorType[Any]", source.type).element_type
    long, short = (old, shape) if len(old) > len(shape) else (shape, old)
    reassociation = ArrayAttr(ArrayAttr(IntegerAttr(d, i64) for d in group) for group in groups(long, short))
    if long is old:
        return tensor.CollapseShapeOp.build(
            operands=[source],
            result_types=[tensor_type(shape, element)],
            properties={"reassociation": reassociation},
        )
    return tensor.ExpandShapeOp(
        source, [], reassociation, DenseArrayBase.from_list(i64, shape), tensor_type(shape, element)
    )
