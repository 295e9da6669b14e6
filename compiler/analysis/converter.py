"""The least buffer that turns one stream order into another (StreamTensor, Algorithm 1, derived anew).

Both orders are split into a shared prefix of outer loops and what differs inside. For every trip of the
shared loops one block passes from a writer to a reader: the block covers what the inner loops touch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd, lcm, prod

from penstock.compiler.analysis.live_range import live_maximum
from penstock.compiler.analysis.walks import LoopOf, SliceWalk, covers, reach, read_walk
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.errors import PenstockError

__all__ = ["ConverterPlan", "LoopOf", "plan_converter"]


@dataclass(frozen=True)
class ConverterPlan:
    """`shared` loops hand over a block of shape `block`; `source` and `target` are the loops inside."""

    shared: tuple[LoopOf, ...]
    source: tuple[LoopOf, ...]
    target: tuple[LoopOf, ...]
    block: tuple[int, ...]
    source_element: tuple[int, ...]
    target_element: tuple[int, ...]

    @property
    def block_elements(self) -> int:
        """What one block holds."""
        return prod(self.block)

    @property
    def ping_pong_elements(self) -> int:
        """What the buffer holds when one block is written while the other is read."""
        return 2 * self.block_elements

    @cached_property
    def live_max(self) -> int:
        """The largest number of elements alive at once when both orders run as early as possible."""
        apart = 0  # what one trip of these loops moves has nothing to do with the next trip
        for position, (_, step, dim) in enumerate(self.shared):
            if dim is None or self._reach(self.shared[position + 1 :] + self.source, dim) > step:
                break
            apart += 1
        return self._live_inside(apart)

    def _live_inside(self, skip: int) -> int:
        outside = self.shared[skip:]
        return live_maximum(
            SliceWalk(self.source_element, outside + self.source), SliceWalk(self.target_element, outside + self.target)
        )

    def _reach(self, loops: tuple[LoopOf, ...], dim: int) -> int:
        return self.source_element[dim] + reach(loops, dim)


def plan_converter(source: ITensorType, target: ITensorType) -> ConverterPlan:
    """Extend the shared prefix for as long as both orders cut the data into the same blocks."""
    sent, wanted = read_walk(source), read_walk(target)
    _check_covered(sent, wanted, source, target)
    shared: list[LoopOf] = []
    while sent.loops and wanted.loops:
        common = _common(sent.loops[0], wanted.loops[0])
        if common is None:
            break
        inside = (
            SliceWalk(sent.element, _rest(sent.loops, common)),
            SliceWalk(wanted.element, _rest(wanted.loops, common)),
        )
        if common[2] is not None and not covers(*inside, common[2]):
            break
        shared.append(common)
        sent, wanted = inside
    return ConverterPlan(tuple(shared), sent.loops, wanted.loops, sent.extents, sent.element, wanted.element)


def _common(first: LoopOf, second: LoopOf) -> LoopOf | None:
    """The finest loop that is the outer part of both, each split in two where need be."""
    (trip, step, dim), (other_trip, other_step, other) = first, second
    if dim != other:
        return None
    if dim is None:
        trips, coarse = gcd(trip, other_trip), 1
    elif trip * step == other_trip * other_step:
        coarse = lcm(step, other_step)
        trips = trip * step // coarse
    else:
        return None
    return (trips, coarse, dim) if trips > 1 else None


def _rest(loops: tuple[LoopOf, ...], common: LoopOf) -> tuple[LoopOf, ...]:
    """What is left of the loops when the outer part of the first is taken off."""
    trip, step, dim = loops[0]
    trips = trip // common[0]
    return loops[1:] if trips == 1 else ((trips, step, dim), *loops[1:])


def _check_covered(sent: SliceWalk, wanted: SliceWalk, source: ITensorType, target: ITensorType) -> None:
    for dim in range(len(sent.element)):
        if not covers(sent, wanted, dim):
            raise PenstockError(
                code="bad-order", what=f"the stream leaves out elements of dim {dim} that its reader wants",
                where=f"{source} to {target}", limit="a converter changes the order, not the data",
                hint="steps larger than the slice leave gaps: use steps of at most the slice's size",
            )  # fmt: skip
