"""When one task reads and writes each token, given when its tokens come and its slots are free.

A nest runs on a clock of its own that stands still while it has to wait. How long it has waited at any moment is the
largest lateness of what it has met so far, so all times follow from cumulative maxima over sorted accesses.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np

from penstock.compiler.schedule import NestSchedule
from penstock.profiling.sampling import Ends, Times, handovers, iterations_of

Lag = Times | int
"""Of each access, or of all alike."""
GAP = 2  # cycles between the nests of a task
_FEW = 3  # ports up to which it is not worth looking for those that are alike
_SEVERAL = 2.0  # cycles that an iteration is served in from which on the last of its words is late


@dataclass(frozen=True)
class TaskTimes:
    """When a task starts and ends, and how many of the cycles between it waits."""

    start: int
    end: int
    waited: int


@dataclass(frozen=True, eq=False)
class PortAccesses:
    """The sampled accesses of one port: local times of the access, and when a wait for it takes effect."""

    channel: int
    """Its position among the task's own channels."""
    local: Times
    waits: Times
    """Local time at which the access (or for a block, its first part) must be possible."""
    part: slice
    whole: bool
    """Whether no other nest of the task meets the channel."""
    is_block: bool


@dataclass(frozen=True, eq=False)
class _Lateness:
    """How late a nest is after so many accesses of one port: the largest lateness among them, 0 after none."""

    by: PortAccesses
    writes: bool
    values: Times
    most: int


@dataclass(eq=False)
class NestTimes:
    """One nest and its accesses. What each access sees of earlier waits never changes, and is found when asked for."""

    schedule: NestSchedule
    period: float
    reads: list[PortAccesses]
    writes: list[PortAccesses]
    issued: int
    """How much earlier than it writes an iteration last waits for what it reads."""
    latency: int
    _seen: dict[tuple[int, int, int], Times] = field(default_factory=dict[tuple[int, int, int], Times])

    def offset(self, access: PortAccesses, late: Sequence[_Lateness], *, issued: int = 0, claims: bool = False) -> Lag:
        """How late an access is, by what the nest has waited for before it; `claims` for the first part of a block.

        `issued` is how much earlier it no longer waits for what is read.
        """
        at = access.waits if claims else access.local
        found: Lag = 0
        for one in late if len(at) else ():
            most, earlier = one.most, 0 if one.writes else issued
            if isinstance(found, int) and most <= found:
                continue
            if int(one.values[1]) == most and int(one.by.waits[0]) <= int(at[0]) - earlier:
                found = max(found, most) if isinstance(found, int) else np.maximum(found, most)
                continue
            if one.by is access and (claims or not access.is_block):
                values = one.values[1:]  # each sees itself
            else:
                key = (id(at), id(one.by), earlier)
                if key not in self._seen:
                    self._seen[key] = one.by.waits.searchsorted(at - earlier if earlier else at, side="right")
                values = one.values[self._seen[key]]
            found = values if isinstance(found, int) and not found else np.maximum(found, values)
        return found


@dataclass(frozen=True, eq=False)
class Work:
    """What a task does whatever it waits for: its nests, and the tokens of the channels that it reads and writes."""

    nests: list[NestTimes]
    sizes: tuple[int, ...]
    """Tokens that are looked at of each channel."""
    reads: tuple[int, ...]
    """Positions of the channels that it reads, and writes, in the order in which its ports name them first."""
    writes: tuple[int, ...]
    busy: int

    @property
    def bytes(self) -> int:
        return 32 * sum(self.sizes)


@dataclass(frozen=True, eq=False)
class TaskRun:
    """When a task reads and writes, by position of the channel, given when its tokens come and its slots are free."""

    read: dict[int, Times]
    written: dict[int, Times]
    claimed: dict[int, Times]
    times: TaskTimes


def work_of(
    nests: Sequence[NestSchedule], ends: Ends, indices: tuple[Times, ...], *, share: float, read_stage: int,
) -> Work:  # fmt: skip
    """`indices` are the tokens to look at by port of `ends`; `share` is cycles a bit of external traffic takes."""
    positions = {port: position for position, port in enumerate(ends.ports)}
    base: dict[int, int] = {}
    found: list[NestTimes] = []
    for schedule in nests:
        external = [p for p in schedule.ports if p.kind == "external"]
        period = max([float(schedule.ii), *(p.bits * share for p in external)])
        served = max([0.0, *(p.bits * share for p in external if p.direction == "read")])
        late = ceil(served) - 1 if served >= _SEVERAL and served > schedule.ii else 0  # else its stages have it
        accesses = _accesses(schedule, period, late, positions, base, ends, indices)
        reads = [access for access, direction in accesses if direction == "read"]
        writes = [access for access, direction in accesses if direction == "write"]
        waits = max([p.stage for p in schedule.ports if p.direction == "read" and p.kind != "external"] or [read_stage])
        stage = next((p.stage for p in schedule.ports if p.direction == "write"), waits)
        latency = ceil(period * (schedule.slots - 1)) + schedule.depth + late
        issued = max(0, stage - waits) if schedule.flushes else 0
        found.append(NestTimes(schedule, period, reads, writes, issued, latency))
    read = dict.fromkeys(a.channel for n in found for a in n.reads)
    written = dict.fromkeys(a.channel for n in found for a in n.writes)
    busy = sum(n.latency + GAP for n in found) - GAP
    return Work(found, tuple([len(index) for index in indices]), tuple(read), tuple(written), busy)


