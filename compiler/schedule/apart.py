"""Accesses of one iteration that share a port, each in a slot of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from penstock.compiler.analysis.extents import Extents
from penstock.compiler.dialects.nest import GuardAttr


def fall_together(
    first: tuple[int, GuardAttr], second: tuple[int, GuardAttr], ii: int, front: int, extents: Extents
) -> bool:
    """Whether two accesses, each in its stage, may meet in one cycle.

    What is behind the front runs on while the front waits for a channel: slots of the two come to lie anywhere then.
    """
    (a, when), (b, other) = first, second
    if a == b and extents.exclusive(when, other):
        return False
    return (a - b) % ii == 0 or (a <= front) != (b <= front)


def stages_apart(accesses: Sequence[tuple[int, GuardAttr]], ii: int, front: int, extents: Extents) -> list[int] | None:
    """The earliest stages, none before its own, in which no two fall together; None if there are too few slots."""
    if not any(fall_together(a, b, ii, front, extents) for a, b in combinations(accesses, 2)):
        return [stage for stage, _ in accesses]
    for least in (0, front + 1):
        taken: list[tuple[int, GuardAttr]] = []
        for first, when in accesses:
            first = max(first, least)
            free = (
                stage for stage in range(first, first + ii)
                if not any(fall_together((stage, when), one, ii, front, extents) for one in taken)
            )  # fmt: skip
            if (found := next(free, None)) is None:
                break
            taken.append((found, when))
        else:
            return [stage for stage, _ in taken]
    return None
