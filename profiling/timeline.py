"""When every token of a network is written and read: token times, propagated until they agree.

A nest runs on a clock of its own that stands still while it has to wait. A read waits for its token to have
been written in an earlier cycle; a write waits for a slot that was freed in an earlier cycle; a block is
handed over whole. How long a nest has waited at any moment is the largest lateness of what it has met so far,
so all times follow from cumulative maxima over sorted accesses, with no stepping through cycles.

In a pipeline that stalls as a whole, a late read holds back everything behind and inside it; in one that
flushes, only the iterations that follow. Channels of many tokens are looked at in samples (`sampling.py`);
the figures are then approximate, and say so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

import numpy as np

from compiler.platforms import Platform
from compiler.schedule import NestSchedule
from profiling.network import Network, Task
from profiling.protocol import ProfilingError
from profiling.sampling import Times, handovers, iterations_of, sample_tokens

MEMORY_EFFICIENCY = 0.85  # no memory system sustains more of its peak
_MAX_SWEEPS = 4000
_GAP = 2  # cycles between the nests of a task


@dataclass(frozen=True)
class ChannelTimes:
    """Cycle of the write and of the read of the sampled tokens (or blocks) `index` of `count`.

    `claimed` is when the writer takes the slot: the write itself, or the first part of a block.
    """

    index: Times
    count: int
    claimed: Times
    written: Times
    read: Times

    @property
    def high_water(self) -> int:
        """Slots that the writer needs so that it never waits for the reader."""
        freed = np.searchsorted(self.read, self.claimed, side="left")
        before = np.concatenate(([0], self.index + 1))[freed]
        return max(1, int((self.index + 1 - before).max()))

    @cached_property
    def least_depth(self) -> int:
        """Slots with which the reader never waits longer, though the writer may; at most the high water.

        Right for a writer that serves no other channel: what holds it back then delays nobody. Its own
        suppliers are held back with it, never sooner than they are needed.
        """
        low, high = 1, self.high_water
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._in_time(middle) else (middle + 1, high)
        return low

    def _in_time(self, depth: int) -> bool:
        """Whether a writer that waits for the slots of so deep a channel still writes before every read."""
        freed_by = self.index - depth
        known = freed_by >= 0
        place = np.searchsorted(self.index, freed_by[known], side="left")
        late = np.zeros_like(self.written)
        late[known] = np.maximum(self.read[place] + 1 - self.written[known], 0)
        return bool((self.written + np.maximum.accumulate(late) < self.read).all())


@dataclass(frozen=True)
class TaskTimes:
    """When a task starts and ends, and how many of the cycles between it waits."""

    start: int
    end: int
    waited: int


@dataclass(frozen=True)
class Timeline:
    """The whole network's times. `exact` is False where channels were sampled."""

    tasks: dict[str, TaskTimes]
    channels: dict[str, ChannelTimes]
    busy: dict[str, int]
    """Cycles that each task takes if it never waits for another; external memory's pace is in it."""
    first_output: int
    exact: bool

    @property
    def latency(self) -> int:
        return max(task.end for task in self.tasks.values())


@dataclass
class _Access:
    """The sampled accesses of one port: local times of the access, and when a wait for it takes effect."""

    channel: str
    local: Times
    waits: Times
    """Local time at which the access (or for a block, its first part) must be possible."""
    part: slice
    is_block: bool = False


@dataclass
class _Nest:
    """One nest, its accesses merged and sorted once; what each access sees of earlier waits never changes."""

    schedule: NestSchedule
    period: float
    reads: list[_Access]
    writes: list[_Access]

    def prepare(self, flushing: bool, read_stage: int) -> None:
        empty = np.zeros(0, np.int64)
        self.read_at = np.concatenate([a.waits for a in self.reads] or [empty])
        self.write_at = np.concatenate([a.waits for a in self.writes] or [empty])
        self.read_order = np.argsort(self.read_at, kind="stable")
        self.write_order = np.argsort(self.write_at, kind="stable")
        sorted_reads, sorted_writes = self.read_at[self.read_order], self.write_at[self.write_order]

        def seen(by: Times, of: Times) -> Times:
            return np.searchsorted(of, by, side="right")

        self.reads_seen: list[tuple[Times, Times]] = []
        for access in self.reads:
            self.reads_seen.append((seen(access.local, sorted_reads), seen(access.local, sorted_writes)))
        self.writes_seen: list[tuple[Times, Times]] = []
        for access in self.writes:
            stage = next(p.stage for p in self.schedule.ports if p.direction == "write")
            issued = access.local - (stage - read_stage) if flushing else access.local
            self.writes_seen.append((seen(issued, sorted_reads), seen(access.local, sorted_writes)))
        self.claims_seen: list[tuple[Times, Times]] = []
        for access in self.writes:
            self.claims_seen.append((seen(access.waits, sorted_reads), seen(access.waits, sorted_writes)))

    @property
    def latency(self) -> int:
        return ceil(self.period * (self.schedule.iterations - 1)) + self.schedule.depth


