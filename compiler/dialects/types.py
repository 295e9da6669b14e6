"""Typed views of builtin types: xDSL's are generic over their element, which a plain isinstance forgets."""

from __future__ import annotations

from math import prod
from typing import cast

from xdsl.dialects.builtin import IntegerType, MemRefType, TensorType, VectorType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.scalars.number_types import type_bits


def tensor_type(value: SSAValue | Attribute) -> TensorType[Attribute]:
    kind = _type(value)
    if not isinstance(kind, TensorType):
        raise VerifyException(f"{kind} is not a tensor of known rank")
    return cast("TensorType[Attribute]", kind)


def tensor_bits(value: SSAValue) -> int:
    """The size of a whole tensor."""
    kind = tensor_type(value)
    return prod(kind.get_shape()) * type_bits(kind)


def vector_type(value: SSAValue | Attribute) -> VectorType[Attribute]:
    kind = _type(value)
    if not isinstance(kind, VectorType):
        raise VerifyException(f"{kind} is not a lane vector")
    return cast("VectorType[Attribute]", kind)


def lane_shape(value: SSAValue) -> tuple[int, ...]:
    """How the lanes of a vector lie."""
    return tuple(vector_type(value).get_shape())


def memref_type(value: SSAValue | Attribute) -> MemRefType[Attribute]:
    kind = _type(value)
    if not isinstance(kind, MemRefType):
        raise VerifyException(f"{kind} is not a memory")
    return cast("MemRefType[Attribute]", kind)


def integer_width(kind: Attribute) -> int | None:
    """The width of an integer type; None for every other type."""
    return cast(IntegerType, kind).width.data if isinstance(kind, IntegerType) else None


def _type(value: SSAValue | Attribute) -> Attribute:
    return value.type if isinstance(value, SSAValue) else value