def _accesses(
    schedule: NestSchedule, period: float, late: int, positions: Mapping[str, int], base: dict[int, int], ends: Ends,
    indices: Sequence[Times],
) -> list[tuple[PortAccesses, str]]:  # fmt: skip
    """The accesses of one nest with their directions. `base` counts the tokens that earlier nests passed; an iteration
    writes so `late` as external memory brings the last of its words after the first."""
    found: list[tuple[PortAccesses, str]] = []
    known: dict[Hashable, Times] = {}
    for port in schedule.ports:
        if port.kind == "external":
            continue
        channel = positions[port.channel]
        first, pattern, tokens = base.get(channel, 0), handovers(port, schedule), indices[channel]
        base[channel] = first + pattern.count
        whole, part = pattern.count == ends.counts[channel], slice(0, len(tokens))
        if not whole:
            low, high = tokens.searchsorted([first, first + pattern.count])
            part = slice(int(low), int(high))
            tokens = tokens[part] - first
        stage = port.stage + late * (port.direction == "write")
        key = (pattern, stage, id(indices[channel]), first)  # ports that are met alike share their times
        if key not in known:
            known[key] = _cycles(iterations_of(pattern, tokens), period) + stage
        waits = local = known[key]
        if port.kind == "block":
            iterations = iterations_of(pattern, tokens)
            # a block passes at its last access, but must be there (or be free) at its first
            local = _cycles(iterations + (schedule.block_iterations - 1), period) + stage
        found.append((PortAccesses(channel, local, waits, part, whole, port.kind == "block"), port.direction))
    return found


def _cycles(iterations: Times, period: float) -> Times:
    if period.is_integer():
        return iterations * int(period)
    return np.ceil(iterations * period).astype(np.int64)


def run_task(work: Work, arrivals: Mapping[int, Times], freed: Mapping[int, Times]) -> TaskRun:
    """One run of a task. Tokens of `arrivals` were written then; slots that `freed` does not name are always there."""
    read: dict[int, Times] = {}
    written: dict[int, Times] = {}
    claimed: dict[int, Times] = {}
    start, waited, begun = 0, 0, 0
    for number, nest in enumerate(work.nests):
        late = [_lateness(a, False, arrivals[a.channel], start - 1) for a in nest.reads]
        if number == 0:
            # a wait before the first read is no work yet
            begun = max([0, *(int(one.values[1]) for one in late if len(one.values) > 1)])
        late += [_lateness(a, True, freed[a.channel], start) for a in nest.writes if a.channel in freed]
        late = _distinct([one for one in late if one.most > 0])
        alike: dict[int, Times] = {}
        for access in nest.reads:
            if not _taken(alike, read, access):
                _put(read, access, access.local, nest.offset(access, late), start, work)
                _keep(alike, read, access)
        alike = {}
        for access in nest.writes:
            if not _taken(alike, written, access):
                _put(written, access, access.local, nest.offset(access, late, issued=nest.issued), start, work)
                _keep(alike, written, access)
            if access.is_block:
                _put(claimed, access, access.waits, nest.offset(access, late, claims=True), start, work)
        wait = max([0, *(one.most for one in late)])
        waited += wait
        start += nest.latency + wait + GAP
    return TaskRun(read, written, claimed, TaskTimes(begun, start - GAP, waited - begun))


def _distinct(late: list[_Lateness]) -> list[_Lateness]:
    """Without those that say what another says: of ports that are met alike, and wait for the same."""
    if len(late) <= _FEW:
        return late
    found: dict[Hashable, _Lateness] = {}
    for one in late:
        alike = (id(one.by.waits), one.writes, one.by.is_block, one.values.tobytes())
        found.setdefault(alike, one)
    return list(found.values())


def _taken(alike: Mapping[int, Times], times: dict[int, Times], access: PortAccesses) -> bool:
    """Whether a port of the nest that is met alike has passed its tokens: this one does so in the same cycles."""
    found = alike.get(id(access.local)) if access.whole and not access.is_block else None
    if found is not None:
        times[access.channel] = found
    return found is not None


def _keep(alike: dict[int, Times], times: Mapping[int, Times], access: PortAccesses) -> None:
    if access.whole and not access.is_block:
        alike[id(access.local)] = times[access.channel]


def _lateness(access: PortAccesses, writes: bool, possible: Times, start: int) -> _Lateness:
    """Of the accesses of one port, each of which is `possible` from a cycle on, by a nest that starts at `start`."""
    values = np.empty(len(access.waits) + 1, np.int64)
    values[0] = 0
    np.subtract(possible if access.whole else possible[access.part], access.waits, out=values[1:])
    if start:
        values[1:] -= start
    np.maximum.accumulate(values, out=values)
    return _Lateness(access, writes, values, int(values[-1]))


def _put(times: dict[int, Times], access: PortAccesses, local: Times, offset: Lag, start: int, work: Work) -> None:
    """Cycles of accesses at local times, so late in a nest that starts at `start`, where they belong."""
    late = offset + start
    found = local if isinstance(late, int) and not late else local + late
    if access.whole:
        times[access.channel] = found
        return
    if access.channel not in times:
        times[access.channel] = np.empty(work.sizes[access.channel], np.int64)
    times[access.channel][access.part] = found
