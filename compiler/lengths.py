"""Sizes that each call says, and numbers that follow from them: `2 * seq + 1`.

A model that takes `seq=1..64` is one program, whose tensors are as large as at 64, and one accelerator, whose loops
turn as often as the call's length asks for. Hardware counts a length in steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.compiler.errors import PenstockError

_HINT = "say a range of a size that the model's reference takes, such as seq=1..64, or seq=16..64/16 for multiples"


@dataclass(frozen=True)
class Length:
    """A size that each call says: any multiple of `step` from `low` to `high`."""

    name: str
    low: int
    high: int
    step: int = 1

    @property
    def least(self) -> int:
        """In steps."""
        return -(-self.low // self.step)

    @property
    def most(self) -> int:
        return self.high // self.step

    @staticmethod
    def parse(text: str) -> Length:
        """`seq=1..64`, `seq=16..64/16`."""
        found = re.fullmatch(r"([A-Za-z_]\w*)=(\d{1,9})\.\.(\d{1,9})(?:/(\d{1,9}))?", text.strip(), re.ASCII)
        if found is None:
            raise PenstockError(
                code="bad-length", what=f"{text[:60]!r} is no range of lengths", where="dim", hint=_HINT
            )
        low, high, step = int(found[2]), int(found[3]), int(found[4] or 1)
        wrong = None
        if low < 1 or step < 1:
            wrong = "lengths and steps are at least 1"
        elif low >= high:
            wrong = f"{low} is not below {high}"
        elif low % step or high % step:
            wrong = f"{low} and {high} are not both multiples of {step}"
        if wrong is not None:
            raise PenstockError(code="bad-length", what=f"{text!r}: {wrong}", where="dim", hint=_HINT)
        return Length(found[1], low, high, step)

    def __str__(self) -> str:
        return f"{self.name}={self.low}..{self.high}" + (f"/{self.step}" if self.step > 1 else "")


def parse_lengths(texts: Sequence[str]) -> tuple[Length, ...]:
    """Ranges of several sizes, each of which is said once."""
    found = tuple(Length.parse(text) for text in texts)
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise PenstockError(code="bad-length", what=f"{twice!r} is given twice", where="dim", hint="give it once")
    return found


@dataclass(frozen=True)
class ByLength:
    """`offset` and so many times each length. `factors` are by the names of lengths, and none of them is 0."""

    factors: tuple[tuple[str, int], ...]
    offset: int = 0

    @staticmethod
    def of(factors: Mapping[str, int], offset: int = 0) -> ByLength:
        return ByLength(tuple((name, factor) for name, factor in sorted(factors.items()) if factor), offset)

    def at(self, lengths: Mapping[str, int]) -> int:
        return self.offset + sum(factor * lengths[name] for name, factor in self.factors)

    def ends(self, lengths: Sequence[Length]) -> tuple[int, int]:
        """The least and the largest that it is, of lengths in steps."""
        known = {one.name: one for one in lengths}
        pairs = [(factor * known[name].least, factor * known[name].most) for name, factor in self.factors]
        return self.offset + sum(min(pair) for pair in pairs), self.offset + sum(max(pair) for pair in pairs)

    def plus(self, number: int) -> ByLength:
        return ByLength(self.factors, self.offset + number)

    def times(self, number: int) -> ByLength:
        return ByLength.of({name: factor * number for name, factor in self.factors}, self.offset * number)

    def add(self, other: ByLength) -> ByLength:
        mine, theirs = dict(self.factors), dict(other.factors)
        return ByLength.of({n: mine.get(n, 0) + theirs.get(n, 0) for n in mine | theirs}, self.offset + other.offset)

    def text(self, names: Mapping[str, str] | None = None) -> str:
        """As C++, SystemVerilog and the IR write it; `names` says what the lengths are called there."""
        terms = ""
        for name, factor in self.factors:
            spelt = names[name] if names else name
            terms += (" + " if factor > 0 else " - ") if terms else ("" if factor > 0 else "-")
            terms += spelt if abs(factor) == 1 else f"{abs(factor)} * {spelt}"
        if self.offset:
            terms += f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}"
        return terms

    def __str__(self) -> str:
        return self.text()


SizesByLength = tuple[ByLength | None, ...]
"""Of a tensor's dims those that follow from lengths; None for a dim of one size."""


def shape_at(shape: Sequence[int], sizes: SizesByLength, lengths: Mapping[str, int]) -> tuple[int, ...]:
    """The shape that it is at these lengths."""
    return tuple(n if size is None else size.at(lengths) for n, size in zip(shape, sizes, strict=True))


def sizes_json(sizes: SizesByLength) -> list[Any]:
    """Dim by dim; null for one of one size."""
    return [None if size is None else {"factors": dict(size.factors), "offset": size.offset} for size in sizes]


def sizes_of(document: Sequence[Any]) -> SizesByLength:
    return tuple(None if one is None else ByLength.of(one["factors"], one["offset"]) for one in document)
