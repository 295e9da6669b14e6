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

from penstock.compiler.schedule import NestSchedule
from penstock.profiling.network import Task, TaskNetwork


@dataclass(frozen=True)
class _Supply:
    """What feeds a nest that has nothing but loads before it: the cycles of the slowest, and the longest access."""

    cycles: float
    latency: int


def prefetch_depths(network: TaskNetwork, busy: Mapping[str, int]) -> dict[str, int]:
    """For every FIFO that loads alone fill: the tokens that pass in the time of one access to external memory.

    `busy` is how many cycles each task takes if it never waits for another, external memory's pace in it.
    """
    supplies: dict[str, _Supply] = {}
    found: dict[str, int] = {}
    for task in network.tasks:  # writers come before readers
        slots = sum(nest.slots for nest in task.nests)
        for nest in task.nests:
            before = [supplies.get(task.channel(p.channel)) for p in nest.ports if _takes(p.kind, p.direction)]
            supply = _supply(nest, before, busy[task.name] * nest.slots / slots)
            if supply is not None:
                found |= _depths(task, nest, supply)
                supplies |= {task.channel(p.channel): supply for p in nest.ports if p.direction == "write"}
    return found


def _takes(kind: str, direction: str) -> bool:
    return kind != "external" and direction == "read"


def _supply(nest: NestSchedule, before: list[_Supply | None], cycles: float) -> _Supply | None:
    """None for a nest that waits for something that is computed, or brings together what differs."""
    known = {one for one in before if one is not None}
    loads = any(p.kind == "external" and p.direction == "read" for p in nest.ports)
    if None in before or len(known) > 1 or not (known or loads):
        return None
    own = [_Supply(cycles, nest.depth)] if loads else []
    return _Supply(max(s.cycles for s in (*known, *own)), max(s.latency for s in (*known, *own)))


def _depths(task: Task, nest: NestSchedule, supply: _Supply) -> dict[str, int]:
    written = [p for p in nest.ports if p.kind == "stream" and p.direction == "write"]
    return {task.channel(p.channel): ceil(supply.latency * p.tokens / supply.cycles) for p in written}
