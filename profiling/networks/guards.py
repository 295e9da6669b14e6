"""Guards on loop counters as patterns of iterations: a term looks at one loop, so each loop keeps runs of counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.compiler.schedule import PatternLevel, TokenPattern

GuardComparison = Literal["==", "!=", ">=", "<=", "mod"]
COMPARISONS: tuple[GuardComparison, ...] = ("==", "!=", ">=", "<=", "mod")
CounterRuns = tuple[tuple[int, int], ...]
"""Counters as (first, length)."""


@dataclass(frozen=True)
class Guard:
    """The counter of loop `loop` compared with a value; for "mod", its remainder."""

    loop: int
    comparison: GuardComparison
    value: int
    modulus: int = 1


def pattern_of(trips: Sequence[int], terms: Sequence[Guard] = ()) -> TokenPattern:
    """The iterations in which all terms hold."""
    stride, levels = 1, list[PatternLevel]()
    for loop in reversed(range(len(trips))):
        runs: CounterRuns = ((0, trips[loop]),)
        for term in terms:
            if term.loop == loop and term.comparison != "mod":
                runs = _common(runs, _kept(term, trips))
        remainders = [term for term in terms if term.loop == loop and term.comparison == "mod"]
        if len(remainders) == 1 and len(runs) == 1:
            levels += _strided(runs[0], remainders[0], stride)
        else:
            for term in remainders:
                runs = _residue(runs, term)
            levels.append(PatternLevel(runs, stride))
        stride *= trips[loop]
    return TokenPattern(tuple(reversed(levels)))


def _strided(run: tuple[int, int], term: Guard, stride: int) -> list[PatternLevel]:
    """One run's counters with a remainder, as a first one and steps of the modulus from there."""
    first, end = run[0] + (term.value - run[0]) % term.modulus, run[0] + run[1]
    count = -(-(end - first) // term.modulus) if first < end and term.value < term.modulus else 0
    if count == 0:
        return [PatternLevel((), stride)]
    return [PatternLevel(((first, 1),), stride), PatternLevel(((0, count),), stride * term.modulus)]


def _kept(term: Guard, trips: Sequence[int]) -> CounterRuns:
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


def _residue(runs: CounterRuns, term: Guard) -> CounterRuns:
    """Of each run the counters with the term's remainder."""
    value, modulus = term.value, term.modulus
    if value >= modulus:
        return ()
    if modulus == 1:
        return runs
    return tuple((x, 1) for first, n in runs for x in range(first + (value - first) % modulus, first + n, modulus))


def _common(one: CounterRuns, other: CounterRuns) -> CounterRuns:
    """The counters that lie in both."""
    pairs = ((max(a, b), min(a + n, b + m)) for a, n in one for b, m in other)
    return tuple((first, end - first) for first, end in pairs if end > first)
