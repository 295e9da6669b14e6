"""Where tokens wait when inputs follow each other, and how many: room for them lets nobody stand still for long.

A reader that takes the words of one input as they come, for longer than an interval, is still with that input when the
next one begins to come. So it begins later with this one than if it came alone, and is through with it no later: what
it waited for is there by then. What it is to meet on another way waits as long as it would alone, and of several inputs
at once if that is more than an interval. Such words wait where they are fewest: windows hold each place of a frame many
times, so a frame waits before they are cut from it, if that takes little of an interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Literal

import numpy as np

from penstock.compiler.schedule import PortSchedule
from penstock.profiling.channel_times import ChannelTimes
from penstock.profiling.network import Task, TaskNetwork
from penstock.profiling.prefetch import computes
from penstock.profiling.sampling import Times, evenly, iterations_of

_LOOKED_AT = 256
"""Tokens at whose writes a FIFO is looked at."""
_QUICK = 1 / 16
"""Of an interval: so long may it take to move an input from where it waits to its reader."""


def waiting_tokens(
    network: TaskNetwork,
    late: Mapping[str, int],
    ends: Mapping[str, int],
    times: Mapping[str, ChannelTimes],
    interval: int,
) -> dict[str, int]:
    """Of one kernel: by FIFO, the tokens that it holds of all inputs beyond what it holds of one that comes alone.

    Of one that comes alone, `ends` says when each task is through with it, and `times` when its tokens pass. `late`
    says for how long tasks stand in each input. A reader whose inputs part and meet again is as late as its latest.
    """
    after: dict[str, int] = {}
    found: dict[str, int] = {}
    before = {name: task for task in network.tasks for name in _channels(task, "write")}
    for task in network.tasks:  # writers come before readers
        reads = list(_channels(task, "read"))
        latest = max([after.get(name, 0) for name in reads], default=0) + late.get(task.name, 0)
        for name in reads:
            delay = latest - after.get(name, 0)
            # at the earliest: then it is through with the input before, and with what comes before its first token
            begins = ends[task.name] - interval + _until_first(task, name)
            one, first = times[name], int(times[name].read[0])
            if delay <= 0 and begins <= first and int(one.read[-1]) - int(one.written[0]) <= interval:
                continue  # no input meets the next one there
            rooms = {
                fifo: most_of_all(times[fifo], ends[before[fifo].name] - interval, begins, delay, interval)
                for fifo in _way(network, name, before, interval)
            }
            if rooms:
                least = min(rooms, key=lambda fifo: rooms[fifo] * network.channels[fifo].bits)
                more = rooms[least] - times[least].high_water
                found[least] = max(found.get(least, 0), more)
        after |= dict.fromkeys(_channels(task, "write"), latest)
    return found


def _until_first(task: Task, name: str) -> int:
    """Cycles from a task's first iteration to the one that reads the first token of a channel: of frames with places
    around them, those before its first row."""
    before = 0
    for nest in task.nests:
        for port in nest.ports:
            if _is(port, "read") and task.channel(port.channel) == name:
                return before + int(iterations_of(nest.in_slots(port.pattern), np.zeros(1, np.int64))[0]) * nest.ii
        before += nest.latency
    return before


def most_of_all(times: ChannelTimes, written: int, read: int, delay: int, interval: int) -> int:
    """The most tokens that a FIFO holds of all inputs, one an interval.

    Of one that comes alone none is `written` or `read` before these cycles, but read by a `delay` later.
    """
    writes, reads = np.maximum(times.written, written), np.maximum(times.read, read) + delay
    places = evenly(len(writes), _LOOKED_AT)
    most = np.zeros(len(places), np.int64)
    last = ceil((int(reads[-1]) - int(writes[0])) / max(1, interval))
    for inputs in range(-last, last + 1):
        at = writes[places] + inputs * interval
        most += _passed(times, writes, at, "right") - _passed(times, reads, at, "left")
    return max(1, int(most.max()))


def _passed(times: ChannelTimes, when: Times, at: Times, side: Literal["left", "right"]) -> Times:
    """How many tokens of one input have passed by then, as far as the sampled ones say."""
    gone = when.searchsorted(at, side=side)
    return np.where(gone > 0, times.index[gone - 1] + 1, 0)


def _way(network: TaskNetwork, name: str, before: Mapping[str, Task], interval: int) -> Iterator[str]:
    """The FIFOs in which what a reader takes may wait: its own, and those before tasks that only move what they read.

    None where a load brings it: it waits outside.
    """
    found: list[str] = []
    while True:
        if network.channels[name].kind == "stream":
            found.append(name)
        task = before[name]
        reads, writes = list(_channels(task, "read")), list(_channels(task, "write"))
        if not reads and any(port.kind == "external" for nest in task.nests for port in nest.ports):
            return
        if len(reads) != 1 or len(writes) != 1 or task.busy > interval * _QUICK or any(map(computes, task.nests)):
            yield from found
            return
        (name,) = reads


def _channels(task: Task, direction: str) -> Iterator[str]:
    """Each channel that a task reads from or writes to, once."""
    yield from dict.fromkeys(task.channel(p.channel) for n in task.nests for p in n.ports if _is(p, direction))


def _is(port: PortSchedule, direction: str) -> bool:
    return port.kind != "external" and port.direction == direction
