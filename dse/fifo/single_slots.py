"""One slot for a FIFO of wide tokens that come seldom: a second one would only wait with it.

Two slots let tokens follow each other every cycle. Where whole rows are one token, or results leave once behind a long
sum, none does; each slot then is as wide as many FIFOs together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from penstock.dse.fifo.cost import total_bits
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.measure import MeasureDepths

_SHARE = 1024
"""Of all bits that kernels hand over: what a slot must be for a simulation to be worth it."""


def with_single_slots(
    measure: MeasureDepths,
    depths: Mapping[str, int],
    bits: Mapping[str, int],
    *,
    allowed: tuple[int, ...],
    exhausted: Callable[[], bool],
    ahead: Collection[str],
) -> dict[str, int]:
    """The same depths with one slot instead of two where that makes no frame end later, wide tokens first.

    What loads fetch `ahead` keeps its slots: it is to come without a gap.
    """
    own = {name: depth for name, depth in depths.items() if name not in ahead}
    least = total_bits(own, bits) // _SHARE
    wide = [name for name, depth in own.items() if depth == LEAST_DEPTH and bits[name] > least]
    wide.sort(key=lambda name: -bits[name])
    return {**depths, **as_singles(wide, lambda singles: measure({**depths, **singles}).within(allowed), exhausted)}


def two_slots(depths: Mapping[str, int], kept: Collection[str]) -> dict[str, int]:
    """The same depths with no single slots but those that are to be kept."""
    return {name: depth if name in kept else max(depth, LEAST_DEPTH) for name, depth in depths.items()}


def as_singles(
    names: Sequence[str], hold: Callable[[Mapping[str, int]], bool], exhausted: Callable[[], bool]
) -> dict[str, int]:
    """Which of these may have one slot, in groups that are halved where they may not; all found do so together."""
    found, pending = dict[str, int](), [list(names)]
    while pending and not exhausted():
        group = pending.pop()
        if group and hold(singles := found | dict.fromkeys(group, 1)):
            found = singles
        elif len(group) > 1:
            middle = len(group) // 2
            pending += [group[middle:], group[:middle]]
    return found
