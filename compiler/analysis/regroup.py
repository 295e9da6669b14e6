"""Converters between slices of other sizes in the same order: a ring of the last tokens, and one nest.

Nine channels at a time that become sixteen: neither size is a part of the other, so a block would be what both divide,
twice over. Here the faster side sets the pace, a slot knows as many earlier tokens as the larger slice reaches back to,
and what leaves is picked from them. The picks repeat with every block, so they are known beforehand: multiplexers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from penstock.compiler.analysis.converter import plan_converter
from penstock.compiler.analysis.walks import LoopOf, read_walk
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.nest_attributes import MOST_LISTED


@dataclass(frozen=True)
class RegroupPlan:
    """Slices of `taken` places along `dim` become slices of `sent`, in blocks of `block`.

    `outer` loops hand over blocks, `inner` ones pass at every place of the dim.
    """

    outer: tuple[LoopOf, ...]
    inner: tuple[LoopOf, ...]
    dim: int
    taken: int
    sent: int
    block: int
    token: tuple[int, ...]
    """The shape of what is taken."""

    @property
    def slots(self) -> int:
        return self.block // min(self.taken, self.sent)

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """The slot in which each slice that is sent leaves: when its last token is there."""
        count = self.block // self.sent
        return tuple(range(count)) if self.sent < self.taken else tuple(
            -(-(one + 1) * self.sent // self.taken) - 1 for one in range(count)
        )  # fmt: skip

    @cached_property
    def _newest(self) -> tuple[int, ...]:
        """The newest token that each slot knows: the one that it takes, or the one before it."""
        if self.sent > self.taken:
            return tuple(range(self.slots))
        return tuple(((slot + 1) * self.sent - 1) // self.taken for slot in range(self.slots))

    @cached_property
    def reads(self) -> int:
        """The slots that take a token, as bits."""
        before = (-1, *self._newest[:-1])
        return sum(1 << slot for slot, (old, new) in enumerate(zip(before, self._newest, strict=True)) if new > old)

    @cached_property
    def writes(self) -> int:
        """The slots that send a slice, as bits."""
        return sum(1 << slot for slot in self._ends)

    @cached_property
    def depth(self) -> int:
        """Tokens before the newest that a slice reaches back to."""
        return max(self._newest[slot] - one * self.sent // self.taken for one, slot in enumerate(self._ends))

    @cached_property
    def picks(self) -> dict[int, int]:
        """Where a slice begins among the tokens that are known, the oldest first, and the slots of which that is so."""
        found: dict[int, int] = {}
        for one, slot in enumerate(self._ends):
            first = one * self.sent - (self._newest[slot] - self.depth) * self.taken
            found[first] = found.get(first, 0) | 1 << slot
        return found

    @property
    def line(self) -> tuple[int, ...]:
        """What one token before the newest takes: all that passes at its places of the dim."""
        return tuple(
            size + sum((trip - 1) * step for trip, step, target in self.inner if target == dim)
            for dim, size in enumerate(self.token)
        )

    @property
    def elements(self) -> int:
        return self.depth * prod(self.line)


def plan_regroup(source: ITensorType, target: ITensorType) -> RegroupPlan | None:
    """The plan, or None where the orders differ in more than the size of their slices along one dim."""
    sent, wanted = read_walk(source), read_walk(target)
    if source == target or not (sent.tiles and wanted.tiles) or sent.extents != wanted.extents:
        return None
    plan = plan_converter(source, target)
    if not plan.source or not plan.target:
        return None
    (trip, taken, dim), (other_trip, given, other) = plan.source[0], plan.target[0]
    inner = plan.source[1:]
    if dim is None or dim != other or inner != plan.target[1:] or any(target in (dim, None) for _, _, target in inner):
        return None
    sizes = [_but(element, dim) for element in (sent.element, wanted.element)]
    whole = sent.element[dim] == taken and wanted.element[dim] == given
    found = RegroupPlan(plan.shared, inner, dim, taken, given, trip * taken, sent.element)
    fits = trip * taken == other_trip * given and taken != given and found.slots <= MOST_LISTED
    return found if whole and fits and sizes[0] == sizes[1] else None


def _but(element: Sequence[int], dim: int) -> tuple[int, ...]:
    return (*element[:dim], *element[dim + 1 :])
