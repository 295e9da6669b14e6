"""Token curves: when, in its own time, each process writes and reads every token, if it never waits.

They come from the access patterns of its nests, so a burst is a burst: nothing is averaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.schedule import TokenPattern
from penstock.compiler.simulator import ChannelAccess, Network, Phase, Rules, SimulatedProcess

Times = NDArray[np.int64]


@dataclass(frozen=True)
class Curve:
    """The accesses to one channel in the process's own time, in order.

    `seen` is up to when waits for input delay the access: its own time where a pipeline stops whole, the time at
    which its iteration left the front where pipelines flush.
    """

    times: Times
    seen: Times


@dataclass(frozen=True)
class KernelCurve:
    """One process: `busy` cycles if it never waits."""

    name: str
    busy: int
    reads: Mapping[str, Curve]
    writes: Mapping[str, Curve]

    def stretched(self, busy: int) -> KernelCurve:
        """The same process slowed down evenly, so that it takes `busy` cycles."""
        if busy <= self.busy:
            return self

        def slower(curves: Mapping[str, Curve]) -> dict[str, Curve]:
            return {
                n: Curve(c.times * (busy - 1) // max(self.busy - 1, 1), c.seen * (busy - 1) // max(self.busy - 1, 1))
                for n, c in curves.items()
            }

        return KernelCurve(self.name, busy, slower(self.reads), slower(self.writes))


def kernels_of(network: Network, rules: Rules) -> dict[str, KernelCurve]:
    """The curves of every process. A block counts as one token: written when handed on, read when taken hold of."""
    channels = {c.name for c in network.channels}
    kernels = {p.name: _kernel(p, rules, channels) for p in network.processes}
    for channel in network.channels:
        if channel.kind == "pipo":
            # handed over outside the phases: the end of every writer, the start of every reader
            for writer in channel.producers:
                for reader in channel.consumers:
                    name = f"{channel.name}:{writer}:{reader}"
                    end = np.array([kernels[writer].busy + rules.start_gap - 1], np.int64)
                    start = np.array([0], np.int64)
                    kernels[writer] = _with_write(kernels[writer], name, Curve(end, end))
                    kernels[reader] = _with_read(kernels[reader], name, Curve(start, start))
    return kernels


def _with_write(kernel: KernelCurve, name: str, curve: Curve) -> KernelCurve:
    return KernelCurve(kernel.name, kernel.busy, kernel.reads, {**kernel.writes, name: curve})


def _with_read(kernel: KernelCurve, name: str, curve: Curve) -> KernelCurve:
    return KernelCurve(kernel.name, kernel.busy, {**kernel.reads, name: curve}, kernel.writes)


def _kernel(process: SimulatedProcess, rules: Rules, channels: set[str]) -> KernelCurve:
    reads: dict[str, list[Curve]] = {}
    writes: dict[str, list[Curve]] = {}
    start = rules.first_phase_delay if len(process.phases) > 1 else 0
    for phase in process.phases:
        front = max((_stage(phase, a, rules) for a in phase.accesses if a.direction == "read"), default=0)
        for access in phase.accesses:
            if access.channel not in channels:
                continue  # external memory: how long it takes is the simulator's business
            stage = _stage(phase, access, rules)
            times = start + stage + (iterations(access.pattern) + _late(access)) * phase.ii
            waits = stage - front if rules.flushing and access.direction == "write" and stage > front else 0
            times = np.repeat(times, access.count)
            (reads if access.direction == "read" else writes).setdefault(access.channel, []).append(
                Curve(times, times - waits)
            )
        start += phase.length + rules.phase_gap
    return KernelCurve(process.name, start - rules.phase_gap, _joined(reads), _joined(writes))


def _joined(parts: Mapping[str, list[Curve]]) -> dict[str, Curve]:
    """The accesses of several phases, or several accesses of one, in the order of their times."""
    joined: dict[str, Curve] = {}
    for name, curves in parts.items():
        if len(curves) == 1:
            joined[name] = curves[0]
            continue
        times = np.concatenate([c.times for c in curves])
        order = np.argsort(times, kind="stable")
        joined[name] = Curve(times[order], np.concatenate([c.seen for c in curves])[order])
    return joined


def iterations(pattern: TokenPattern) -> Times:
    """The iterations in which an access happens, in order."""
    found = np.zeros(1, np.int64)
    for level in pattern.levels:
        counters = np.concatenate([np.arange(first, first + n, dtype=np.int64) for first, n in level.runs])
        found = (found[:, None] + counters * level.stride).ravel()
    return found


def _late(access: ChannelAccess) -> int:
    """Iterations from when a block is taken hold of to when the other side sees it."""
    return access.hold if access.direction == "write" else 0


def _stage(phase: Phase, access: ChannelAccess, rules: Rules) -> int:
    if access.stage is not None:
        return access.stage
    return min(rules.read_stage, phase.depth - 1) if access.direction == "read" else phase.depth - 1
