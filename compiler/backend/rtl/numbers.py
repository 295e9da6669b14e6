"""What values a signal can have, and so how wide it must be: int8 products get multipliers for eight bits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import Float16Type, Float32Type, Float64Type, VectorType
from xdsl.ir import Attribute

from penstock.compiler.dialects.types import integer_width
from penstock.compiler.errors import PenstockError


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


def element_of(kind: Attribute) -> Attribute:
    return cast("VectorType[Attribute]", kind).element_type if isinstance(kind, VectorType) else kind


def type_bits(kind: Attribute) -> int:
    """Bits of a scalar type, or of a vector's elements."""
    element = element_of(kind)
    if (width := integer_width(element)) is not None:
        return width
    for float_type, width in ((Float16Type, 16), (Float32Type, 32), (Float64Type, 64)):
        if isinstance(element, float_type):
            return width
    raise PenstockError(
        code="unsupported-dtype",
        what=f"the RTL backend has no bits for {element}",
        limit="integers, f16, f32 and f64",
    )


def type_range(kind: Attribute) -> ValueRange:
    """Every value of the type."""
    width = type_bits(kind)
    return signed_range(width) if integer_width(element_of(kind)) is not None else pattern_range(width)
