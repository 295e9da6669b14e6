"""Functions that are written out as arithmetic: how far they are from the rounded result, and what they give beyond."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, i32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Operation, SSAValue

from penstock.compiler.scalars.expansions import EXPANSIONS, expand
from penstock.compiler.scalars.operations import OPERATIONS, evaluate

Array = NDArray[Any]
RANDOM = np.random.default_rng(0)
BIG = np.exp(RANDOM.uniform(-20, 9, 4000)).astype(np.float32) * RANDOM.choice([-1, 1], 4000).astype(np.float32)
POSITIVE = np.exp(RANDOM.uniform(-30, 30, 4000)).astype(np.float32)
SPECIAL = np.array([0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-30, -1e-30], np.float32)


def written_out(kind: type[Operation], *operands: Array, constant: float | int | None = None) -> Array:
    """What the formula computes; the last operand is a constant where it is given as one."""
    source = AnyOp(result_types=[f32] * len(operands))
    known: dict[SSAValue, Array] = dict(zip(source.results, operands, strict=True))
    values: list[SSAValue] = list(source.results)
    if constant is not None:
        attribute: Attribute = FloatAttr(constant, f32) if isinstance(constant, float) else IntegerAttr(constant, i32)
        fixed = arith.ConstantOp(attribute)
        values.append(fixed.result)
        known[fixed.result] = evaluate(fixed, [])
    ops, result = expand(kind.create(operands=values, result_types=[f32]))
    for op in ops:
        known[op.results[0]] = evaluate(op, [known[x] for x in op.operands])
    return np.broadcast_to(known[result], operands[0].shape)


def ulps(got: Array, wanted: Array) -> float:
    """The largest distance, in units of the last place of the rounded result."""
    rounded = wanted.astype(np.float32)
    normal = np.isfinite(rounded) & (np.abs(rounded) > 1e-37)
    return float(np.max(np.abs(got[normal] - wanted[normal]) / np.spacing(np.abs(rounded[normal]))))


@pytest.mark.parametrize(("kind", "exact"), [(math.SinOp, np.sin), (math.CosOp, np.cos)])
def test_waves_within_their_range_and_bounded_beyond(kind: type[Operation], exact: Callable[[Array], Array]) -> None:
    x = np.concatenate([BIG[np.abs(BIG) <= 8192], np.linspace(-10, 10, 4001, dtype=np.float32)])
    assert np.max(np.abs(written_out(kind, x) - exact(x.astype(np.float64)))) < 2e-7
    far = written_out(kind, np.array([1e6, 1e20, -3e38], np.float32))
    assert np.all(np.abs(far) <= 1.001)
    assert np.all(np.isnan(written_out(kind, np.array([np.inf, -np.inf, np.nan], np.float32))))


def test_small_sines_keep_their_digits() -> None:
    x = np.exp(RANDOM.uniform(-60, 0, 2000)).astype(np.float32)
    assert ulps(written_out(math.SinOp, x), np.sin(x.astype(np.float64))) < 2


@pytest.mark.parametrize(
    ("kind", "exact", "x"),
    [
        (math.Log1pOp, np.log1p, np.concatenate([POSITIVE, -np.exp(RANDOM.uniform(-30, -1e-3, 2000))])),
        (math.ExpM1Op, np.expm1, np.clip(BIG, -100, 88)),
    ],
)
def test_functions_near_zero_keep_their_digits(
    kind: type[Operation], exact: Callable[[Array], Array], x: Array
) -> None:
    x = x.astype(np.float32)
    assert ulps(written_out(kind, x), exact(x.astype(np.float64))) <= 4
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(
            written_out(kind, SPECIAL[:6]), exact(SPECIAL[:6].astype(np.float64)).astype("f4")
        )


@pytest.mark.parametrize("exponent", [2.5, -0.75, 1 / 3, 17.0, 3.0, -2.0])
def test_powers(exponent: float) -> None:
    x = POSITIVE[(POSITIVE > 1e-2) & (POSITIVE < 1e2)]
    wanted = x.astype(np.float64) ** np.float32(exponent)
    allowed = 2 + 2 * float(np.max(np.abs(exponent * np.log(x)))) if exponent not in (3.0, -2.0) else 8
    assert ulps(written_out(math.PowFOp, x, constant=exponent), wanted) <= allowed
    both = written_out(math.PowFOp, x, np.full_like(x, exponent))
    assert ulps(both, wanted) <= 2 + 2 * float(np.max(np.abs(exponent * np.log(x))))


def test_powers_of_what_is_not_positive() -> None:
    x, y = np.array([-2, -2, -2, 0, 0, -3, 0], np.float32), np.array([3, 2, 0.5, 2, 0, 0, -1], np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(written_out(math.PowFOp, x, y), x**y, rtol=1e-5)
    np.testing.assert_array_equal(written_out(math.FPowIOp, x, constant=3), x**3)
    np.testing.assert_allclose(written_out(math.FPowIOp, x[:3], constant=17), x[:3] ** 17, rtol=1e-5)
    np.testing.assert_array_equal(written_out(math.PowFOp, x, constant=0.0), np.ones_like(x))


def test_every_function_is_written_with_what_needs_no_expansion_itself() -> None:
    for kind in EXPANSIONS:
        arity = {math.PowFOp: 2, math.FPowIOp: 2, math.CopySignOp: 2, math.FmaOp: 3}.get(kind, 1)
        ops, _ = expand(kind.create(operands=AnyOp(result_types=[f32] * arity).results, result_types=[f32]))
        assert all(type(op) in OPERATIONS and type(op) not in EXPANSIONS for op in ops)
    x, y, z = BIG[:100], POSITIVE[:100], BIG[100:200]
    np.testing.assert_array_equal(written_out(math.CopySignOp, y, x), np.copysign(y, x))
    np.testing.assert_array_equal(written_out(math.FmaOp, x, y, z), x * y + z)
