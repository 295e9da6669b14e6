"""Guards on loop counters as patterns of iterations: a term looks at one loop, so each loop keeps runs of counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from compiler.schedule import Level, TokenPattern

Comparison = Literal["==", "!=", ">=", "<=", "mod"]
COMPARISONS: tuple[Comparison, ...] = ("==", "!=", ">=", "<=", "mod")
Runs = tuple[tuple[int, int], ...]
"""Counters as (first, length)."""


@dataclass(frozen=True)
class Term:
    """The counter of loop `loop` compared with a value; for "mod", its remainder."""

    loop: int
    comparison: Comparison
    value: int
    modulus: int = 1


def pattern_of(trips: Sequence[int], terms: Sequence[Term] = ()) -> TokenPattern:
    """The iterations in which all terms hold."""
    runs: list[Runs] = [((0, trip),) for trip in trips]
    for term in terms:
        own = runs[term.loop]
        runs[term.loop] = _residue(own, term) if term.comparison == "mod" else _common(own, _kept(term, trips))
    stride, levels = 1, list[Level]()
    for own, trip in zip(reversed(runs), reversed(trips), strict=True):
        levels.append(Level(own, stride))
        stride *= trip
    return TokenPattern(tuple(reversed(levels)))


def _kept(term: Term, trips: Sequence[int]) -> Runs:
    value, trip = term.value, trips[term.loop]
    match term.comparison:
        case "==":
            return ((value, 1),)
        case ">=":
            return ((value, trip - value),)
        case "<=":
            return ((0, value + 1),)
        case _:
            return ((0, value), (value + 1, trip - value - 1))


def _residue(runs: Runs, term: Term) -> Runs:
    """Of each run the counters with the term's remainder."""
    value, modulus = term.value, term.modulus
    if value >= modulus:
        return ()
    if modulus == 1:
        return runs
    return tuple((x, 1) for first, n in runs for x in range(first + (value - first) % modulus, first + n, modulus))


def _common(one: Runs, other: Runs) -> Runs:
    """The counters that lie in both."""
    pairs = ((max(a, b), min(a + n, b + m)) for a, n in one for b, m in other)
    return tuple((first, end - first) for first, end in pairs if end > first)
