"""The meaning of every scalar operation on numpy arrays, shared by the interpreters of all levels.

Integers wrap in two's complement at the width of their type (i1 is stored as bool, other widths in the next
larger numpy integer, sign-extended); f32 stays f32. Transcendental functions are computed in f64, then rounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.errors import PenstockError

Array = NDArray[Any]
ScalarFunction = Callable[[Operation, Sequence[Array]], Array]

_FLOATS: dict[type[Attribute], Any] = {
    Float16Type: np.float16,
    Float32Type: np.float32,
    Float64Type: np.float64,
}
_INDEX_WIDTH = 64


def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
    """The result of a one-result arith or math operation; operands broadcast against each other."""
    evaluator = _EVALUATORS.get(type(op))
    if evaluator is None:
        raise PenstockError(
            code="unsupported-op",
            what=f"no scalar semantics for {op.name}",
            hint=f"supported: {', '.join(sorted(kind.name for kind in _EVALUATORS))}",
        )
    with np.errstate(all="ignore"):
        return evaluator(op, operands)


def is_scalar_op(op: Operation) -> bool:
    return type(op) in _EVALUATORS


@cache
def numpy_dtype(kind: Attribute) -> np.dtype[Any]:
    """The numpy type that holds values of a scalar type, or of the elements of a vector or tensor type."""
    element = get_element_type_or_self(kind)
    if isinstance(element, IndexType) or isa(element, IntegerType):
        return _container(_width(element))
    if type(element) in _FLOATS:
        return np.dtype(_FLOATS[type(element)])
    raise PenstockError(
        code="unsupported-dtype",
        what=f"no numpy type holds {element}",
        limit="f16, f32, f64 and integers of up to 64 bits are supported",
    )


def _container(width: int) -> np.dtype[Any]:
    if width == 1:
        return np.dtype(np.bool_)
    for bits in (8, 16, 32, 64):
        if width <= bits:
            return np.dtype(f"int{bits}")
    raise PenstockError(
        code="unsupported-dtype",
        what=f"an integer of {width} bits",
        limit="integers of up to 64 bits are supported",
    )


@cache
def _width(kind: Attribute) -> int:
    element = get_element_type_or_self(kind)
    return element.width.data if isa(element, IntegerType) else _INDEX_WIDTH


def _result_type(op: Operation) -> Attribute:
    return op.results[0].type


# Integers: computed signed in a container of at least eight bits, then wrapped to the result's width.


def _signed(values: Array) -> Array:
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def _unsigned(values: Array, kind: Attribute) -> Array:
    """The same bits read as a non-negative number, in an unsigned container."""
    signed = _signed(values)
    unsigned = signed.view(f"uint{signed.dtype.itemsize * 8}")
    width = _width(kind)
    return unsigned if width == unsigned.dtype.itemsize * 8 else unsigned & ((1 << width) - 1)


def _wrap(values: Array, kind: Attribute) -> Array:
    """Keep the low bits of the type's width and sign-extend them into its container."""
    width = _width(kind)
    container = _container(width)
    if width == 1:
        return (values & 1).astype(np.bool_)
    narrowed = values.astype(container)
    spare = container.itemsize * 8 - width
    return (narrowed << spare) >> spare if spare else narrowed


def _integer(function: Callable[..., Any]) -> ScalarFunction:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        return _wrap(np.asarray(function(*map(_signed, operands))), _result_type(op))

    return evaluator


def _unsigned_integer(function: Callable[..., Any]) -> ScalarFunction:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        kind = _result_type(op)
        return _wrap(np.asarray(function(*(_unsigned(x, kind) for x in operands))), kind)

    return evaluator


def _nonzero(op: str, divisor: Array) -> Array:
    if not np.all(divisor):
        raise PenstockError(code="undefined-behaviour", what=f"{op} by zero")
    return divisor


def _divide_toward_zero(x: Array, y: Array) -> Array:
    floor = np.floor_divide(x, _nonzero("integer division", y))
    return floor + (((x < 0) != (y < 0)) & (floor * y != x)).astype(floor.dtype)


