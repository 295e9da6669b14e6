"""Functions without a core of their own, by arithmetic that has one. What they become is computed alike on all levels.

Errors are against the rounded result, in units of the last place unless said otherwise; a test holds them.

| operation | error | how |
|---|---|---|
| sin, cos | 2e-7 absolute up to 8,192 | whole multiples of pi off in three parts, then a polynomial |
| log1p, expm1 | 4, also near zero | log(1 + x) scaled by what the sum lost; tanh(x / 2) (exp(x) + 1) |
| powf, fpowi | 2 + 2 abs(y log x); 8 for small whole y | exp(y log x), with the sign of whole powers; products |
| fma | the product is rounded too | |
| copysign | the sign of -0 is lost | |
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.ir import Operation, SSAValue

from penstock.compiler.scalars.operations import evaluate


@dataclass(frozen=True, eq=False)
class FormulaValue:
    """A float in a formula: Python's operators append operations to those that the formula has so far."""

    value: SSAValue
    ops: list[Operation]

    def known(self) -> float | None:
        """The number, if it is a constant."""
        owner = self.value.owner
        return float(evaluate(owner, [])) if isinstance(owner, arith.ConstantOp) else None

    def __add__(self, other: FormulaValue | float) -> FormulaValue:
        return self._with(arith.AddfOp, other)

    def __sub__(self, other: FormulaValue | float) -> FormulaValue:
        return self._with(arith.SubfOp, other)

    def __mul__(self, other: FormulaValue | float) -> FormulaValue:
        return self._with(arith.MulfOp, other)

    def __truediv__(self, other: FormulaValue | float) -> FormulaValue:
        return self._with(arith.DivfOp, other)

    def least(self, other: float) -> FormulaValue:
        return self._with(arith.MaximumfOp, other)

    def most(self, other: float) -> FormulaValue:
        return self._with(arith.MinimumfOp, other)

    def is_(self, predicate: str, other: FormulaValue | float) -> FormulaValue:
        right = self.like(other)
        return self._append(arith.CmpfOp(self.value, right.value, predicate))

    def choose(self, holds: FormulaValue | float, otherwise: FormulaValue | float) -> FormulaValue:
        """Of a condition: one of two numbers, at least one of them computed."""
        computed = holds if isinstance(holds, FormulaValue) else otherwise
        assert isinstance(computed, FormulaValue)
        first, second = computed.like(holds), computed.like(otherwise)
        return self._append(arith.SelectOp(self.value, first.value, second.value))

    def by(self, function: type[Operation]) -> FormulaValue:
        return self._append(function.create(operands=[self.value], result_types=[self.value.type]))

    def _with(self, kind: type[Operation], other: FormulaValue | float) -> FormulaValue:
        right = self.like(other)
        return self._append(kind.create(operands=[self.value, right.value], result_types=[self.value.type]))

    def like(self, other: FormulaValue | float) -> FormulaValue:
        """A constant of the same type."""
        if isinstance(other, FormulaValue):
            return other
        assert isinstance(self.value.type, AnyFloat)
        return self._append(arith.ConstantOp(FloatAttr(float(np.float32(other)), self.value.type)))

    def _append(self, op: Operation) -> FormulaValue:
        self.ops.append(op)
        return FormulaValue(op.results[0], self.ops)


Formula = Callable[..., FormulaValue]
"""The result, of the operands."""

_PI = (3.140625, 9.67502593994140625e-4, 1.509957990978376432e-7)
"""Parts with few digits each, so that their multiples are exact."""
_LARGEST_PRODUCT = 16
_FARTHEST = 1.6
"""Half of pi and a little: what is left of a number whose multiple of pi was rounded the wrong way."""


def _sine_coefficients() -> list[float]:
    """(sin(r) / r - 1) / r² in r², by Chebyshev's points."""
    squares = _FARTHEST**2 * (1 + np.cos((np.arange(64) + 0.5) * np.pi / 64)) / 2
    r = np.sqrt(squares)
    fitted = np.polynomial.Chebyshev.fit(squares, (np.sin(r) / r - 1) / squares, 3, domain=[0, _FARTHEST**2])
    return [float(c) for c in fitted.convert(kind=np.polynomial.Polynomial).coef]


_SINE = _sine_coefficients()


