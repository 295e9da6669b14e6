"""Whole numbers that depend on loop counters, and what may be asked of them: all that is known before a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm


@dataclass(frozen=True)
class Affine:
    """A constant plus counters of loops, by the loops' numbers, times whole numbers."""

    const: int
    terms: tuple[tuple[int, int], ...] = ()

    @staticmethod
    def counter(loop: int, step: int = 1, start: int = 0) -> Affine:
        return Affine(start, ((loop, step),))

    def plus(self, other: Affine, times: int = 1) -> Affine:
        found = dict(self.terms)
        for loop, factor in other.terms:
            found[loop] = found.get(loop, 0) + times * factor
        return Affine(self.const + times * other.const, tuple(sorted((k, v) for k, v in found.items() if v)))

    def times(self, factor: int) -> Affine:
        return Affine(self.const * factor, tuple((k, v * factor) for k, v in self.terms if factor))

    def divided(self, by: int) -> Affine | None:
        """Exactly; None where something is left."""
        if by == 0 or self.const % by or any(v % by for _, v in self.terms):
            return None
        return Affine(self.const // by, tuple((k, v // by) for k, v in self.terms))

    def extremes(self, trips: Mapping[int, int], tests: Tests = ()) -> tuple[int, int]:
        """The least and the largest of its values, in rounds that pass tests."""
        ends = [(v * first, v * last) for k, v in self.terms for first, last in [_passed_ends(k, trips[k], tests)]]
        return self.const + sum(min(e) for e in ends), self.const + sum(max(e) for e in ends)

    def at(self, counters: Mapping[int, int]) -> int:
        return self.const + sum(v * counters[k] for k, v in self.terms)


Number = int | Affine


def as_affine(value: Number) -> Affine:
    return value if isinstance(value, Affine) else Affine(int(value))


def plain(value: Affine) -> Number:
    """A plain number where no counter is left."""
    return value if value.terms else value.const


@dataclass(frozen=True)
class Test:
    """One comparison of a loop's counter with a constant: eq, ne, ge, le; of its remainder by `every`, if set."""

    loop: int
    comparison: str
    value: int
    every: int = 0

    def holds(self, counter: int) -> bool:
        number = counter % self.every if self.every else counter
        match self.comparison:
            case "eq":
                return number == self.value
            case "ne":
                return number != self.value
            case "ge":
                return number >= self.value
            case _:
                return number <= self.value

    @property
    def opposite(self) -> Test:
        match self.comparison:
            case "eq":
                return Test(self.loop, "ne", self.value, self.every)
            case "ne":
                return Test(self.loop, "eq", self.value, self.every)
            case "ge":
                return Test(self.loop, "le", self.value - 1, self.every)
            case _:
                return Test(self.loop, "ge", self.value + 1, self.every)


@dataclass(frozen=True)
class Remainder:
    """A loop's counter, plus a constant, by a whole number: what a test of every n-th round is made of."""

    loop: int
    offset: int
    by: int


Tests = tuple[Test, ...]
"""All of them hold."""
_COUNTED = 1 << 12


def _passed_ends(loop: int, trip: int, tests: Tests) -> tuple[int, int]:
    """The first and the last round of a loop that may pass tests; all of them where none does."""
    first, last = 0, trip - 1
    own = [one for one in tests if one.loop == loop and not one.every]
    for one in sorted(own, key=lambda one: one.comparison == "ne"):
        first += one.comparison == "ne" and one.value == first
        last -= one.comparison == "ne" and one.value == last
        first = max(first, one.value) if one.comparison in ("eq", "ge") else first
        last = min(last, one.value) if one.comparison in ("eq", "le") else last
    return (first, last) if first <= last else (0, trip - 1)


def rounds_of(start: int, stop: int, step: int) -> int:
    """How many rounds range() makes, also where they are more than Python counts."""
    return max(0, -((start - stop) // step) if step > 0 else -((stop - start) // -step))


def rounds_within(tests: Tests, trip: int) -> int:
    """How many of a loop's rounds pass tests that all ask its counter: counted in few of them, however long it is."""
    if trip <= _COUNTED:
        return sum(all(test.holds(counter) for test in tests) for counter in range(trip))
    first = max([0, *(t.value for t in tests if t.comparison in ("eq", "ge") and not t.every)])
    last = min([trip - 1, *(t.value for t in tests if t.comparison in ("eq", "le") and not t.every)])
    if last < first:
        return 0
    every = tuple(test for test in tests if test.every)
    left_out = {test.value for test in tests if test.comparison == "ne" and not test.every}
    missing = sum(first <= v <= last and all(test.holds(v) for test in every) for v in left_out)
    return _passing(every, last + 1) - _passing(every, first) - missing


def _passing(every: Tests, count: int) -> int:
    """How many of the first so many numbers pass tests of their remainders."""
    period = lcm(*(test.every for test in every))
    whole, rest = divmod(count, period)
    each, part = 0, 0
    exact = max((test for test in every if test.comparison == "eq"), key=lambda test: test.every, default=None)
    numbers = range(min(period, count)) if exact is None else range(exact.value, min(period, count), exact.every)
    for number in numbers:
        if all(test.holds(number) for test in every):
            each += 1
            part += number < rest
    return whole * each + part


def compared(left: Number, operator: str, right: Number, trips: Mapping[int, int]) -> bool | Tests | None:
    """`left` operator `right` over the loops of these trips; None where it is no test of one counter."""
    difference = as_affine(left).plus(as_affine(right), -1)
    if not difference.terms:
        return _settled(difference.const, operator)
    low, high = difference.extremes(trips)
    if low == high:
        return _settled(low, operator)
    if len(difference.terms) != 1:
        return _ends(operator, low, high)
    ((loop, factor),) = difference.terms
    trip, const = trips[loop], difference.const
    if operator in ("==", "!="):
        hit = -const % factor == 0 and 0 <= -const // factor < trip
        if not hit:
            return operator == "!="
        value = -const // factor
        if trip == 1:
            return operator == "=="
        return (Test(loop, "eq" if operator == "==" else "ne", value),)
    if operator in ("<", ">"):
        const, operator = (const + 1, "<=") if operator == "<" else (const - 1, ">=")
    if factor < 0:
        factor, const, operator = -factor, -const, ">=" if operator == "<=" else "<="
    if operator == "<=":
        value = -const // factor
        return value >= trip - 1 if value >= trip - 1 or value < 0 else (Test(loop, "le", value),)
    value = -(const // factor)
    return value <= 0 if value <= 0 or value > trip - 1 else (Test(loop, "ge", value),)


def compared_remainder(left: Remainder, operator: str, right: int, trips: Mapping[int, int]) -> bool | Tests | None:
    """The same for the remainder of a counter."""
    if operator not in ("==", "!="):
        return None
    value = (right - left.offset) % left.by
    if not 0 <= right < left.by:
        return operator == "!="
    if value >= trips[left.loop]:
        return operator == "!="
    return (Test(left.loop, "eq" if operator == "==" else "ne", value, left.by),)


def _settled(number: int, operator: str) -> bool:
    answers = {"==": number == 0, "!=": number != 0, "<": number < 0, "<=": number <= 0, ">": number > 0}
    return answers.get(operator, number >= 0)


def _ends(operator: str, low: int, high: int) -> bool | None:
    """Whether a comparison of several counters always, or never, holds."""
    always = {"<": high < 0, "<=": high <= 0, ">": low > 0, ">=": low >= 0, "!=": low > 0 or high < 0, "==": False}
    never = {"<": low >= 0, "<=": low > 0, ">": high <= 0, ">=": high < 0, "==": low > 0 or high < 0, "!=": False}
    return True if always[operator] else False if never[operator] else None
