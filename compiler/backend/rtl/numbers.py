"""What values a signal can have, and so how wide it must be: int8 products get multipliers for eight bits."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute

from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.number_types import NumberType, in_words, number_type


@dataclass(frozen=True)
class ValueRange:
    """All values from `low` to `high`. Bit patterns of floats are non-negative numbers too."""

    low: int
    high: int

    @property
    def signed(self) -> bool:
        return self.low < 0

    @property
    def width(self) -> int:
        if self.low >= 0:
            return max(1, self.high.bit_length())
        return max((-self.low - 1).bit_length(), max(self.high, 0).bit_length()) + 1

    def __or__(self, other: ValueRange) -> ValueRange:
        return ValueRange(min(self.low, other.low), max(self.high, other.high))

    def within(self, width: int) -> ValueRange:
        """What is left of it in a signed type of that width: itself where it fits, else every value."""
        whole = signed_range(width)
        return self if whole.low <= self.low and self.high <= whole.high else whole


def signed_range(width: int) -> ValueRange:
    return ValueRange(-(1 << (width - 1)), (1 << (width - 1)) - 1)


def pattern_range(width: int) -> ValueRange:
    return ValueRange(0, (1 << width) - 1)


def type_bits(kind: Attribute) -> int:
    """Bits of a scalar type, or of a vector's elements."""
    return _row(kind).bits


def _row(kind: Attribute) -> NumberType:
    row = number_type(kind)
    if row.sv is None:
        raise PenstockError(
            code="unsupported-dtype", what=f"the RTL backend has no bits for {row.name}",
            limit=in_words(lambda row: row.sv is not None),
        )  # fmt: skip
    return row


def type_range(kind: Attribute) -> ValueRange:
    """Every value of the type."""
    row = _row(kind)
    return signed_range(row.bits) if row.sv == "signed" else pattern_range(row.bits)
