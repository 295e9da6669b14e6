"""More lanes for kernels that run in turn, from what a common pace leaves of a device.

Lanes divide dims, so at a pace all large kernels have twice as many at once, or none has: up to half of what may be
used is left. It goes to one kernel after the other, to whoever saves most cycles for it; kernels of one form, which
mostly run at the same time, get more together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.platforms import Resources
from penstock.dse.lanes.factors import Lanes

Alongside = Callable[[Mapping[str, Lanes], float], Mapping[str, Lanes]]
AreaOf = Callable[[str, Lanes], tuple[int, int, int]]
"""DSPs, LUTs and counted lanes of a kernel with these lanes."""


@dataclass(frozen=True)
class Alike:
    """Leading kernels of one form. `alongside` says the lanes of what goes along, if they are so many times as fast."""

    layers: tuple[str, ...]
    options: tuple[Lanes, ...]
    """The fastest first."""
    alongside: Alongside


@dataclass
class _Offer:
    lanes: dict[str, Lanes]
    added: tuple[int, int, int]
    worth: float


def with_leftover(
    found: Mapping[str, Lanes], kinds: Sequence[Alike], area: AreaOf, limits: Resources, most_lanes: int | None
) -> dict[str, Lanes]:
    """Lanes as they were found, and more while they are within the limits."""
    lanes, faster = dict(found), [1.0] * len(kinds)
    taken = [sum(one) for one in zip(*(area(layer, one) for layer, one in lanes.items()), strict=True)]
    bounds = (limits.dsp, limits.lut, most_lanes or sum(1 << 20 for _ in lanes))

    def offer(place: int) -> _Offer | None:
        kind = kinds[place]
        now = lanes[kind.layers[0]]
        better = [one for one in kind.options if one.cycles < now.cycles]
        if not better:
            return None
        more = dict.fromkeys(kind.layers, better[-1])
        more |= kind.alongside({**lanes, **more}, faster[place] * now.cycles / better[-1].cycles)
        before, after = ([area(layer, which[layer]) for layer in more] for which in (lanes, more))
        dsp, lut, count = (
            sum(a) - sum(b) for a, b in zip(zip(*after, strict=True), zip(*before, strict=True), strict=True)
        )
        share = max(dsp, 0) / max(1, limits.dsp) + max(lut, 0) / max(1, limits.lut)
        return _Offer(more, (dsp, lut, count), (now.cycles - better[-1].cycles) / max(share, 1e-9))

    offers = [offer(place) for place in range(len(kinds))]
    while any(offers):
        place = max(range(len(kinds)), key=lambda n: -1.0 if (one := offers[n]) is None else one.worth)
        best = offers[place]
        assert best is not None
        if any(t + a > b for t, a, b in zip(taken, best.added, bounds, strict=True)):
            offers[place] = None
            continue
        first = kinds[place].layers[0]
        faster[place] *= lanes[first].cycles / best.lanes[first].cycles
        taken = [t + a for t, a in zip(taken, best.added, strict=True)]
        lanes |= best.lanes
        offers[place] = offer(place)
    return lanes
