"""The loops of a nest, and the guards of what happens in it."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import Data
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from penstock.compiler.dialects.counts import parse_count
from penstock.compiler.lengths import ByLength

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "ge": operator.ge,
    "le": operator.le,
    "in": lambda counter, numbers: numbers >> counter & 1 == 1,
}
"""`in` has a number whose bits say of each counter whether it holds; so there are at most `MOST_LISTED` of them."""
MOST_LISTED = 62
SIGNS = {"eq": "==", "ne": "!=", "ge": ">=", "le": "<="}
"""The comparisons that C++ and SystemVerilog write with a sign."""


@dataclass(frozen=True)
class Term:
    """One comparison of a guard: the counter of loop `loop` against a number.

    With `every` it is the counter's remainder by that number which is compared. With `count` the number follows from
    lengths that are given at each call, and `value` is what it is at the largest. With `law` that is what it followed
    from: `value` is the number at one of the lengths.
    """

    loop: int
    comparison: str
    value: int
    every: int = 0
    count: ByLength | None = None
    law: ByLength | None = None

    @property
    def number(self) -> ByLength:
        """What the counter is compared with, at all lengths."""
        return self.count or self.law or ByLength((), self.value)

    def holds(self, counters: Sequence[int]) -> bool:
        return self.of(counters[self.loop])

    def of(self, counter: Any) -> Any:
        """Whether it holds for a counter, or for each of an array of them."""
        return COMPARISONS[self.comparison](counter % self.every if self.every else counter, self.value)

    def varies(self, trip: int) -> bool:
        """Whether it can hold for some counters of a loop and for others not, as far as its number says."""
        if self.comparison == "in":
            return trip <= MOST_LISTED and 0 < self.value < (1 << trip) - 1
        return 0 <= self.value < trip

    def __str__(self) -> str:
        remainder = f" mod {self.every}" if self.every else ""
        return f"d{self.loop}{remainder} {self.comparison} {self.value}{_following(self)}"


@irdl_attr_definition
class GuardAttr(Data[tuple[Term, ...]]):
    """A conjunction of terms; the empty one always holds: `#nest.when<d0 eq 0, d2 eq 7>`."""

    name = "nest.when"

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.data

    def holds(self, counters: Sequence[int]) -> bool:
        return all(term.holds(counters) for term in self.data)

    def ends(self, trips: Sequence[int]) -> tuple[list[int], list[int]]:
        """The least and the largest counter of each loop among the iterations in which it may hold."""
        low, high = [0] * len(trips), [trip - 1 for trip in trips]
        for term in self.data:
            if term.every:
                continue
            least, most = low[term.loop], high[term.loop]
            match term.comparison:
                case "eq":
                    least = most = term.value
                case "ge":
                    least = max(least, term.value)
                case "le":
                    most = min(most, term.value)
                case "in":
                    least, most = (term.value & -term.value).bit_length() - 1, term.value.bit_length() - 1
                case _:
                    pass
            low[term.loop], high[term.loop] = least, most
        return low, high

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Term, ...]:
        def term() -> Term:
            dim = parser.parse_identifier()
            if not re.fullmatch("d[0-9]+", dim):
                parser.raise_error(f"a guard compares a loop counter such as d0 with a constant, not {dim}")
            every = parser.parse_integer() if parser.parse_optional_keyword("mod") else 0
            comparison = parser.parse_keyword_in(COMPARISONS, "a guard compares a loop counter with a constant")
            value = parser.parse_integer()
            return Term(int(dim[1:]), comparison, value, every, parse_count(parser), parse_count(parser, "of"))

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, term))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(str(t) for t in self.data))


ALWAYS = GuardAttr(())


@dataclass(frozen=True)
class Loop:
    """One loop of a nest: a name for people, and its trip count.

    With `count` the trips follow from lengths that are given at each call, and `trip` is how many there are at most.
    With `law` that is what they followed from: `trip` is how many there are at one of the lengths.
    """

    name: str
    trip: int
    count: ByLength | None = None
    law: ByLength | None = None

    @property
    def number(self) -> ByLength:
        """The trips at all lengths."""
        return self.count or self.law or ByLength((), self.trip)

    def __str__(self) -> str:
        return f"{self.name}: {self.trip}{_following(self)}"


def _following(one: Loop | Term) -> str:
    return f" as {one.count}" if one.count else f" of {one.law}" if one.law else ""


@irdl_attr_definition
class LoopsAttr(Data[tuple[Loop, ...]]):
    """The loops of a nest, outermost first: `#nest.loops<k: 4, j: 8 as 2 * seq>`."""

    name = "nest.loops"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Loop, ...]:
        def loop() -> Loop:
            name = parser.parse_identifier()
            parser.parse_punctuation(":")
            return Loop(name, parser.parse_integer(), parse_count(parser), parse_count(parser, "of"))

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, loop))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))


def ends_of(address: AffineMap, low: Sequence[int], high: Sequence[int]) -> tuple[list[int], list[int]]:
    """The least and the largest that each result of an affine map is between two corners of the iterations."""
    origin = [0] * len(low)
    base = address.eval(origin, [])
    least, most = list(base), list(base)
    for d in range(len(low)):
        step = address.eval([*origin[:d], 1, *origin[d + 1 :]], [])
        for r, (one, start) in enumerate(zip(step, base, strict=True)):
            by = one - start
            first, last = (high[d], low[d]) if by < 0 else (low[d], high[d])
            least[r], most[r] = least[r] + by * first, most[r] + by * last
    return least, most
