"""The meaning of every scalar operation on numpy arrays, from which the interpreters of all levels have it.

Integers wrap in two's complement at the width of their type (i1 is stored as bool, other widths in the next
larger numpy integer, sign-extended); f32 stays f32. Transcendental functions are computed in f64, then rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.number_types import numpy_dtype, type_bits

Compute = Callable[[Operation, Sequence[Array]], Array]
"""The result of an operation; operands broadcast against each other."""


def _result_type(op: Operation) -> Attribute:
    return op.results[0].type


# Integers: computed signed in a container of at least eight bits, then wrapped to the result's width.


def _signed(values: Array) -> Array:
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def _unsigned(values: Array, kind: Attribute) -> Array:
    """The same bits read as a non-negative number, in an unsigned container."""
    signed = _signed(values)
    unsigned = signed.view(f"uint{signed.dtype.itemsize * 8}")
    width = type_bits(kind)
    return unsigned if width == unsigned.dtype.itemsize * 8 else unsigned & ((1 << width) - 1)


def _wrap(values: Array, kind: Attribute) -> Array:
    """Keep the low bits of the type's width and sign-extend them into its container."""
    width, container = type_bits(kind), numpy_dtype(kind)
    if width == 1:
        return (values & 1).astype(np.bool_)
    narrowed = values.astype(container, copy=False)
    spare = container.itemsize * 8 - width
    return (narrowed << spare) >> spare if spare else narrowed


def integer(function: Callable[..., Any]) -> Compute:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        return _wrap(np.asarray(function(*map(_signed, operands))), _result_type(op))

    return evaluator


def unsigned_integer(function: Callable[..., Any]) -> Compute:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        kind = _result_type(op)
        return _wrap(np.asarray(function(*(_unsigned(x, kind) for x in operands))), kind)

    return evaluator


def _nonzero(op: str, divisor: Array) -> Array:
    if not np.all(divisor):
        raise PenstockError(code="undefined-behaviour", what=f"{op} by zero")
    return divisor


def divide_toward_zero(x: Array, y: Array) -> Array:
    floor = np.floor_divide(x, _nonzero("integer division", y))
    return floor + (((x < 0) != (y < 0)) & (floor * y != x)).astype(floor.dtype)


def remainder(x: Array, y: Array) -> Array:
    return x - y * divide_toward_zero(x, y)


def floor_divide(x: Array, y: Array) -> Array:
    return np.floor_divide(x, _nonzero("integer division", y))


def ceil_divide(x: Array, y: Array) -> Array:
    floor = np.floor_divide(x, _nonzero("integer division", y))
    return floor + (floor * y != x).astype(floor.dtype)


def unsigned_divide(x: Array, y: Array) -> Array:
    return np.floor_divide(x, _nonzero("integer division", y))


def unsigned_remainder(x: Array, y: Array) -> Array:
    return np.remainder(x, _nonzero("integer division", y))


def shift(shift: Callable[..., Any], *, unsigned: bool = False) -> Compute:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        kind = _result_type(op)
        amounts = _unsigned(operands[1], kind)
        if np.any(amounts >= type_bits(kind)):
            raise PenstockError(
                code="undefined-behaviour",
                what=f"{op.name} by {int(amounts.max())}",
                limit=f"the type is {kind}",
            )
        values = _unsigned(operands[0], kind) if unsigned else _signed(operands[0])
        return _wrap(np.asarray(shift(values, amounts.astype(values.dtype))), kind)

    return evaluator


_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


_COMPARE_FLOATS = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)


def compare_integers(op: Operation, operands: Sequence[Array]) -> Array:
    assert isinstance(op, arith.CmpiOp)
    predicate = op.predicate.value.data
    if predicate < len(_COMPARE):
        return np.asarray(_COMPARE[predicate](*map(_signed, operands)))
    kind = op.lhs.type
    return np.asarray(_COMPARE[predicate - 4](*(_unsigned(x, kind) for x in operands)))


def compare_floats(op: Operation, operands: Sequence[Array]) -> Array:
    """Predicates 1-7 are ordered (false on NaN), 8-14 the same comparisons unordered (true on NaN)."""
    assert isinstance(op, arith.CmpfOp)
    x, y = operands
    unordered = np.isnan(x) | np.isnan(y)
    match op.predicate.value.data:
        case 0:
            return np.zeros_like(unordered)
        case 7:
            return ~unordered
        case 14:
            return unordered
        case 15:
            return np.ones_like(unordered)
        case predicate:
            holds = np.asarray(_COMPARE_FLOATS[(predicate - 1) % 7](x, y))
            return holds & ~unordered if predicate < 7 else holds | unordered


# Floats: plain numpy in the type's own precision, or one rounding from f64.


def floating(function: Callable[..., Any]) -> Compute:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        return np.asarray(function(*operands), dtype=numpy_dtype(_result_type(op)))

    return evaluator


def rounded_once(function: Callable[..., Any]) -> Compute:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        wide = (np.asarray(x, np.float64) for x in operands)
        return np.asarray(function(*wide), dtype=numpy_dtype(_result_type(op)))

    return evaluator


def erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def fma(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


def reciprocal_root(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def round_away(x: Array) -> Array:
    return np.trunc(x + np.copysign(0.5, x))


# Conversions.


def convert(op: Operation, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0]).astype(numpy_dtype(_result_type(op)))


def extend_signed(op: Operation, operands: Sequence[Array]) -> Array:
    return _signed(operands[0]).astype(numpy_dtype(_result_type(op)))


def extend_unsigned(op: Operation, operands: Sequence[Array]) -> Array:
    return _unsigned(operands[0], op.operands[0].type).astype(numpy_dtype(_result_type(op)))


def truncate(op: Operation, operands: Sequence[Array]) -> Array:
    return _wrap(operands[0], _result_type(op))


def cast_index(op: Operation, operands: Sequence[Array]) -> Array:
    return _wrap(_signed(operands[0]), _result_type(op))


def float_to_integer(*, signed: bool) -> Compute:
    """Truncates toward zero. Out of range is undefined in hardware; here it saturates, and NaN gives 0."""

    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        kind = _result_type(op)
        width = type_bits(kind)
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        whole = np.trunc(np.asarray(operands[0], np.float64))
        whole = np.where(np.isnan(whole), 0.0, whole)
        # a float cannot hold the largest integers exactly, so saturate in Python's integers
        clipped = [low if x <= low else high if x >= high else int(x) for x in whole.ravel()]
        bits = np.array([x & ((1 << 64) - 1) for x in clipped], np.uint64).reshape(whole.shape)
        return _wrap(bits.view(np.int64), kind)

    return evaluator


def bitcast(op: Operation, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0]).view(numpy_dtype(_result_type(op)))


def constant(op: Operation, operands: Sequence[Array]) -> Array:
    assert isinstance(op, arith.ConstantOp)
    value, dtype = op.value, numpy_dtype(op.result.type)
    if isinstance(value, DenseIntOrFPElementsAttr):
        elements = np.asarray(value.get_values(), dtype)
        shape = value.get_shape()
        return np.full(shape, elements[0]) if elements.size == 1 else elements.reshape(shape)
    if isinstance(value, IntegerAttr):
        return np.asarray(value.value.data).astype(dtype)
    if isinstance(value, FloatAttr):
        return np.asarray(value.value.data, dtype)
    raise PenstockError(code="unsupported-op", what=f"a constant of {value.name}", hint="use a dense constant")


def select(op: Operation, operands: Sequence[Array]) -> Array:
    return np.where(operands[0], operands[1], operands[2])
