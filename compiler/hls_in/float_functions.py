"""Functions of floats by the names of C: what they give of constants."""

from __future__ import annotations

import math
from typing import Any


def _half_away(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


def _inverse(x: float) -> float:
    return 1 / x


def _inverse_root(x: float) -> float:
    return 1 / math.sqrt(x)


def _scaled(x: float, exponent: float) -> float:
    return math.ldexp(x, int(exponent))


FUNCTIONS: dict[str, Any] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "tanh": math.tanh, "sin": math.sin, "cos": math.cos,
    "erf": math.erf, "floor": math.floor, "ceil": math.ceil, "fabs": abs, "abs": abs, "pow": math.pow,
    "rsqrt": _inverse_root, "recip": _inverse, "exp2": math.exp2, "log2": math.log2, "trunc": math.trunc, "rint": round,
    "round": _half_away, "ldexp": _scaled, "tan": math.tan, "asin": math.asin, "acos": math.acos, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "log10": math.log10, "cbrt": math.cbrt, "atan2": math.atan2,
    "hypot": math.hypot,
}  # fmt: skip
"""Functions of floats that fold where all is constant."""

NOT_FINITE = {"__builtin_inff": math.inf, "__builtin_inf": math.inf, "__builtin_nanf": math.nan}
"""What the shipped headers say INFINITY and NAN are."""
