"""How far loads may run ahead of their readers: what passes while one access to external memory is under way.

A load that nobody holds back would fetch a whole tensor into its FIFO before the reader begins. All that this buys is
that the reader finds the next word at once. For that, as many words must be there as the load brings while a request
goes to the memory and comes back; whatever is more costs memory on the chip, and saves time only where the reader takes
words in bursts, or where other loads of the same port wait behind it. The rule holds for all that one tensor alone
feeds: what cuts its words into slices, too. It ends where something is computed: results wait for their readers, as a
frame's first rows do before a layer that is still with the frame before, however far the load might run ahead. A cache
to which a computed row is joined is still what the load brings: as much of it waits as its reader asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil

from penstock.compiler.plan.dma_nests import JOIN
from penstock.compiler.plan.part_nests import CONCAT
from penstock.compiler.schedule import NestSchedule
from penstock.profiling.network import TaskNetwork


@dataclass(frozen=True)
class Supply:
    """What feeds a nest that has nothing but loads before it: the cycles of the slowest, and the longest access."""

    cycles: float
    latency: int
    shared: bool
    joined: bool = False
    """Whether something that is computed follows what the loads bring."""


@dataclass(frozen=True)
class Prefetch:
    """Of a FIFO that one load alone fills: the tokens that pass in the time of one access.

    Where other loads wait for the same port, it is `shared`, and the words wait right behind it, in as many `parts` as
    the tensor has stripes: a port that brings words faster than their reader takes them is free for the next tensor.
    Where frames follow each other the port goes on with the next ones while the reader is `frames` behind.
    """

    depth: int
    shared: bool = False
    parts: int = 1
    frames: int = 1
    striped: bool = False
    """Whether any tensor of its kernel is striped."""


def prefetch_depths(network: TaskNetwork, busy: Mapping[str, int]) -> dict[str, Prefetch]:
    """What is known of every FIFO that one load alone fills.

    Only one FIFO on a tensor's way holds that many, the others pass words on as they come: 0. `busy` is how many cycles
    each task takes if it never waits for another, external memory's pace in it.
    """
    supplies: dict[str, Supply] = {}
    found: dict[str, Prefetch] = {}
    joined: set[str] = set()
    striped = any(nest.name.endswith(JOIN) for task in network.tasks for nest in task.nests)
    for task in network.tasks:  # writers come before readers
        slots = sum(nest.slots for nest in task.nests)
        for nest in task.nests:
            taken = [task.channel(p.channel) for p in nest.ports if _takes(p.kind, p.direction)]
            own = busy[task.name] * nest.slots / slots
            supply = supply_of(nest, [supplies.get(name) for name in taken], own, among=len(task.nests) > 1)
            supply = supply or _joined(nest, [supplies.get(name) for name in taken])
            if supply is not None and supply.shared and not supply.joined:
                fed = {before: found[before] for before in taken if before in found}
                found |= {before: replace(one, shared=True, parts=len(taken)) for before, one in fed.items()}
            written = [port for port in nest.ports if port.kind != "external" and port.direction == "write"]
            if supply is None or len(written) != 1:  # a fork's readers may wait for each other
                continue
            name = task.channel(written[0].channel)
            supplies[name] = supply
            covering = ceil(supply.latency * written[0].tokens / supply.cycles)
            if supply.joined:  # a part is computed: what waits behind it is not what the port is held by
                found |= {before: Prefetch(0) for before in taken if before in found and before in joined}
                joined.add(name)
            elif not supply.shared:
                found |= {before: Prefetch(0) for before in taken if before in found}
            if written[0].kind == "stream":
                shared = supply.shared and not supply.joined
                found[name] = Prefetch(0 if shared and taken else covering, shared)
    return {name: replace(one, striped=True) for name, one in found.items()} if striped else found


def waiting_frames(
    network: TaskNetwork, found: Mapping[str, Prefetch], over: Mapping[str, int], interval: int
) -> dict[str, Prefetch]:
    """The same FIFOs, with how many frames begin before the words of one are used up.

    `over` says when each task ends in the first frame. A port that others wait for would else hold up the next frame
    until the last layer has begun with this one.
    """
    ends = network.ends()
    passed = {ends[name][0]: name for name in found}

    def used_up(name: str) -> int:
        reader = ends[name][1]
        return max(over[reader], used_up(passed[reader]) if reader in passed else 0)

    return {
        name: replace(one, frames=max(1, ceil(used_up(name) / max(interval, 1)))) if one.shared and one.depth else one
        for name, one in found.items()
    }


def _takes(kind: str, direction: str) -> bool:
    return kind != "external" and direction == "read"


def computes(nest: NestSchedule) -> bool:
    """Whether it does more than move and place what it reads."""
    return any(not stage.name.startswith("nest.") for stage in nest.stages)


def supply_of(nest: NestSchedule, before: list[Supply | None], cycles: float, *, among: bool) -> Supply | None:
    """None for a nest that waits for something that is computed, or brings together what differs."""
    known = [one for one in before if one is not None]
    loads = any(p.kind == "external" and p.direction == "read" for p in nest.ports)
    several = len(known) > 1 and not nest.name.endswith(JOIN)
    if None in before or several or not (known or loads) or computes(nest):
        return None
    own = [Supply(cycles, nest.depth, among)] if loads else []
    fed = (*known, *own)
    return Supply(
        max(s.cycles for s in fed), max(s.latency for s in fed), any(s.shared for s in fed), any(s.joined for s in fed)
    )


def _joined(nest: NestSchedule, before: list[Supply | None]) -> Supply | None:
    """What comes through a nest that sends on what one load brings, and then fewer tokens of something computed."""
    known = [one for one in before if one is not None]
    if not nest.name.endswith(CONCAT) or len(known) != 1:
        return None
    read = [port.tokens for port in nest.ports if _takes(port.kind, port.direction)]
    loaded = sum(tokens for tokens, one in zip(read, before, strict=True) if one is not None)
    return replace(known[0], joined=True) if 2 * loaded > sum(read) else None
