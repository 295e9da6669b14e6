"""Functions of one number that have no core, by those that have one: exp, log, sin, cos, sqrt, rounding, comparisons.

What exp, log, sin and cos cost and how exact they are is said in compiler/scalars/expansions.py.
"""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

aten = torch.ops.aten


def functions() -> dict[Any, Callable[..., Any]]:
    return {
        aten.tan.default: lambda x: aten.div.Tensor(aten.sin.default(x), aten.cos.default(x)),
        aten.sinh.default: _sinh,
        aten.cosh.default: _cosh,
        aten.asin.default: _asin,
        aten.acos.default: lambda x: aten.add.Scalar(aten.neg.default(_asin(x)), math.pi / 2),
        aten.atan.default: _atan,
        aten.atan2.default: _atan2,
        aten.asinh.default: _asinh,
        aten.acosh.default: _acosh,
        aten.atanh.default: _atanh,
        aten.log10.default: lambda x: aten.mul.Scalar(aten.log.default(x), 1 / math.log(10)),
        aten.erfc.default: lambda x: aten.add.Scalar(aten.neg.default(aten.erf.default(x)), 1.0),
        aten.hypot.default: lambda x, y: aten.sqrt.default(aten.add.Tensor(_square(x), _square(y))),
        aten.copysign.Tensor: _copysign,
        aten.heaviside.default: _heaviside,
        aten.lerp.Scalar: lambda x, y, w: aten.add.Tensor(x, aten.mul.Scalar(aten.sub.Tensor(y, x), w)),
        aten.lerp.Tensor: lambda x, y, w: aten.add.Tensor(x, aten.mul.Tensor(aten.sub.Tensor(y, x), w)),
        aten.fmod.Scalar: _fmod,
        aten.remainder.Scalar: _remainder,
        aten.pow.Scalar: _power_of,
    }


def _square(x: torch.Tensor) -> torch.Tensor:
    return aten.mul.Tensor(x, x)


def _half(x: torch.Tensor) -> torch.Tensor:
    return aten.mul.Scalar(x, 0.5)


def _is_negative(x: torch.Tensor) -> torch.Tensor:
    return aten.lt.Scalar(x, 0.0)


def _with_sign_of(size: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return aten.where.self(_is_negative(x), aten.neg.default(size), size)


def _sinh(x: torch.Tensor) -> torch.Tensor:
    """By what exceeds 1 of the exponential, so that small numbers keep their digits."""
    grown = aten.expm1.default(aten.abs.default(x))
    return _with_sign_of(_half(aten.add.Tensor(grown, aten.div.Tensor(grown, aten.add.Scalar(grown, 1.0)))), x)


def _cosh(x: torch.Tensor) -> torch.Tensor:
    return _half(aten.add.Tensor(aten.exp.default(x), aten.exp.default(aten.neg.default(x))))


def _asin(x: torch.Tensor) -> torch.Tensor:
    """The angle of a right triangle with the hypotenuse 1."""
    other = aten.mul.Tensor(aten.add.Scalar(aten.neg.default(x), 1.0), aten.add.Scalar(x, 1.0))
    return _atan2(x, aten.sqrt.default(other))


def _atan_coefficients() -> list[float]:
    """atan(t) / t in t * t on [0, 1], by Chebyshev's points: within 3e-8."""
    points = (1 + np.cos((np.arange(64) + 0.5) * np.pi / 64)) / 2
    roots = np.sqrt(points)
    fitted = np.polynomial.Chebyshev.fit(points, np.arctan(roots) / roots, 9, domain=[0, 1])
    return [float(c) for c in fitted.convert(kind=np.polynomial.Polynomial).coef]


_ATAN = _atan_coefficients()


def _atan(x: torch.Tensor) -> torch.Tensor:
    return _atan2(x, aten.full_like.default(x, 1.0))


def _atan2(y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """By the smaller over the larger, which is in [0, 1], and the octant."""
    a, b = aten.abs.default(y), aten.abs.default(x)
    larger = aten.maximum.default(a, b)
    t = aten.div.Tensor(aten.minimum.default(a, b), aten.where.ScalarOther(aten.gt.Scalar(larger, 0.0), larger, 1.0))
    square = _square(t)
    total = aten.full_like.default(square, _ATAN[-1])
    for coefficient in reversed(_ATAN[:-1]):
        total = aten.add.Scalar(aten.mul.Tensor(total, square), coefficient)
    angle = aten.mul.Tensor(total, t)
    angle = aten.where.self(aten.gt.Tensor(a, b), aten.add.Scalar(aten.neg.default(angle), math.pi / 2), angle)
    angle = aten.where.self(_is_negative(x), aten.add.Scalar(aten.neg.default(angle), math.pi), angle)
    return _with_sign_of(angle, y)


def _asinh(x: torch.Tensor) -> torch.Tensor:
    a = aten.abs.default(x)
    square = _square(a)
    root = aten.add.Scalar(aten.sqrt.default(aten.add.Scalar(square, 1.0)), 1.0)
    return _with_sign_of(aten.log1p.default(aten.add.Tensor(a, aten.div.Tensor(square, root))), x)


def _acosh(x: torch.Tensor) -> torch.Tensor:
    above = aten.sub.Scalar(x, 1.0)
    root = aten.sqrt.default(aten.mul.Tensor(above, aten.add.Scalar(x, 1.0)))
    return aten.log1p.default(aten.add.Tensor(above, root))


def _atanh(x: torch.Tensor) -> torch.Tensor:
    a = aten.abs.default(x)
    ratio = aten.div.Tensor(aten.mul.Scalar(a, 2.0), aten.add.Scalar(aten.neg.default(a), 1.0))
    return _with_sign_of(_half(aten.log1p.default(ratio)), x)


def _copysign(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The sign of -0 is lost."""
    return _with_sign_of(aten.abs.default(x), y)


def _heaviside(x: torch.Tensor, at_zero: torch.Tensor) -> torch.Tensor:
    zero, one = aten.full_like.default(x, 0.0), aten.full_like.default(x, 1.0)
    above = aten.where.self(aten.gt.Scalar(x, 0.0), one, zero)
    return aten.where.self(aten.eq.Scalar(x, 0.0), aten.expand.default(at_zero, list(above.shape)), above)


def _remainder(x: torch.Tensor, divisor: float) -> Any:
    """What is left of whole multiples, with the divisor's sign; a quotient that was rounded up is put right."""
    if x.dtype != torch.float32 or not divisor:
        return NotImplemented
    quotient = aten.floor.default(aten.div.Scalar(x, divisor))
    left = aten.sub.Tensor(x, aten.mul.Scalar(quotient, divisor))
    compare, beyond = (aten.lt.Scalar, aten.ge.Scalar) if divisor > 0 else (aten.gt.Scalar, aten.le.Scalar)
    left = aten.where.self(compare(left, 0.0), aten.add.Scalar(left, divisor), left)
    return aten.where.self(beyond(left, divisor), aten.sub.Scalar(left, divisor), left)


def _fmod(x: torch.Tensor, divisor: float) -> Any:
    """As the remainder of magnitudes, with the sign of x."""
    left = _remainder(aten.abs.default(x), abs(divisor))
    return left if left is NotImplemented else _with_sign_of(left, x)


def _power_of(base: float, x: torch.Tensor) -> Any:
    if base == 2:
        return aten.exp2.default(x)
    return aten.exp.default(aten.mul.Scalar(x, math.log(base))) if base > 0 else NotImplemented
