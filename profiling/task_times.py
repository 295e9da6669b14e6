"""When one task reads and writes each token, given when its tokens come and its slots are free.

A nest runs on a clock of its own that stands still while it has to wait. How long it has waited at any moment is the
largest lateness of what it has met so far, so all times follow from cumulative maxima over sorted accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil

import numpy as np

from compiler.schedule import NestSchedule
from profiling.network import Task
from profiling.sampling import Times, handovers, iterations_of

_GAP = 2  # cycles between the nests of a task


@dataclass(frozen=True)
class TaskTimes:
    """When a task starts and ends, and how many of the cycles between it waits."""

    start: int
    end: int
    waited: int


@dataclass
class _Access:
    """The sampled accesses of one port: local times of the access, and when a wait for it takes effect."""

    channel: int
    """Its position among the task's own channels."""
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
        read_at = np.concatenate([a.waits for a in self.reads] or [empty])
        write_at = np.concatenate([a.waits for a in self.writes] or [empty])
        self.read_order = np.argsort(read_at, kind="stable")
        self.write_order = np.argsort(write_at, kind="stable")
        sorted_reads, sorted_writes = read_at[self.read_order], write_at[self.write_order]

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


@dataclass
class Work:
    """What a task does whatever it waits for: its nests, and the tokens of the channels that it reads and writes."""

    nests: list[_Nest]
    indices: tuple[Times, ...]
    reads: tuple[int, ...]
    """Positions of the channels that it reads, and writes, in the order in which its ports name them first."""
    writes: tuple[int, ...]
    claims: tuple[int, ...]

    @cached_property
    def busy(self) -> int:
        return sum(n.latency + _GAP for n in self.nests) - _GAP


@dataclass(frozen=True, eq=False)
class Run:
    """When a task reads and writes, by position of the channel, given when its tokens come and its slots are free."""

    read: dict[int, Times]
    written: dict[int, Times]
    claimed: dict[int, Times]
    times: TaskTimes


def work_of(
    task: Task, names: Mapping[str, int], indices: tuple[Times, ...], *, share: float, flushing: bool, read_stage: int
) -> Work:
    """`names` gives each channel its position, `indices` the tokens to look at; `share` is cycles a bit of traffic."""
    base: dict[int, int] = {}
    nests = [_nest(task, s, names, base, indices, share) for s in task.nests]
    for nest in nests:
        nest.prepare(flushing, read_stage)
    reads = dict.fromkeys(a.channel for n in nests for a in n.reads)
    writes = dict.fromkeys(a.channel for n in nests for a in n.writes)
    claims = dict.fromkeys(a.channel for n in nests for a in n.writes if a.is_block)
    return Work(nests, indices, tuple(reads), tuple(writes), tuple(claims))


def _nest(
    task: Task,
    schedule: NestSchedule,
    names: Mapping[str, int],
    base: dict[int, int],
    indices: Sequence[Times],
    share: float,
) -> _Nest:
    period = max([float(schedule.ii), *(p.bits * share for p in schedule.ports if p.kind == "external")])
    nest = _Nest(schedule, period, [], [])
    for port in schedule.ports:
        if port.kind == "external":
            continue
        channel = names[task.channel(port.channel)]
        first = base.get(channel, 0)
        pattern = handovers(port, schedule)
        base[channel] = first + pattern.count
        index = indices[channel]
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


def run_task(work: Work, arrivals: Mapping[int, Times], freed: Mapping[int, Times]) -> Run:
    """One run of a task. Tokens of `arrivals` were written then; without `freed` there is always a slot."""
    run = Run(
        {position: np.empty(work.indices[position].shape, np.int64) for position in work.reads},
        {position: np.empty(work.indices[position].shape, np.int64) for position in work.writes},
        {position: np.empty(work.indices[position].shape, np.int64) for position in work.claims},
        TaskTimes(0, 0, 0),
    )
    start, waited, begun = 0, 0, 0
    for number, nest in enumerate(work.nests):
        late_reads = [arrivals[a.channel][a.part] + 1 - (start + a.waits) for a in nest.reads]
        late_writes = [freed[a.channel][a.part] - (start + a.waits) for a in nest.writes] if freed else []
        reads = _running_max(late_reads, nest.read_order)
        writes = _running_max(late_writes, nest.write_order) if freed else None
        for access, seen in zip(nest.reads, nest.reads_seen, strict=True):
            run.read[access.channel][access.part] = start + access.local + _offset(reads, writes, seen)
        for access, seen in zip(nest.writes, nest.writes_seen, strict=True):
            run.written[access.channel][access.part] = start + access.local + _offset(reads, writes, seen)
        for access, seen in zip(nest.writes, nest.claims_seen, strict=True):
            if access.is_block:
                run.claimed[access.channel][access.part] = start + access.waits + _offset(reads, writes, seen)
        wait = int(reads[-1]) if writes is None else int(max(reads[-1], writes[-1]))
        if number == 0:
            # a wait before the first read is no work yet
            begun = max([0, *(int(late[0]) for late in late_reads if late.size)])
        waited += wait
        start += nest.latency + wait + _GAP
    return replace(run, times=TaskTimes(begun, start - _GAP, waited - begun))


def _offset(reads: Times, writes: Times | None, seen: tuple[Times, Times]) -> Times:
    """How late an access is, by what the nest has waited for before it."""
    return reads[seen[0]] if writes is None else np.maximum(reads[seen[0]], writes[seen[1]])


def _running_max(parts: list[Times], order: Times) -> Times:
    """Largest lateness of the first n accesses in local order, from n = 0; never negative."""
    late = np.concatenate([*parts])[order] if parts else np.zeros(0, np.int64)
    return np.concatenate(([0], np.maximum(np.maximum.accumulate(late), 0) if late.size else late))