def _remainder(x: Array, y: Array) -> Array:
    return x - y * _divide_toward_zero(x, y)


def _floor_divide(x: Array, y: Array) -> Array:
    return np.floor_divide(x, _nonzero("integer division", y))


def _ceil_divide(x: Array, y: Array) -> Array:
    floor = np.floor_divide(x, _nonzero("integer division", y))
    return floor + (floor * y != x).astype(floor.dtype)


def _unsigned_divide(x: Array, y: Array) -> Array:
    return np.floor_divide(x, _nonzero("integer division", y))


def _unsigned_remainder(x: Array, y: Array) -> Array:
    return np.remainder(x, _nonzero("integer division", y))


def _shift(shift: Callable[..., Any], *, unsigned: bool = False) -> ScalarFunction:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        kind = _result_type(op)
        amounts = _unsigned(operands[1], kind)
        if np.any(amounts >= _width(kind)):
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


def _compare_integers(op: Operation, operands: Sequence[Array]) -> Array:
    assert isinstance(op, arith.CmpiOp)
    predicate = op.predicate.value.data
    if predicate < len(_COMPARE):
        return np.asarray(_COMPARE[predicate](*map(_signed, operands)))
    kind = op.lhs.type
    return np.asarray(_COMPARE[predicate - 4](*(_unsigned(x, kind) for x in operands)))


def _compare_floats(op: Operation, operands: Sequence[Array]) -> Array:
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


def _float(function: Callable[..., Any]) -> ScalarFunction:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        return np.asarray(function(*operands), dtype=numpy_dtype(_result_type(op)))

    return evaluator


def _rounded_once(function: Callable[..., Any]) -> ScalarFunction:
    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        wide = (np.asarray(x, np.float64) for x in operands)
        return np.asarray(function(*wide), dtype=numpy_dtype(_result_type(op)))

    return evaluator


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(x))


def _fma(x: Array, y: Array, z: Array) -> Array:
    return x * y + z


def _reciprocal_root(x: Array) -> Array:
    return x.dtype.type(1) / np.sqrt(x)


def _round_away(x: Array) -> Array:
    return np.trunc(x + np.copysign(0.5, x))


# Conversions.


def _convert(op: Operation, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0]).astype(numpy_dtype(_result_type(op)))


def _extend_signed(op: Operation, operands: Sequence[Array]) -> Array:
    return _signed(operands[0]).astype(numpy_dtype(_result_type(op)))


def _extend_unsigned(op: Operation, operands: Sequence[Array]) -> Array:
    return _unsigned(operands[0], op.operands[0].type).astype(numpy_dtype(_result_type(op)))


def _truncate(op: Operation, operands: Sequence[Array]) -> Array:
    return _wrap(operands[0], _result_type(op))


def _cast_index(op: Operation, operands: Sequence[Array]) -> Array:
    return _wrap(_signed(operands[0]), _result_type(op))


def _float_to_integer(*, signed: bool) -> ScalarFunction:
    """Truncates toward zero. Out of range is undefined in hardware; here it saturates, and NaN gives 0."""

    def evaluator(op: Operation, operands: Sequence[Array]) -> Array:
        kind = _result_type(op)
        width = _width(kind)
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        whole = np.trunc(np.asarray(operands[0], np.float64))
        whole = np.where(np.isnan(whole), 0.0, whole)
        # a float cannot hold the largest integers exactly, so saturate in Python's integers
        clipped = [low if x <= low else high if x >= high else int(x) for x in whole.ravel()]
        bits = np.array([x & ((1 << 64) - 1) for x in clipped], np.uint64).reshape(whole.shape)
        return _wrap(bits.view(np.int64), kind)

    return evaluator


def _bitcast(op: Operation, operands: Sequence[Array]) -> Array:
    return np.asarray(operands[0]).view(numpy_dtype(_result_type(op)))


def _constant(op: Operation, operands: Sequence[Array]) -> Array:
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


def _select(op: Operation, operands: Sequence[Array]) -> Array:
    return np.where(operands[0], operands[1], operands[2])


