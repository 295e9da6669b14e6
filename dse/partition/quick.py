"""Whether a design's tasks can be divided among the dies, each on one: answered within the time that a search has.

A greedy walk with every memory built the usual way finds a division, or a bounded exact search over the tasks' logic
alone shows that there is none: memories may be built otherwise and FIFOs become shallower, but logic stays. What
neither decides counts as divisible. So nothing is refused here that the exact partition accepts; wires are not looked
at.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.compiler.platforms import Platform, Resources, total
from penstock.dse.partition.site import site_of
from penstock.profiling.model import DesignFigures
from penstock.profiling.network import TaskNetwork

MOST_STEPS = 400
"""Of the exact search: large tasks are tried first, and a few dozen steps show that these do not fit."""

Amounts = tuple[float, ...]


class DieCheck:
    """The dies of one platform, asked about many designs."""

    def __init__(self, platform: Platform) -> None:
        self._limits = [amounts_of(limits) for limits in site_of(platform).limits.values()]
        self._counted = [(place, limit) for place, limit in enumerate(self._limits[0]) if limit]

    def fullest(self, network: TaskNetwork, figures: DesignFigures) -> float | None:
        """The share of the fullest die's limits in a division that is found at once; None of a single die.

        It is above 1 only if no division is within the limits; then the share is of logic alone, and another division
        may exceed them by less. It is 1 where neither a division nor its absence was found.
        """
        if len(self._limits) == 1:
            return None
        usual = {task.name: list(amounts_of(task.resources)) for task in figures.tasks}
        for channel in figures.channels:  # a channel's memory stands with its reader
            held = usual[channel.reader]
            for place, amount in enumerate(amounts_of(channel.resources)):
                held[place] += amount
        share = self.spread([tuple(held) for held in usual.values()])
        if share <= 1:
            return share
        logic = [amounts_of(total([nest.logic for nest in task.nests])) for task in network.tasks]
        share = self.spread(logic)
        return share if share > 1 and not self.may_fit(logic) else 1.0

    def spread(self, things: Sequence[Amounts]) -> float:
        """Each thing, the largest first, where it leaves the fullest resource least full."""
        used = [[0.0] * len(limits) for limits in self._limits]
        for thing in self._largest_first(things):
            shares = [_share(there, thing, limits) for there, limits in zip(used, self._limits, strict=True)]
            die = used[shares.index(min(shares))]
            for place, amount in enumerate(thing):
                die[place] += amount
        return max(_share(there, (0.0,) * len(there), limits) for there, limits in zip(used, self._limits, strict=True))

    def may_fit(self, things: Sequence[Amounts]) -> bool:
        """False only if every way of dividing these was tried, or what is left is too much for all dies together."""
        order = self._largest_first(things)
        after: list[Amounts] = [tuple(map(sum, zip(*order[start:], strict=True))) for start in range(len(order))]
        self._steps = 0
        return self._fits_from(order, after, 0, [list(limits) for limits in self._limits])

    def _fits_from(self, order: list[Amounts], after: list[Amounts], start: int, free: list[list[float]]) -> bool:
        if start == len(order) or self._steps > MOST_STEPS:
            return True
        if any(need > sum(have) for need, have in zip(after[start], zip(*free, strict=True), strict=True)):
            return False
        self._steps += 1
        tried: list[list[float]] = []
        for die in sorted(free, key=lambda left: -min([left[place] / limit for place, limit in self._counted])):
            left = [have - need for have, need in zip(die, order[start], strict=True)]
            if min(left) < 0 or left in tried:
                continue
            tried.append(left)
            rest = [left if other is die else other for other in free]
            if self._fits_from(order, after, start + 1, rest):
                return True
        return False

    def _largest_first(self, things: Sequence[Amounts]) -> list[Amounts]:
        """By the largest share of the first die, of equals in their order."""
        nothing = [0.0] * len(self._limits[0])
        sized = [(_share(nothing, thing, self._limits[0]), thing) for thing in things]
        return [thing for size, thing in sorted(sized, key=lambda one: -one[0]) if size]


def amounts_of(resources: Resources) -> Amounts:
    return (resources.lut, resources.ff, resources.dsp, resources.bram18, resources.uram)


def _share(used: Sequence[float], more: Sequence[float], limits: Sequence[float]) -> float:
    """The largest share of a die's limits; infinite where it lacks altogether what is needed."""
    found = 0.0
    for there, thing, limit in zip(used, more, limits, strict=True):
        if (need := there + thing) > found * limit:
            found = need / limit if limit else float("inf")
    return found
