"""What inputs that follow each other cost beyond the tasks' own time: weights that come anew, and ports that are held.

A task that keeps its weights reads them at their first use, all of them early in each input. They come no faster than
their load brings them, and no more than its FIFOs hold can have come before: so long the task stands at the beginning
of every input, with all that it computes still before it. And a port that several loads share goes on only when a
tensor has passed: with one that no FIFO holds, when its reader has taken nearly all of it. If that is the last layer's,
the first one's next weights come only then, however short the layers are (`port_turns.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np

from penstock.compiler.schedule import NestSchedule, PortSchedule
from penstock.profiling.channel_times import ChannelTimes
from penstock.profiling.network import Task, TaskNetwork
from penstock.profiling.port_turns import LoadNest, PortTurns
from penstock.profiling.prefetch import Supply, supply_of
from penstock.profiling.sampling import evenly, iterations_of

_LOOKED_AT = 1024
"""Tokens at which a reader's time is compared with the load's."""


@dataclass(frozen=True)
class Steady:
    """By task: the cycles for which it stands in each input; and by port, for how long its loads hold it in each, and
    how far inputs are apart so that each load is in time for the next."""

    late: Mapping[str, int]
    held: Mapping[str, int]
    apart: Mapping[str, int]

    def interval(self, busy: Mapping[str, int]) -> int:
        """The least time between two inputs, where a task that never waits takes `busy`."""
        late = [busy[name] + cycles for name, cycles in self.late.items()]
        return max([*self.held.values(), *self.apart.values(), *late], default=0)


@dataclass(frozen=True)
class _Feed:
    """What loads alone bring into a FIFO: how soon at best, the part that may wait there, and by which loads."""

    supply: Supply
    waiting: float
    loads: frozenset[LoadNest]


def steady_times(
    network: TaskNetwork, busy: Mapping[str, int], depths: Mapping[str, int], times: Mapping[str, ChannelTimes]
) -> Steady:
    """Of one kernel, whose channels have these `times` for one input. `busy` has external memory's pace in it; FIFOs
    that `depths` does not name hold nothing."""
    feeds: dict[str, _Feed] = {}
    late: dict[str, int] = {}
    holds: dict[LoadNest, float] = {}
    turns = PortTurns(network)
    interval = max(busy.values())
    for task in network.tasks:  # writers come before readers
        slots, before = sum(nest.slots for nest in task.nests), 0
        for place, nest in enumerate(task.nests):
            reads = [port for port in nest.ports if port.kind != "external" and port.direction == "read"]
            fed = [feeds.get(task.channel(port.channel)) for port in reads]
            known = [None if feed is None else feed.supply for feed in fed]
            own = busy[task.name] * nest.slots / slots
            supply = supply_of(nest, known, own, among=len(task.nests) > 1)
            loads = frozenset([load for feed in fed if feed is not None for load in feed.loads])
            waiting = min([feed.waiting for feed in fed if feed is not None], default=0.0)
            if supply is not None:
                if not reads:
                    loads, holds[task.name, place] = frozenset([(task.name, place)]), own
                    turns.brings(task.name, place, own)
                for name, tokens in _written(task, nest):
                    more = depths.get(name, 0) / tokens if network.channels[name].kind == "stream" else 0.0
                    feeds[name] = _Feed(supply, waiting + more, loads)
            else:
                for port, feed in zip(reads, fed, strict=True):
                    if feed is not None:
                        _meet(nest, port, feed, late, holds, task.name, before, interval)
                        read = times[task.channel(port.channel)]
                        turns.used(task.name, feed.loads, read, feed.waiting, feed.supply.latency)
            before += nest.latency
    shared = {task.name: range(len(task.nests)) for task in network.tasks if len(task.nests) > 1}
    ports = {
        name: [holds[name, place] for place in places if (name, place) in holds] for name, places in shared.items()
    }
    held = {name: ceil(sum(spans)) for name, spans in ports.items() if len(spans) > 1}
    return Steady(late, held, {name: turns.apart(name) for name in held})


def _meet(
    nest: NestSchedule, port: PortSchedule, feed: _Feed, late: dict[str, int], holds: dict[LoadNest, float], task: str,
    before: int, interval: int,
) -> None:  # fmt: skip
    """By how much a reader waits for what loads bring, and how long it keeps their ports."""
    tokens, waiting = port.tokens, min(1.0, feed.waiting)
    looked_at = evenly(tokens, _LOOKED_AT)
    taken = iterations_of(nest.in_slots(port.pattern), looked_at) * nest.ii
    last = tokens - ceil(tokens * waiting) - 1
    gone = float(taken[min(int(np.searchsorted(looked_at, last)), len(taken) - 1)]) if last >= 0 else 0.0
    # the load turns to the next input when the last word has room, and its first word comes after an access to memory
    pace = feed.supply.cycles / tokens
    begins = feed.supply.latency - (interval - gone)
    ready = np.maximum((looked_at + 1 - tokens * waiting) * pace, begins + (looked_at + 1) * pace)
    late[task] = max(late.get(task, 0), ceil(float((ready - taken).max())) - before)
    if last > 0:
        there = int(np.searchsorted(looked_at, last, side="right")) - 1
        span = float(taken[there] - taken[0])
        for load in feed.loads:
            holds[load] = max(holds[load], span)


def _written(task: Task, nest: NestSchedule) -> Iterator[tuple[str, int]]:
    for port in nest.ports:
        if port.kind != "external" and port.direction == "write":
            yield task.channel(port.channel), port.tokens
