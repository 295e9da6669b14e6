"""Lengths that a call says, in the IR: `as 2 * seq + 1` behind a number, `#nest.lengths<seq: 1 to 64>`."""

from __future__ import annotations

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from penstock.compiler.lengths import ByLength, Length, SizesByLength

SIZES = "penstock.sizes"
"""On an argument of @main: which of its dims follow from lengths."""
LENGTHS = "penstock.lengths"
"""On @main: the lengths."""


def parse_count(parser: AttrParser, word: str = "as") -> ByLength | None:
    """`as 2 * seq + 1`, if it stands there."""
    return parse_sum(parser) if parser.parse_optional_keyword(word) else None


def parse_sum(parser: AttrParser) -> ByLength:
    factors: dict[str, int] = {}
    offset, sign = 0, -1 if parser.parse_optional_punctuation("-") else 1
    while True:
        number = parser.parse_optional_integer(allow_boolean=False, allow_negative=False)
        if number is None or parser.parse_optional_punctuation("*"):
            factors[parser.parse_identifier()] = sign * (1 if number is None else number)
        else:
            offset += sign * number
        if parser.parse_optional_punctuation("+"):
            sign = 1
        elif parser.parse_optional_punctuation("-"):
            sign = -1
        else:
            return ByLength.of(factors, offset)


@irdl_attr_definition
class LengthsAttr(Data[tuple[Length, ...]]):
    """The lengths that a call says: `#nest.lengths<seq: 16 to 64 by 16>`."""

    name = "nest.lengths"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Length, ...]:
        def length() -> Length:
            name = parser.parse_identifier()
            parser.parse_punctuation(":")
            low = parser.parse_integer()
            parser.parse_keyword("to")
            high = parser.parse_integer()
            return Length(name, low, high, parser.parse_integer() if parser.parse_optional_keyword("by") else 1)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, length))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            steps = [f" by {one.step}" if one.step > 1 else "" for one in self.data]
            ranges = [f"{one.name}: {one.low} to {one.high}{step}" for one, step in zip(self.data, steps, strict=True)]
            printer.print_string(", ".join(ranges))


@irdl_attr_definition
class SizesAttr(Data[SizesByLength]):
    """Which dims of a tensor follow from lengths, and how: `#nest.sizes<fixed, 2 * seq + 1>`."""

    name = "nest.sizes"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SizesByLength:
        def size() -> ByLength | None:
            return None if parser.parse_optional_keyword("fixed") else parse_sum(parser)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, size))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join("fixed" if size is None else str(size) for size in self.data))
