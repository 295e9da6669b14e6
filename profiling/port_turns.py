"""How far inputs are apart where loads take turns at a port: each comes after all before it, also of the last input.

A port brings one tensor after the other, and after the last one the first one of the next input. One that no FIFO
holds has passed when its reader has taken nearly all of it; one that FIFOs hold for so many inputs, as many inputs
sooner. Till then the next in turn has not begun, and its reader waits. With inputs so far apart that none has to, as
tasks run with one input, they run so for ever: no more than that is needed. What is asked is only among readers of
which one waits for what the other makes; others can run later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np

from penstock.profiling.channel_times import ChannelTimes
from penstock.profiling.network import TaskNetwork

LoadNest = tuple[str, int]
"""A nest by its task, which is a port, and its place there."""


@dataclass(frozen=True)
class _Use:
    """By the task at this place: when it takes a tensor's first word, and when the port is free of the last one."""

    place: int
    first: int
    gone: int
    held: int
    """How many inputs before the port goes on."""
    latency: int


class PortTurns:
    """What loads and readers of one kernel say of the turns at its ports."""

    def __init__(self, network: TaskNetwork) -> None:
        self._places = {task.name: place for place, task in enumerate(network.tasks)}
        self._behind = _behind(network, self._places)
        self._brought: dict[str, dict[int, float]] = defaultdict(dict)
        self._uses: dict[LoadNest, list[_Use]] = defaultdict(list)

    def brings(self, port: str, place: int, cycles: float) -> None:
        """A load of a port with the cycles that it takes if nobody holds it up."""
        self._brought[port][place] = cycles

    def used(self, task: str, loads: Iterable[LoadNest], times: ChannelTimes, waiting: float, latency: int) -> None:
        """What a task reads of loads, of which the part `waiting` fits into FIFOs; more than 1 for several inputs."""
        whole, part = divmod(waiting, 1.0)
        last = times.count - ceil(times.count * part) - 1
        gone = int(times.read[min(int(np.searchsorted(times.index, last)), len(times.read) - 1)]) if last >= 0 else 0
        use = _Use(self._places[task], int(times.read[0]), gone, int(whole), latency)
        for load in loads:
            self._uses[load].append(use)

    def apart(self, port: str) -> int:
        """The least time between two inputs with which no load of a port is late."""
        loads = sorted(self._brought[port].items())
        most = 0.0
        for i, (place, _) in enumerate(loads):
            passed = 0.0  # what comes between the two
            for step in range(1, len(loads)):
                after, cycles = loads[(i + step) % len(loads)]
                inputs = int(i + step >= len(loads))
                pairs = ((a, b) for a in self._uses[port, place] for b in self._uses[port, after])
                for before, use in pairs:
                    if inputs + before.held and self._behind[use.place] >> before.place & 1:
                        wait = before.gone + passed + use.latency - use.first
                        most = max(most, wait / (inputs + before.held))
                passed += cycles
        return ceil(most)


def _behind(network: TaskNetwork, places: dict[str, int]) -> list[int]:
    """Of each task, as bits: itself and all that wait for what it makes. Writers come before readers."""
    found = [1 << place for place in range(len(network.tasks))]
    edges = sorted({(places[writer], places[reader]) for writer, reader in network.ends().values()}, reverse=True)
    for writer, reader in edges:
        found[writer] |= found[reader]
    return found
