"""Products for which no DSP is left: those of a few kernels are built of LUTs, so that all others keep their pace.

Lanes come in steps. Where pairs of products at the pace that suits a model take a few more DSPs than there are, the
next slower pace may take half of them, and windows in parts with all that puts these together. One small kernel
without DSPs costs less than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FABRIC = "fabric"
_MOST = 0.05
"""Of the DSPs that may be used: of more, LUTs around the operators are what is short next."""


@dataclass(frozen=True)
class Spillable:
    """A kernel whose products need no DSP: how many that saves."""

    layer: str
    saved: int


def may_be_short(limit: int) -> int:
    """How many DSPs more than there are may be made up for by LUTs."""
    return int(limit * _MOST)


def spilled(short: int, kernels: Sequence[Spillable]) -> frozenset[str] | None:
    """The fewest products that save so many DSPs: the smallest kernel that does alone, else the largest and more.

    None where all of them do not.
    """
    left, found = sorted(kernels, key=lambda one: one.saved), set[str]()
    while short > 0:
        if not left:
            return None
        place = next((n for n, one in enumerate(left) if one.saved >= short), -1)
        one = left.pop(place)
        found.add(one.layer)
        short -= one.saved
    return frozenset(found)