def _without_turns(x: FormulaValue, halves: FormulaValue) -> FormulaValue:
    """The sine of what is left of x without so many halves of a turn."""
    r = x
    for part in _PI:
        r = r - halves * part
    r = r.least(-_FARTHEST).most(_FARTHEST)  # beyond the range that is promised, too, nothing explodes
    square = r * r
    total = square * _SINE[-1] + _SINE[-2]
    for coefficient in reversed(_SINE[:-2]):
        total = total * square + coefficient
    return r + r * (square * total)


def _alternating(number: FormulaValue, even: float) -> FormulaValue:
    """`even` for even whole numbers, its negative for odd ones."""
    half = number * 0.5
    return (half - half.by(math.FloorOp)) * (-4 * even) + even


def _sine(x: FormulaValue) -> FormulaValue:
    halves = (x * (1 / numbers.pi)).by(math.RoundEvenOp)
    return _without_turns(x, halves) * _alternating(halves, 1.0)


def _cosine(x: FormulaValue) -> FormulaValue:
    below = (x * (1 / numbers.pi)).by(math.FloorOp)
    return _without_turns(x, below + 0.5) * _alternating(below, -1.0)


def _log1p(x: FormulaValue) -> FormulaValue:
    """1 + x loses digits of x; the logarithm is scaled by as much. (Also right at -1 and infinity, where none are.)"""
    total = x + 1.0
    kept = total - 1.0
    log = total.by(math.LogOp)
    exact = kept.is_("oeq", x).choose(log, log * (x / kept))
    return kept.is_("oeq", 0.0).choose(x, exact)


def _expm1(x: FormulaValue) -> FormulaValue:
    return (x * 0.5).by(math.TanhOp) * (x.by(math.ExpOp) + 1.0)


def _power(x: FormulaValue, y: FormulaValue) -> FormulaValue:
    """Of a negative number only whole powers are numbers, and odd ones negative."""
    exponent = y.known()
    if exponent == 0:
        return x.like(1.0)
    if exponent is not None and exponent == round(exponent) and abs(exponent) <= _LARGEST_PRODUCT:
        product = _product(x, int(abs(exponent)))
        return product if exponent > 0 else x.like(1.0) / product
    if exponent is not None and exponent != round(exponent):
        return (x.by(math.LogOp) * y).by(math.ExpOp)
    size = (x.by(math.AbsFOp).by(math.LogOp) * y).by(math.ExpOp)
    if exponent is not None:
        return x.is_("olt", 0.0).choose(size * -1.0, size) if exponent % 2 else size
    half = y * 0.5
    odd, whole = half.by(math.FloorOp).is_("one", half), y.by(math.FloorOp).is_("oeq", y)
    below = whole.choose(odd.choose(size * -1.0, size), numbers.nan)
    signed = x.is_("olt", 0.0).choose(below, size)
    return y.is_("oeq", 0.0).choose(1.0, signed)


def _product(x: FormulaValue, count: int) -> FormulaValue:
    """By squaring: x to the power of `count` in the fewest rounds."""
    if count == 1:
        return x
    half = _product(x, count // 2)
    square = half * half
    return square * x if count % 2 else square


def _fused(x: FormulaValue, y: FormulaValue, z: FormulaValue) -> FormulaValue:
    return x * y + z


def _copysign(x: FormulaValue, y: FormulaValue) -> FormulaValue:
    size = x.by(math.AbsFOp)
    return y.is_("olt", 0.0).choose(size * -1.0, size)


EXPANSIONS: dict[type[Operation], Formula] = {
    math.SinOp: _sine,
    math.CosOp: _cosine,
    math.Log1pOp: _log1p,
    math.ExpM1Op: _expm1,
    math.PowFOp: _power,
    math.FPowIOp: _power,
    math.FmaOp: _fused,
    math.CopySignOp: _copysign,
}


def expand(op: Operation) -> tuple[list[Operation], SSAValue]:
    """What computes an operation's result in its place, in order, and the result."""
    ops: list[Operation] = []
    result = EXPANSIONS[type(op)](*[_as_float(operand, op, ops) for operand in op.operands])
    return ops, result.value


def _as_float(operand: SSAValue, op: Operation, ops: list[Operation]) -> FormulaValue:
    kind = op.results[0].type
    if operand.type == kind:
        return FormulaValue(operand, ops)
    owner = operand.owner
    assert isinstance(kind, AnyFloat)
    if isinstance(owner, arith.ConstantOp):  # a whole exponent that is known
        ops.append(arith.ConstantOp(FloatAttr(float(evaluate(owner, [])), kind)))
    else:
        ops.append(arith.SIToFPOp(operand, kind))
    return FormulaValue(ops[-1].results[0], ops)
