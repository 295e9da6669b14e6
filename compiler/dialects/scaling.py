"""Multiplications of floats by a power of two: they change an exponent, and need no multiplier."""

from __future__ import annotations

import math

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import Operation, OpResult, SSAValue

_MOST = 126
"""Beyond, the factor itself is not a normal number of its own reciprocal."""


def scaling_of(op: Operation) -> tuple[SSAValue, int] | None:
    """What an f32 multiplication scales and by which power of two; None if it is any other operation."""
    if not isinstance(op, arith.MulfOp) or not isinstance(op.result.type, Float32Type):
        return None
    for factor, value in ((op.rhs, op.lhs), (op.lhs, op.rhs)):
        if not isinstance(factor, OpResult) or not isinstance(factor.op, arith.ConstantOp):
            continue
        constant = factor.op.value
        if isinstance(constant, FloatAttr):
            mantissa, exponent = math.frexp(constant.value.data)
            if mantissa == 0.5 and 0 < abs(exponent - 1) <= _MOST:
                return value, exponent - 1
    return None