def compute_timeline(
    network: Network,
    *,
    flushing: bool,
    read_stage: int,
    platform: Platform,
    clock_mhz: float,
    bounded: bool = True,
) -> Timeline:
    """All token times. `bounded` makes writers wait for full channels; without it depths are ignored."""
    solver = _Solver(network, flushing, read_stage, platform, clock_mhz)
    solver.sweep(bounded=False)
    if bounded and solver.too_shallow():
        solver.settle()
    return solver.result()


class _Solver:
    def __init__(self, network: Network, flushing: bool, read_stage: int, platform: Platform, clock_mhz: float):
        self.network = network
        self.samples = sample_tokens(network)
        self.written: dict[str, Times] = {}
        self.claimed: dict[str, Times] = {}
        self.read: dict[str, Times] = {}
        self.times: dict[str, TaskTimes] = {}
        self.first_output = 0
        share = _memory_share(network, platform, clock_mhz)
        self.nests: dict[str, list[_Nest]] = {}
        for task in network.tasks:
            base: dict[str, int] = {}
            self.nests[task.name] = [self._nest(task, s, base, share) for s in task.nests]
            for item in self.nests[task.name]:
                item.prepare(flushing, read_stage)

    def _nest(self, task: Task, schedule: NestSchedule, base: dict[str, int], share: float) -> _Nest:
        period = max([float(schedule.ii), *(p.bits * share for p in schedule.ports if p.kind == "external")])
        nest = _Nest(schedule, period, [], [])
        for port in schedule.ports:
            if port.kind == "external":
                continue
            channel = task.channel(port.channel)
            first = base.get(channel, 0)
            pattern = handovers(port, schedule)
            base[channel] = first + pattern.count
            index = self.samples[channel]
            low, high = np.searchsorted(index, [first, first + pattern.count])
            tokens = index[low:high] - first
            at = np.ceil(iterations_of(pattern, tokens) * period).astype(np.int64)
            access = _Access(channel, at + port.stage, at + port.stage, slice(int(low), int(high)))
            if port.kind == "block":
                last = np.ceil((iterations_of(pattern, tokens) + schedule.block_iterations - 1) * period)
                # a block passes at its last access, but must be there (or be free) at its first
                access = _Access(channel, last.astype(np.int64) + port.stage, at + port.stage, access.part, True)
            (nest.writes if port.direction == "write" else nest.reads).append(access)
        return nest

    def sweep(self, bounded: bool) -> bool:
        """Update every task once, in order and (if bounded) back again. Whether anything moved."""
        moved = False
        order = [*self.network.tasks, *reversed(self.network.tasks)] if bounded else list(self.network.tasks)
        for task in order:
            moved |= self._update(task, bounded)
        return moved

    def _update(self, task: Task, bounded: bool) -> bool:
        start, waited, moved, begun = 0, 0, False, 0
        for position, nest in enumerate(self.nests[task.name]):
            late_reads = [self._arrival(a) - (start + a.waits) for a in nest.reads]
            late_writes = [self._free(a, bounded) - (start + a.waits) for a in nest.writes]
            reads = _running_max(late_reads, nest.read_order)
            writes = _running_max(late_writes, nest.write_order)
            for access, (r, w) in zip(nest.reads, nest.reads_seen, strict=True):
                offset = np.maximum(reads[r], writes[w])
                moved |= self._set(self.read, access, start + access.local + offset)
            for access, (r, w) in zip(nest.writes, nest.writes_seen, strict=True):
                offset = np.maximum(reads[r], writes[w])
                moved |= self._set(self.written, access, start + access.local + offset)
            for access, (r, w) in zip(nest.writes, nest.claims_seen, strict=True):
                if access.is_block:
                    offset = np.maximum(reads[r], writes[w])
                    moved |= self._set(self.claimed, access, start + access.waits + offset)
            wait = int(max(reads[-1], writes[-1]))
            if position == 0:
                begun = self._begin(nest, late_reads)
            waited += wait
            start += nest.latency + wait + _GAP
        self.times[task.name] = TaskTimes(begun, start - _GAP, waited - begun)
        return moved

    def _begin(self, nest: _Nest, late_reads: list[Times]) -> int:
        """When a task's first iteration can pass: a wait before the first read is no work yet."""
        firsts = [int(late[0]) for late in late_reads if late.size]
        return max([0, *firsts])

    def _arrival(self, access: _Access) -> Times:
        return self.written[access.channel][access.part] + 1

    def _free(self, access: _Access, bounded: bool) -> Times:
        """From when a slot is free for each sampled token; the far past while depths are ignored."""
        index = self.samples[access.channel]
        free = np.full(access.local.shape, -(1 << 40), np.int64)
        if not bounded:
            return free
        before = index[access.part] - self.network.channels[access.channel].depth
        known = before >= 0
        # the nearest sample not before the token whose slot is needed: later is safe
        place = np.searchsorted(index, before[known], side="left")
        free[known] = self.read[access.channel][place] + 1
        return free

    def _set(self, times: dict[str, Times], access: _Access, values: Times) -> bool:
        held = times.setdefault(access.channel, np.full(self.samples[access.channel].shape, -1, np.int64))
        if np.array_equal(held[access.part], values):
            return False
        held[access.part] = values
        return True

    def too_shallow(self) -> bool:
        channels = self.network.channels
        return any(self._channel(name).high_water > channels[name].depth for name in channels)

    def settle(self) -> None:
        """Let full channels hold their writers back until nothing moves; one that never settles is stuck."""
        bound = 4 * (sum(t.busy for t in self.network.tasks) + max(t.end for t in self.times.values()))
        for _ in range(_MAX_SWEEPS):
            if not self.sweep(bounded=True):
                return
            if max(t.end for t in self.times.values()) > bound:
                break
        shallow = [n for n, c in self.network.channels.items() if self._channel(n).high_water >= c.depth]
        raise ProfilingError(
            "deadlock", what="the network does not settle with these channel depths",
            where=", ".join(sorted(shallow)),
            limit="depths " + ", ".join(str(self.network.channels[n].depth) for n in sorted(shallow)),
            hint="deepen these channels, or leave their depths to the tool",
        )  # fmt: skip

    def _channel(self, name: str) -> ChannelTimes:
        index = self.samples[name]
        written = self.written[name]
        claimed = self.claimed.get(name, written)
        return ChannelTimes(index, int(index[-1]) + 1, claimed, written, self.read[name])

    def result(self) -> Timeline:
        channels = {name: self._channel(name) for name in self.network.channels}
        exact = all(len(c.index) == c.count for c in channels.values())
        sinks = [t for t in self.network.tasks if not any(n.writes for n in self.nests[t.name])]
        first = min(
            (int(self.read[a.channel][0]) for t in sinks for n in self.nests[t.name] for a in n.reads),
            default=0,
        )
        busy = {name: sum(n.latency + _GAP for n in nests) - _GAP for name, nests in self.nests.items()}
        return Timeline(dict(self.times), channels, busy, first, exact)


def _running_max(parts: list[Times], order: Times) -> Times:
    """Largest lateness of the first n accesses in local order, from n = 0; never negative."""
    late = np.concatenate([*parts])[order] if parts else np.zeros(0, np.int64)
    return np.concatenate(([0], np.maximum(np.maximum.accumulate(late), 0) if late.size else late))


def _memory_share(network: Network, platform: Platform, clock_mhz: float) -> float:
    """Cycles a bit of external traffic takes on a port, when all of them share the memory with the most bandwidth."""
    users = sum(1 for t in network.tasks for n in t.nests if any(p.kind == "external" for p in n.ports))
    memory = max(platform.memories, key=lambda m: m.gb_s, default=None)
    if not users or memory is None:
        return 0.0  # no memory of its own: the host's link delivers, and is not modelled
    bytes_per_s = memory.port_gb_s * 1e9 * MEMORY_EFFICIENCY * min(1.0, memory.ports / users)
    return clock_mhz * 1e6 / 8 / bytes_per_s
