"""Whether loops may change places, be cut into tiles, or be split: by the directions of dependences.

A direction says of each loop whether the second of two accesses comes in a later (1), the same (0) or an earlier (-1)
iteration. A direction is left out only where no two iterations of it can meet the same word: by the greatest common
divisor of the factors, and by the least and largest value of the difference of both indices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import gcd

from penstock.profiling.kernels.explore.accesses import Accesses, CounterSum, WordAccess

LoopDirection = tuple[int, ...]


@dataclass(frozen=True)
class Span:
    """A loop's variable: first, first + step, ..., `trip` values."""

    variable: str
    first: int
    step: int
    trip: int


def directions(body: Accesses, loops: Sequence[Span]) -> set[LoopDirection]:
    """Of all pairs of accesses of which one writes: how their iterations may lie, the earlier first."""
    found: set[LoopDirection] = set()
    for before in body.touched:
        for after in body.touched:
            if before.name == after.name and (before.writes or after.writes) and before.name not in body.declared:
                found |= set(met(before, after, loops))
    return {d for d in found if _later(d)}


def met(before: WordAccess, after: WordAccess, loops: Sequence[Span]) -> Iterator[LoopDirection]:
    """Directions in which two accesses may be of one word. Variables of no loop may have any value."""
    for direction in product((1, 0, -1), repeat=len(loops)):
        if any(d and span.trip < 2 for d, span in zip(direction, loops, strict=True)):
            continue
        if len(before.index) != len(after.index) or all(
            a is None or b is None or _may_be_equal(a, b, loops, direction)
            for a, b in zip(before.index, after.index, strict=True)
        ):
            yield direction


def may_permute(found: set[LoopDirection], order: Sequence[int]) -> bool:
    """Whether every dependence still goes forward when the loops stand in this order."""
    return all(_later(tuple(d[i] for i in order)) for d in found)


def may_tile(found: set[LoopDirection], order: Sequence[int], tiles: Sequence[int]) -> bool:
    """Whether the loops may be cut: those over tiles in this order, each with its points as in the source."""
    for direction in found:
        for parts in product(*(_cut(d, tiles[i]) for i, d in enumerate(direction))):
            whole = (*(parts[i][0] for i in order), *(part[1] for part in parts))
            if not _later(whole):
                return False
    return True


def may_split(first: Accesses, second: Accesses, loops: Sequence[Span]) -> bool:
    """Whether all iterations of the first may come before all of the second."""
    if first.opaque or second.opaque:
        return False
    if first.declared & {access.name for access in second.touched}:
        return False
    for after in first.touched:
        for before in second.touched:
            if before.name == after.name and (before.writes or after.writes) and any(
                _later(d) for d in met(before, after, loops)
            ):  # fmt: skip
                return False
    return True


def _cut(direction: int, tile: int) -> tuple[tuple[int, int], ...]:
    """A loop's direction as that of its tiles and that of the points in them."""
    if tile <= 1:
        return ((direction, 0),)
    if direction == 0:
        return ((0, 0),)
    return ((direction, -1), (direction, 0), (direction, 1), (0, direction))


def _later(direction: LoopDirection) -> bool:
    return next((d for d in direction if d), 0) > 0


def _may_be_equal(a: CounterSum, b: CounterSum, loops: Sequence[Span], direction: LoopDirection) -> bool:
    """Whether a, in an iteration, and b, in one that lies in this direction from it, can be the same number."""
    low = high = a.base - b.base
    steps: list[int] = []
    names = {span.variable for span in loops}
    if any(name not in names for form in (a, b) for name in form.factors):
        return True
    for span, way in zip(loops, direction, strict=True):
        f, g = a.factors.get(span.variable, 0), b.factors.get(span.variable, 0)
        base = (f - g) * span.first
        f, g = f * span.step, g * span.step
        last = span.trip - 1
        if way == 0:
            corners = [(0, 0), (last, last)]
            steps.append(f - g)
        else:
            corners = [(0, 1), (0, last), (last - 1, last)]
            corners = [(j, i) for i, j in corners] if way < 0 else corners
            steps += [f, g]
        values = [f * i - g * j for i, j in corners]
        low, high = low + base + min(values), high + base + max(values)
    if low > 0 or high < 0:
        return False
    base = a.base - b.base + sum(
        (a.factors.get(s.variable, 0) - b.factors.get(s.variable, 0)) * s.first for s in loops
    )  # fmt: skip
    divisor = gcd(*steps) if steps else 0
    return base % divisor == 0 if divisor else base == 0
