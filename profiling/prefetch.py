"""How far loads may run ahead of their readers: what passes while one access to external memory is under way.

A load that nobody holds back would fetch a whole tensor into its FIFO before the reader begins. All that this buys is
that the reader finds the next word at once. For that, as many words must be there as the load brings while a request
goes to the memory and comes back; whatever is more costs memory on the chip, and saves time only where the reader takes
words in bursts. The rule holds for all that one tensor alone feeds: what cuts its words into slices, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from penstock.compiler.plan.dma_nests import JOIN
from penstock.compiler.schedule import NestSchedule
from penstock.profiling.network import TaskNetwork


@dataclass(frozen=True)
class _Supply:
    """What feeds a nest that has nothing but loads before it: the cycles of the slowest, and the longest access."""

    cycles: float
    latency: int


def prefetch_depths(network: TaskNetwork, busy: Mapping[str, int]) -> dict[str, int]:
    """For every FIFO that one load alone fills: the tokens that pass in the time of one access to external memory.

    Only what the tensor's reader takes holds that many: 0 is for FIFOs before, whose words go on as they come.
    `busy` is how many cycles each task takes if it never waits for another, external memory's pace in it.
    """
    supplies: dict[str, _Supply] = {}
    found: dict[str, int] = {}
    for task in network.tasks:  # writers come before readers
        slots = sum(nest.slots for nest in task.nests)
        for nest in task.nests:
            taken = [task.channel(p.channel) for p in nest.ports if _takes(p.kind, p.direction)]
            supply = _supply(nest, [supplies.get(name) for name in taken], busy[task.name] * nest.slots / slots)
            written = [port for port in nest.ports if port.kind != "external" and port.direction == "write"]
            if supply is None or len(written) != 1:  # a fork's readers may wait for each other
                continue
            name = task.channel(written[0].channel)
            supplies[name] = supply
            found |= {before: 0 for before in taken if before in found}
            if written[0].kind == "stream":
                found[name] = ceil(supply.latency * written[0].tokens / supply.cycles)
    return found


def _takes(kind: str, direction: str) -> bool:
    return kind != "external" and direction == "read"


def _supply(nest: NestSchedule, before: list[_Supply | None], cycles: float) -> _Supply | None:
    """None for a nest that waits for something that is computed, or brings together what differs."""
    known = [one for one in before if one is not None]
    loads = any(p.kind == "external" and p.direction == "read" for p in nest.ports)
    several = len(known) > 1 and not nest.name.endswith(JOIN)
    if None in before or several or not (known or loads):
        return None
    own = [_Supply(cycles, nest.depth)] if loads else []
    return _Supply(max(s.cycles for s in (*known, *own)), max(s.latency for s in (*known, *own)))
