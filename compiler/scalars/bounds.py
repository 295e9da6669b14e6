"""What is known of a float that is not known: finite, and between bounds. A rule says it of an operation's result.

Bounds are there to tell what stays finite: the root of a variance plus something, a quotient, an exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf


@dataclass(frozen=True)
class Bounds:
    """A finite number from `low` to `high`; how large an unbounded one may become is not looked at."""

    low: float
    high: float


Rule = Callable[[Sequence[Bounds]], Bounds | None]
"""Of the operands' bounds; None is anything: infinite, or no number."""

FINITE = Bounds(-inf, inf)
POSITIVE = Bounds(0.0, inf)
UNIT = Bounds(-1.0, 1.0)

_LARGEST_POWER = 11.0
"""The exponential of anything more does not fit the narrowest float."""

_SMALLEST_PRODUCT = 1e-4
"""Anything less may be zero in the narrowest float."""


def within(result: Bounds) -> Rule:
    """Always between the same bounds."""
    return lambda operands: result


def anything(operands: Sequence[Bounds]) -> None:
    """Nothing is known, or nothing has been worth knowing."""


def total(operands: Sequence[Bounds]) -> Bounds:
    a, b = operands
    return Bounds(a.low + b.low, a.high + b.high)


def difference(operands: Sequence[Bounds]) -> Bounds:
    a, b = operands
    return Bounds(a.low - b.high, a.high - b.low)


def negated(operands: Sequence[Bounds]) -> Bounds:
    return Bounds(-operands[0].high, -operands[0].low)


def product(operands: Sequence[Bounds]) -> Bounds:
    a, b = operands
    corners = [x * y if x and y else 0.0 for x in (a.low, a.high) for y in (b.low, b.high)]
    corners = [0.0 if abs(corner) < _SMALLEST_PRODUCT else corner for corner in corners]
    return Bounds(min(corners), max(corners))


def quotient(operands: Sequence[Bounds]) -> Bounds | None:
    return FINITE if operands[1].low > 0 or operands[1].high < 0 else None


def power(operands: Sequence[Bounds]) -> Bounds | None:
    return POSITIVE if operands[0].high <= _LARGEST_POWER else None


def root(operands: Sequence[Bounds]) -> Bounds | None:
    return POSITIVE if operands[0].low >= 0 else None


def reciprocal_root(operands: Sequence[Bounds]) -> Bounds | None:
    return POSITIVE if operands[0].low > 0 else None


def larger(operands: Sequence[Bounds]) -> Bounds:
    return Bounds(max(b.low for b in operands), max(b.high for b in operands))


def either(operands: Sequence[Bounds]) -> Bounds:
    return Bounds(min(b.low for b in operands), max(b.high for b in operands))


def smaller(operands: Sequence[Bounds]) -> Bounds:
    return Bounds(min(b.low for b in operands), min(b.high for b in operands))