_EVALUATORS: dict[type[Operation], ScalarFunction] = {
    arith.ConstantOp: _constant,
    arith.SelectOp: _select,
    # integers
    arith.AddiOp: _integer(np.add),
    arith.SubiOp: _integer(np.subtract),
    arith.MuliOp: _integer(np.multiply),
    arith.DivSIOp: _integer(_divide_toward_zero),
    arith.FloorDivSIOp: _integer(_floor_divide),
    arith.CeilDivSIOp: _integer(_ceil_divide),
    arith.RemSIOp: _integer(_remainder),
    arith.DivUIOp: _unsigned_integer(_unsigned_divide),
    arith.RemUIOp: _unsigned_integer(_unsigned_remainder),
    arith.MinSIOp: _integer(np.minimum),
    arith.MaxSIOp: _integer(np.maximum),
    arith.MinUIOp: _unsigned_integer(np.minimum),
    arith.MaxUIOp: _unsigned_integer(np.maximum),
    arith.AndIOp: _integer(np.bitwise_and),
    arith.OrIOp: _integer(np.bitwise_or),
    arith.XOrIOp: _integer(np.bitwise_xor),
    arith.ShLIOp: _shift(np.left_shift),
    arith.ShRSIOp: _shift(np.right_shift),
    arith.ShRUIOp: _shift(np.right_shift, unsigned=True),
    arith.CmpiOp: _compare_integers,
    math_dialect.AbsIOp: _integer(np.abs),
    # floats
    arith.AddfOp: _float(np.add),
    arith.SubfOp: _float(np.subtract),
    arith.MulfOp: _float(np.multiply),
    arith.DivfOp: _float(np.divide),
    arith.NegfOp: _float(np.negative),
    arith.MaximumfOp: _float(np.maximum),
    arith.MinimumfOp: _float(np.minimum),
    arith.MaxnumfOp: _float(np.fmax),
    arith.MinnumfOp: _float(np.fmin),
    arith.CmpfOp: _compare_floats,
    math_dialect.AbsFOp: _float(np.abs),
    math_dialect.CeilOp: _float(np.ceil),
    math_dialect.CopySignOp: _float(np.copysign),
    math_dialect.FloorOp: _float(np.floor),
    math_dialect.RoundOp: _rounded_once(_round_away),
    math_dialect.RoundEvenOp: _float(np.rint),
    math_dialect.TruncOp: _float(np.trunc),
    math_dialect.SqrtOp: _float(np.sqrt),
    math_dialect.RsqrtOp: _float(_reciprocal_root),
    math_dialect.FmaOp: _rounded_once(_fma),
    math_dialect.CosOp: _rounded_once(np.cos),
    math_dialect.ErfOp: _rounded_once(_erf),
    math_dialect.ExpOp: _rounded_once(np.exp),
    math_dialect.Exp2Op: _rounded_once(np.exp2),
    math_dialect.ExpM1Op: _rounded_once(np.expm1),
    math_dialect.LogOp: _rounded_once(np.log),
    math_dialect.Log1pOp: _rounded_once(np.log1p),
    math_dialect.Log2Op: _rounded_once(np.log2),
    math_dialect.PowFOp: _rounded_once(np.power),
    math_dialect.FPowIOp: _rounded_once(np.power),
    math_dialect.SinOp: _rounded_once(np.sin),
    math_dialect.TanhOp: _rounded_once(np.tanh),
    # conversions
    arith.ExtFOp: _convert,
    arith.TruncFOp: _convert,
    arith.ExtSIOp: _extend_signed,
    arith.ExtUIOp: _extend_unsigned,
    arith.TruncIOp: _truncate,
    arith.IndexCastOp: _cast_index,
    arith.SIToFPOp: _extend_signed,
    arith.UIToFPOp: _extend_unsigned,
    arith.FPToSIOp: _float_to_integer(signed=True),
    arith.FPToUIOp: _float_to_integer(signed=False),
    arith.BitcastOp: _bitcast,
}
