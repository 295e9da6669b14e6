"""The tables of the float cores: which function on which segments."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from penstock.compiler.backend.rtl.primitives.polynomials import Floats, Segments


def _exp2(x: Floats) -> Floats:
    return np.exp2(x)


def _reciprocal(x: Floats) -> Floats:
    return 1 / x


def _rsqrt(x: Floats) -> Floats:
    return 1 / np.sqrt(x)


def _even(
    name: str, function: Callable[[Floats], Floats], count: int, start: float, end: float, **rest: int
) -> Segments:
    """`count` segments of equal width from start to end."""
    width = (end - start) / count
    return Segments(
        name, function, [start + i * width for i in range(count)], [width / 2 ** rest["d_bits"]] * count, **rest
    )


EXP2 = _even("exp2_polynomial", _exp2, 128, 0, 1, d_bits=18, degree=2, fraction=27, slope_sign=1)
RECIPROCAL = _even("reciprocal_polynomial", _reciprocal, 128, 1, 2, d_bits=16, degree=2, fraction=27, slope_sign=-1)
# from 1 to 2 in steps of 1/64, then from 2 to 4 in steps of 1/32
RSQRT = Segments(
    "rsqrt_polynomial", _rsqrt, [2.0 ** (i // 64) * (1 + i % 64 / 64) for i in range(128)],
    [2.0 ** (i // 64 - 23) for i in range(128)], d_bits=17, degree=2, fraction=27, slope_sign=-1,
)  # fmt: skip

_OCTAVE = 64  # segments


def _odd(name: str, function: Callable[[Floats], Floats], slope: float, octaves: int) -> Segments:
    """f(x) / x below 1, then f(x) in octaves from 1 on. The slope is that of f at 0."""

    def value(x: Floats) -> Floats:
        if x.max() > 1.0:
            return function(x)
        near = slope * (1 - x * x / 3)  # both functions begin so
        return np.where(x < 1e-4, near, function(x) / np.maximum(x, 1e-9))

    starts = [i / _OCTAVE for i in range(_OCTAVE)]
    units = [2.0**-24] * _OCTAVE
    for octave in range(octaves):
        starts += [2.0**octave * (1 + i / _OCTAVE) for i in range(_OCTAVE)]
        units += [2.0 ** (octave - 24)] * _OCTAVE
    return Segments(name, value, starts, units, d_bits=18, degree=2, fraction=27)


def _erf(x: Floats) -> Floats:
    return np.array([math.erf(value) for value in x])


def _log_over_distance(log: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    """log(m) / (m - 1); the scale of log is log(e)."""
    scale = float(log(np.array([math.e]))[0])

    def value(m: Floats) -> Floats:
        z = m - 1
        safe = np.where(np.abs(z) < 1e-6, 1.0, z)
        return scale * np.where(np.abs(z) < 1e-6, 1 - z / 2, np.log1p(safe) / safe)

    return value


def _logarithm(name: str, log: Callable[[Floats], Floats]) -> Segments:
    """In 64 steps from 1 to 2, where the upper 37 stand for half of their argument."""
    halving = [i >= 27 for i in range(64)]
    starts = [(1 + i / 64) / (1 + half) for i, half in enumerate(halving)]
    units = [2.0**-23 / (1 + half) for half in halving]
    return Segments(name, _log_over_distance(log), starts, units, d_bits=17, degree=2, fraction=27, slope_sign=-1)


TANH = _odd("tanh_polynomial", np.tanh, 1.0, 3)
ERF = _odd("erf_polynomial", _erf, 2 / math.sqrt(math.pi), 2)
LOG = _logarithm("log_polynomial", np.log)
LOG2 = _logarithm("log2_polynomial", np.log2)

TABLES = {f"{table.name}.sv": table for table in (EXP2, RECIPROCAL, RSQRT, TANH, ERF, LOG, LOG2)}
