"""How many operators are built for a pipeline whose recurrences fill its interval.

Time is worth more than operators there: what waits too long for one begins a turn of the interval later. Each kind of
operator is counted by itself, as if there were as many of the others as one likes.
"""

from __future__ import annotations

from collections import Counter as Count
from collections.abc import Callable, Mapping

from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.placing import Placer


def adders_beyond(
    nodes: list[KernelValue], fabric: set[KernelValue], ii: int, delays: Delays,
    place: Callable[[Mapping[str, int]], Placer],
) -> dict[str, int]:  # fmt: skip
    """How many usual adders are built beyond the least: as few as let a pipeline with as many of all others as it
    likes have the turns that it has with any number of them."""
    kinds: dict[str, list[KernelValue]] = {}
    for node in nodes:
        if delays.has_quick(node) and node not in fabric and (name := delays.unit(node)) is not None:
            kinds.setdefault(name, []).append(node)
    if not kinds:
        return {}
    adders = {name: len(kind) for name, kind in kinds.items()}
    at_once = place(adders)
    turns = -(-at_once.depth // ii)
    found: dict[str, int] = {}
    for name, kind in kinds.items():
        most = max(Count(at_once.starts[node] % ii for node in kind).values())
        low, high = -1, max(0, most - -(-len(kind) // ii))
        while high - low > 1:
            middle = (low + high) // 2
            fits = -(-place({**adders, name: middle}).depth // ii) <= turns
            low, high = (low, middle) if fits else (middle, high)
        found[name] = high
    return found


def rings_apart(
    nodes: list[KernelValue], fabric: set[KernelValue], rings: list[list[KernelValue]], ii: int, delays: Delays
) -> dict[str, int]:  # fmt: skip
    """How many adders without DSPs are built beyond the least, where each ring has its own: in a loop that reads tokens
    under a condition, and whose sums have more than one usual adder each."""
    usual = sum(delays.has_quick(node) and node not in fabric for node in nodes)
    if usual <= len(rings) or not any(node.op == "take" and node.guard is not None for node in nodes):
        return {}
    own = Count(name for ring in rings for node in ring if (name := delays.unit(node, True)) is not None)
    return {name: len(rings) - -(-count // ii) for name, count in own.items()}


def as_short(least: Placer, place: Callable[[int], Placer], shortest: int, most: int) -> tuple[Placer, int]:
    """Where the least operators cost a turn of the pipeline: so many that it is as short as with any number, if whoever
    waits for one does so in the order in which rings and ends ask for them. Also how many more than the least these
    are."""
    if -(-least.depth // least.ii) == -(-shortest // least.ii):
        return least, 0
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if place(middle).depth <= shortest else (middle, high)
    return place(high), high
