"""What a scalar may be, as far as it is known: a number, a finite one between bounds, or anything.

Bounds are there to tell what stays finite: the root of a variance plus something, a quotient, an exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.interpreter.scalar import evaluate, numpy_dtype

Number = NDArray[Any]
"""An array without dims."""


@dataclass(frozen=True)
class Bounds:
    """A finite number from `low` to `high`; how large an unbounded one may become is not looked at."""

    low: float
    high: float


FINITE = Bounds(-inf, inf)
Content = Number | Bounds | None
"""None is anything: infinite, or no number."""


def same(content: Content, number: Number | None) -> bool:
    """Whether it is known to be this number."""
    return number is not None and isinstance(content, np.ndarray) and np.array_equal(content, number)


def joined(contents: Sequence[Content]) -> Content:
    """One of them, nobody knows which."""
    first = contents[0]
    if isinstance(first, np.ndarray) and all(same(other, first) for other in contents):
        return first
    return _union([bounds_of(content) for content in contents])


def run_body(block: Block, contents: Sequence[Content]) -> Mapping[SSAValue, Content]:
    """What every value of a scalar body may be; the running result of a reduction is finite."""
    values: dict[SSAValue, Content] = dict.fromkeys(block.args, FINITE)
    values |= dict(zip(block.args, contents, strict=False))
    for op in block.ops:
        if op.results:
            values[op.results[0]] = _scalar(op, [values[o] if o in values else _captured(o) for o in op.operands])
    return values


def _captured(value: SSAValue) -> Content:
    """A constant that stands outside of the body."""
    return _scalar(value.owner, []) if isinstance(value.owner, arith.ConstantOp) else None


def _scalar(op: Operation, operands: Sequence[Content]) -> Content:
    numbers = [content for content in operands if isinstance(content, np.ndarray)]
    if len(numbers) == len(operands):
        return evaluate(op, numbers)
    floats = isinstance(op.results[0].type, AnyFloat)
    bounds = [bounds_of(content) for content in operands]
    zero = any(not number.any() for number in numbers)
    if op.name in ("arith.mulf", "arith.muli") and zero and (None not in bounds or not floats):
        return np.zeros((), numpy_dtype(op.results[0].type))
    if not floats:
        return FINITE
    if op.name in ("arith.addf", "arith.subf") and any(np.isinf(number) for number in numbers):
        if not any(content is None for content in operands):  # infinity, whatever finite number goes with it
            return evaluate(op, [_or_zero(content, numbers[0]) for content in operands])
        return None
    if op.name == "arith.select":
        return _union(bounds[1:])
    known = [one for one in bounds if one is not None]
    if len(known) < len(bounds):
        return None
    if op.name == "arith.mulf" and op.operands[0] is op.operands[1]:
        return Bounds(0.0, inf)
    rule = _RULES.get(op.name)
    return None if rule is None else rule(known)


def _or_zero(content: Content, like: Number) -> Number:
    return content if isinstance(content, np.ndarray) else np.zeros_like(like)


def bounds_of(content: Content) -> Bounds | None:
    """What a content is as a finite number; None where it may be none."""
    if not isinstance(content, np.ndarray):
        return content
    return Bounds(float(content), float(content)) if np.isfinite(content) else None


def _union(bounds: Sequence[Bounds | None]) -> Bounds | None:
    known = [one for one in bounds if one is not None]
    whole = Bounds(min(b.low for b in known), max(b.high for b in known)) if known else None
    return whole if len(known) == len(bounds) else None


def _product(a: Bounds, b: Bounds) -> Bounds:
    corners = [x * y if x and y else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    corners = [0.0 if abs(corner) < _SMALLEST_PRODUCT else corner for corner in corners]
    return Bounds(min(corners), max(corners))


def _above_zero(bounds: Bounds, result: Bounds) -> Bounds | None:
    """What is defined, and finite, for positive numbers only."""
    return result if bounds.low > 0 else None


_LARGEST_POWER = 11.0
"""The exponential of anything more does not fit the narrowest float."""

_SMALLEST_PRODUCT = 1e-4
"""Anything less may be zero in the narrowest float."""

_Rule = Callable[[Sequence[Bounds]], Bounds | None]
_RULES: dict[str, _Rule] = {
    "arith.addf": lambda o: Bounds(o[0].low + o[1].low, o[0].high + o[1].high),
    "arith.subf": lambda o: Bounds(o[0].low - o[1].high, o[0].high - o[1].low),
    "arith.mulf": lambda o: _product(o[0], o[1]),
    "arith.divf": lambda o: FINITE if o[1].low > 0 or o[1].high < 0 else None,
    "arith.negf": lambda o: Bounds(-o[0].high, -o[0].low),
    "math.exp": lambda o: Bounds(0.0, inf) if o[0].high <= _LARGEST_POWER else None,
    "math.rsqrt": lambda o: _above_zero(o[0], Bounds(0.0, inf)),
    "math.sqrt": lambda o: Bounds(0.0, inf) if o[0].low >= 0 else None,
    "math.absf": lambda o: Bounds(0.0, inf),
    **dict.fromkeys(("arith.maximumf", "arith.maxnumf"), lambda o: Bounds(*(max(s) for s in _sides(o)))),
    **dict.fromkeys(("arith.minimumf", "arith.minnumf"), lambda o: Bounds(*(min(s) for s in _sides(o)))),
    **dict.fromkeys(("math.tanh", "math.erf", "math.sin", "math.cos"), lambda o: Bounds(-1.0, 1.0)),
    **dict.fromkeys(
        (
            "arith.extf", "arith.truncf", "arith.sitofp", "arith.uitofp", "math.floor", "math.ceil", "math.round",
            "math.roundeven", "math.trunc",
        ),
        lambda o: FINITE,
    ),
}  # fmt: skip


def _sides(bounds: Sequence[Bounds]) -> tuple[list[float], list[float]]:
    return [b.low for b in bounds], [b.high for b in bounds]
