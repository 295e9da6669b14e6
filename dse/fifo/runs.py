"""Runs of pipelines that stall whole, between FIFOs, from their token curves: what shrinking repeats most.

These are the simulator's own rules in the few lines that such networks need, without explanations of what was
waited for. Everything found with them is confirmed by the simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from compiler.simulator import Network, Rules
from dse.fifo.curves import Times, kernels_of
from dse.fifo.measure import Measured


def is_plain(network: Network, rules: Rules) -> bool:
    """Whether a network is what is run here: stalling pipelines that only meet FIFOs of others."""
    ends = network.ends()
    only_fifos = all(c.kind == "fifo" for c in network.channels) and not network.ports
    return only_fifos and not rules.flushing and all(writer != reader for writer, reader in ends.values())


class PlainRuns:
    """One network, its accesses sorted once; each call runs it with other depths."""

    def __init__(self, network: Network, rules: Rules) -> None:
        kernels = kernels_of(network, rules)
        self.fifos = tuple(c.name for c in network.channels)
        self.count = 0
        number = {name: i for i, name in enumerate(self.fifos)}
        first, time, channel, write = [0], list[Times](), list[Times](), list[Times]()
        for kernel in kernels.values():
            ports = [(n, c, 0) for n, c in kernel.reads.items()] + [(n, c, 1) for n, c in kernel.writes.items()]
            at = np.concatenate([c.times for _, c, _ in ports]) if ports else np.zeros(0, np.int64)
            order = np.argsort(at, kind="stable")
            sizes = [len(c.times) for _, c, _ in ports]
            time.append(at[order])
            channel.append(np.repeat(np.array([number[n] for n, _, _ in ports], np.int64), sizes)[order])
            write.append(np.repeat(np.array([w for _, _, w in ports], np.int64), sizes)[order])
            first.append(first[-1] + len(at))
        tokens = network.tokens()
        self._first = np.array(first, np.int64)
        self._busy = np.array([k.busy for k in kernels.values()], np.int64)
        self._events = (np.concatenate(time), np.concatenate(channel), np.concatenate(write))
        self._base = np.concatenate(([0], np.cumsum([tokens[n] for n in self.fifos]))).astype(np.int64)
        self._tokens = tokens

    def __call__(self, depths: Mapping[str, int]) -> Measured:
        self.count += 1
        given = np.array([depths[n] for n in self.fifos], np.int64)
        end, high = _compiled()(self._first, *self._events, self._busy, self._base, given)
        marks = {name: int(h) for name, h in zip(self.fifos, high, strict=True)}
        return Measured((int(end),) if end >= 0 else (), marks)

    def unbounded(self) -> Measured:
        return self(self._tokens)


@cache
def _compiled() -> Any:
    import numba  # pyright: ignore[reportMissingTypeStubs]

    kept: Any = numba.njit(cache=True)
    try:
        return kept(run_events)
    except RuntimeError:  # neither the source's folder nor the user's cache folder can be written
        compiled: Any = numba.njit
        return compiled(run_events)


def run_events(
    first: Times, time: Times, channel: Times, write: Times, busy: Times, base: Times, depth: Times
) -> tuple[int, Times]:
    """The cycle after the last process ends (-1 for a deadlock), and how many slots each FIFO held at most.

    Events `first[p]` to `first[p + 1]` are a process's accesses, in order of its own time.
    """
    processes, channels = len(busy), len(depth)
    at = first[:-1].copy()
    offset = np.zeros(processes, np.int64)
    filled, freed = np.zeros(channels, np.int64), np.zeros(channels, np.int64)
    fills, takes = np.zeros(base[-1], np.int64), np.zeros(base[-1], np.int64)
    moved = True
    while moved:
        moved = False
        for p in range(processes):
            i = at[p]
            while i < first[p + 1]:
                now = time[i]
                earliest = now + offset[p]
                j = i
                possible = True
                # everything that is due at this moment, counted as done until something is not possible
                while possible and j < first[p + 1] and time[j] == now:
                    c = channel[j]
                    if write[j]:
                        k = filled[c] - depth[c]
                        if k >= freed[c]:
                            possible = False
                        else:
                            if k >= 0:
                                earliest = max(earliest, takes[base[c] + k] + 1)
                            filled[c] += 1
                            j += 1
                    elif freed[c] >= filled[c]:
                        possible = False
                    else:
                        earliest = max(earliest, fills[base[c] + freed[c]] + 1)
                        freed[c] += 1
                        j += 1
                for done in range(j - 1, i - 1, -1):
                    c = channel[done]
                    if write[done]:
                        filled[c] -= 1
                    else:
                        freed[c] -= 1
                if not possible:
                    break
                offset[p] = earliest - now
                for due in range(i, j):
                    c = channel[due]
                    if write[due]:
                        fills[base[c] + filled[c]] = earliest
                        filled[c] += 1
                    else:
                        takes[base[c] + freed[c]] = earliest
                        freed[c] += 1
                i = j
                moved = True
            at[p] = i
    high = np.zeros(channels, np.int64)
    for c in range(channels):
        behind = 0
        for k in range(filled[c]):
            while behind < freed[c] and takes[base[c] + behind] < fills[base[c] + k]:
                behind += 1
            high[c] = max(high[c], k + 1 - behind)
    end = 0
    for p in range(processes):
        if at[p] < first[p + 1]:
            return -1, high
        end = max(end, busy[p] + offset[p])
    return end, high
