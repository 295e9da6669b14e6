"""When a guarded access happens: guards on loop counters, turned into a periodic pattern of iterations.

Each term of a guard looks at one loop, so the iterations where a guard holds are a product of counter sets,
one a loop. A pattern keeps those sets as runs; the n-th token's iteration follows by mixed-radix arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from penstock.compiler.dialects.nest import GuardAttr, Term


@dataclass(frozen=True)
class PatternLevel:
    """The counters of one loop at which the access happens, as runs of (first, length)."""

    runs: tuple[tuple[int, int], ...]
    stride: int
    """Iterations from one counter to the next."""

    @property
    def count(self) -> int:
        return sum(length for _, length in self.runs)

    def counter(self, index: int) -> int:
        """The index-th counter at which the access happens."""
        for first, length in self.runs:
            if index < length:
                return first + index
            index -= length
        raise IndexError(index)


@dataclass(frozen=True)
class TokenPattern:
    """All iterations of an access, as one level a loop, outermost first."""

    levels: tuple[PatternLevel, ...]

    @staticmethod
    def of(guard: GuardAttr, trips: Sequence[int]) -> TokenPattern:
        stride, levels = 1, list[PatternLevel]()
        for loop in reversed(range(len(trips))):
            terms = [t for t in guard.terms if t.loop == loop]
            runs = ((0, trips[loop]),)
            for term in terms:
                single = term.every or term.comparison == "in"
                runs = _every(runs, term) if single else _narrow(runs, term.comparison, term.value)
            levels.append(PatternLevel(runs, stride))
            stride *= trips[loop]
        return TokenPattern(tuple(reversed(levels)))

    @cached_property
    def count(self) -> int:
        return prod(level.count for level in self.levels)

    def iteration(self, token: int) -> int:
        """The iteration in which the token-th access happens."""
        position = 0
        for level in reversed(self.levels):
            token, index = divmod(token, level.count)
            position += level.counter(index) * level.stride
        return position

    @property
    def first(self) -> int:
        return self.iteration(0)

    @property
    def last(self) -> int:
        return self.iteration(self.count - 1)


def _narrow(runs: tuple[tuple[int, int], ...], comparison: str, value: int) -> tuple[tuple[int, int], ...]:
    """The part of the runs where the comparison with `value` holds."""
    low, high = {
        "eq": (value, value), "ge": (value, None), "le": (0, value), "ne": (None, None),
    }[comparison]  # fmt: skip
    kept: list[tuple[int, int]] = []
    for first, length in runs:
        last = first + length - 1
        if low is None:
            kept += [(first, min(last, value - 1)), (max(first, value + 1), last)]
        else:
            kept.append((max(first, low), last if high is None else min(last, high)))
    return tuple((first, last - first + 1) for first, last in kept if last >= first)


def _every(runs: tuple[tuple[int, int], ...], term: Term) -> tuple[tuple[int, int], ...]:
    """The part of the runs where a comparison of remainders holds, or a list does: single counters, mostly."""
    kept: list[tuple[int, int]] = []
    for counter in (first + i for first, length in runs for i in range(length)):
        if term.of(counter):
            if kept and sum(kept[-1]) == counter:
                kept[-1] = (kept[-1][0], kept[-1][1] + 1)
            else:
                kept.append((counter, 1))
    return tuple(kept)
