"""Scalar semantics against Python's unbounded integers and against hand-computed cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    VectorType,
    bf16,
    f32,
    f64,
)
from xdsl.dialects.func import CallOp
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Operation, SSAValue

from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.number_types import numpy_dtype
from penstock.compiler.scalars.operations import evaluate, is_scalar_op


def values(*kinds: Attribute) -> Sequence[SSAValue]:
    return AnyOp(result_types=kinds).results


def wrapped(number: int, width: int) -> int:
    low = number & ((1 << width) - 1)
    return low - (1 << width) if width > 1 and low >> (width - 1) else low


INTEGER_OPS: list[tuple[type[Operation], Callable[[int, int], int]]] = [
    (arith.AddiOp, lambda x, y: x + y),
    (arith.SubiOp, lambda x, y: x - y),
    (arith.MuliOp, lambda x, y: x * y),
    (arith.MinSIOp, min),
    (arith.MaxSIOp, max),
    (arith.AndIOp, lambda x, y: x & y),
    (arith.OrIOp, lambda x, y: x | y),
    (arith.XOrIOp, lambda x, y: x ^ y),
]


@given(st.sampled_from(INTEGER_OPS), st.sampled_from([4, 8, 12, 16, 32, 64]), st.data())
def test_integers_wrap_at_their_width(
    case: tuple[type[Any], Callable[[int, int], int]], width: int, data: st.DataObject
) -> None:
    kind, reference = case
    numbers = st.integers(-(1 << (width - 1)), (1 << (width - 1)) - 1)
    x, y = data.draw(numbers), data.draw(numbers)
    dtype = numpy_dtype(IntegerType(width))
    op = kind(*values(IntegerType(width), IntegerType(width)))
    result = evaluate(op, [np.asarray(x, dtype), np.asarray(y, dtype)])
    assert result.dtype == dtype
    assert int(result) == wrapped(reference(x, y), width)


@given(st.integers(-128, 127), st.integers(-128, 127).filter(bool))
def test_division_rounds_as_its_name_says(x: int, y: int) -> None:
    i8 = IntegerType(8)
    operands = [np.asarray(x, np.int8), np.asarray(y, np.int8)]
    lhs, rhs = values(i8, i8)
    quotient = wrapped(math.trunc(x / y), 8)
    assert int(evaluate(arith.DivSIOp(lhs, rhs), operands)) == quotient
    assert int(evaluate(arith.FloorDivSIOp(lhs, rhs), operands)) == wrapped(x // y, 8)
    assert int(evaluate(arith.CeilDivSIOp(lhs, rhs), operands)) == wrapped(-(-x // y), 8)
    assert int(evaluate(arith.DivUIOp(lhs, rhs), operands)) == wrapped((x & 255) // (y & 255), 8)
    if (x, y) != (-128, -1):
        assert int(evaluate(arith.RemSIOp(lhs, rhs), operands)) == int(math.fmod(x, y))


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 31))
def test_shifts_treat_the_sign_as_told(x: int, amount: int) -> None:
    i32 = IntegerType(32)
    operands = [np.asarray(x, np.int32), np.asarray(amount, np.int32)]
    lhs, rhs = values(i32, i32)
    assert int(evaluate(arith.ShRSIOp(lhs, rhs), operands)) == x >> amount
    assert int(evaluate(arith.ShRUIOp(lhs, rhs), operands)) == wrapped((x & 0xFFFFFFFF) >> amount, 32)
    assert int(evaluate(arith.ShLIOp(lhs, rhs), operands)) == wrapped(x << amount, 32)


def test_undefined_behaviour_is_an_error_not_a_number() -> None:
    i8 = IntegerType(8)
    lhs, rhs = values(i8, i8)
    with pytest.raises(PenstockError, match="by zero"):
        evaluate(arith.DivSIOp(lhs, rhs), [np.asarray(1, np.int8), np.asarray(0, np.int8)])
    with pytest.raises(PenstockError, match=r"arith\.shrsi by 8"):
        evaluate(arith.ShRSIOp(lhs, rhs), [np.asarray(1, np.int8), np.asarray(8, np.int8)])


@given(st.integers(-128, 127), st.integers(-128, 127))
def test_every_integer_comparison(x: int, y: int) -> None:
    i8 = IntegerType(8)
    operands = [np.asarray(x, np.int8), np.asarray(y, np.int8)]
    u, v = x & 255, y & 255
    expected = [x == y, x != y, x < y, x <= y, x > y, x >= y, u < v, u <= v, u > v, u >= v]
    lhs, rhs = values(i8, i8)
    got = [bool(evaluate(arith.CmpiOp(lhs, rhs, p), operands)) for p in range(10)]
    assert got == expected


@pytest.mark.parametrize(
    ("x", "y", "true_for"),
    [
        (1.0, 2.0, {"olt", "ole", "one", "ord", "ult", "ule", "une", "true"}),
        (2.0, 2.0, {"oeq", "oge", "ole", "ord", "ueq", "uge", "ule", "true"}),
        (3.0, 2.0, {"ogt", "oge", "one", "ord", "ugt", "uge", "une", "true"}),
        (math.nan, 2.0, {"ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"}),
    ],
)
def test_every_float_comparison(x: float, y: float, true_for: set[str]) -> None:
    names = [
        "false",
        "oeq",
        "ogt",
        "oge",
        "olt",
        "ole",
        "one",
        "ord",
        "ueq",
        "ugt",
        "uge",
        "ult",
        "ule",
        "une",
        "uno",
        "true",
    ]
    operands = [np.asarray(x, np.float32), np.asarray(y, np.float32)]
    lhs, rhs = values(f32, f32)
    holds = {name for name in names if evaluate(arith.CmpfOp(lhs, rhs, name), operands)}
    assert holds == true_for


def test_conversions() -> None:
    i1, i8, i32, i64 = (IntegerType(w) for w in (1, 8, 32, 64))

    def convert(kind: type[Any], source: Attribute, target: Attribute, number: Any) -> list[Any]:
        (value,) = values(source)
        return evaluate(kind(value, target), [np.asarray(number, numpy_dtype(source))]).tolist()

    assert convert(arith.ExtSIOp, i8, i32, [-1, 127]) == [-1, 127]
    assert convert(arith.ExtUIOp, i8, i32, [-1, 127]) == [255, 127]
    assert convert(arith.ExtSIOp, i1, i8, [True, False]) == [-1, 0]
    assert convert(arith.ExtUIOp, i1, i8, [True, False]) == [1, 0]
    assert convert(arith.TruncIOp, i64, i8, [128, 255, -129]) == [-128, -1, 127]
    assert convert(arith.SIToFPOp, i8, f32, [-3]) == [-3.0]
    assert convert(arith.UIToFPOp, i8, f32, [-1]) == [255.0]
    assert convert(arith.FPToSIOp, f32, i8, [1e9, -1e9, math.nan, 3.9, -3.9]) == [127, -128, 0, 3, -3]
    assert convert(arith.FPToUIOp, f32, i8, [-5.0, 200.7]) == [0, 200 - 256]
    assert convert(arith.TruncFOp, f64, f32, [0.1]) == [float(np.float32(0.1))]
    assert convert(arith.BitcastOp, f32, i32, [1.0]) == [0x3F800000]


def test_floats_keep_their_precision() -> None:
    x, y = np.asarray([1.0], np.float32), np.asarray([1e-8], np.float32)
    lhs, rhs = values(f32, f32)
    assert evaluate(arith.AddfOp(lhs, rhs), [x, y]).dtype == np.float32
    assert evaluate(arith.AddfOp(lhs, rhs), [x, y])[0] == 1.0
    third = evaluate(arith.DivfOp(lhs, rhs), [x, np.asarray([3.0], np.float32)])
    assert third[0] == np.float32(1) / np.float32(3)
    two = np.asarray([2.0], np.float32)
    assert evaluate(math_dialect.RsqrtOp(lhs), [two])[0] == np.float32(1) / np.sqrt(np.float32(2))
    assert evaluate(math_dialect.ErfOp(lhs), [two])[0] == np.float32(math.erf(2.0))
    assert evaluate(math_dialect.RoundEvenOp(lhs), [np.asarray([0.5, 1.5, -2.5], np.float32)]).tolist() == [0, 2, -2]
    nan = evaluate(arith.MaximumfOp(lhs, rhs), [np.asarray(math.nan, np.float32), np.asarray(1, np.float32)])
    assert math.isnan(float(nan))


def test_constants() -> None:
    assert int(evaluate(arith.ConstantOp(IntegerAttr(-7, 8)), [])) == -7
    assert float(evaluate(arith.ConstantOp(FloatAttr(0.5, f32)), [])) == 0.5
    assert int(evaluate(arith.ConstantOp(IntegerAttr(3, IndexType())), [])) == 3
    splat = DenseIntOrFPElementsAttr.from_list(VectorType(IntegerType(8), [4]), [3])
    assert evaluate(arith.ConstantOp(splat), []).tolist() == [3, 3, 3, 3]
    listed = DenseIntOrFPElementsAttr.from_list(VectorType(f32, [2]), [1.0, 2.0])
    assert evaluate(arith.ConstantOp(listed), []).tolist() == [1.0, 2.0]


def test_what_has_no_semantics_is_named() -> None:
    call = CallOp("f", [], [f32])
    assert not is_scalar_op(call)
    with pytest.raises(PenstockError, match=r"no scalar semantics for func\.call"):
        evaluate(call, [])
    with pytest.raises(PenstockError, match="bf16"):
        numpy_dtype(bf16)
    with pytest.raises(PenstockError, match="65 bits"):
        numpy_dtype(IntegerType(65))
