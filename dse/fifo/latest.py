"""Depths by the latest schedule: everything as late as it can be without a frame ending later.

A run in which no FIFO is full does everything as soon as it can, so that tokens wait behind tasks that are done early:
often after they have become wider, as rows that have become windows do. The latest schedule goes the other way, from
the ends of the frames back to the inputs. What is read then must have been written the cycle before; a pipeline whose
write has until then stood still before it, as one clock; and so its reads are later, too. One that flushes goes on with
what is in it: its iterations are later one by one, none by more than those after it. Tokens wait as far up as they can,
where full FIFOs keep them. The schedule shows that its depths suffice: a run with them does nothing later.

What loads fill may have a limit. A load that shares its port brings a tensor in its turn, however late its reader
wants it; so the reader takes it early enough for the limit, and what it makes waits behind it, where that is narrow.

Memories are thought to bring words at an even pace, and a pipeline that flushes to write whenever it wants to: a full
FIFO would stop what is in it, too. What that leaves out is for the simulation to say.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from penstock.compiler.jit import Ints
from penstock.compiler.simulator import Network, Phase, Rules, SimulatedProcess
from penstock.compiler.simulator.plan import cycles_a_word, stage_of
from penstock.profiling.channel_times import most_held
from penstock.profiling.sampling import iterations_of

_MOST_TOKENS = 40_000_000  # of all frames together: a second or two
_MOST_SWEEPS = 16  # after which blocks may still wait for each other; the simulation says whether that matters
NEVER = 1 << 60


@dataclass(frozen=True)
class OwnAccess:
    """Of one process to one channel, all tokens of all frames, at its own times if it never waits.

    `first` is when it takes hold of a token or a slot, `last` when it hands it on; the same, but for blocks. `after`
    are times of its own clock: what is later there is no earlier for what this waits for. Of a pipeline that stands
    still as a whole that is when all this happens, of one that flushes, behind the last stage that reads, when its
    iteration was there.
    """

    channel: str
    writes: bool
    first: Ints
    last: Ints
    after: tuple[Ints, Ints]
    """For `first` and for `last`."""

    @property
    def at_once(self) -> bool:
        return self.last is self.first


@dataclass(frozen=True)
class OwnTimes:
    """A process by itself: its accesses, and when its frames end."""

    accesses: tuple[OwnAccess, ...]
    ends: Ints


@dataclass(frozen=True)
class LatestSchedule:
    """Of processes, readers first, that are as late as their clocks say; a depth for every FIFO; when frames end."""

    depths: Mapping[str, int]
    processes: Sequence[tuple[OwnTimes, OwnClock]]
    ends: Ints


def latest_depths(network: Network, rules: Rules, ends: Sequence[int]) -> Mapping[str, int] | None:
    """A depth for every FIFO with which frames end by `ends`; None where there is no such schedule."""
    found = latest_schedule(network, rules, ends)
    return None if found is None else found.depths


def latest_schedule(
    network: Network, rules: Rules, ends: Sequence[int], limits: Mapping[str, int] | None = None
) -> LatestSchedule | None:
    """The latest schedule with which frames end by `ends`, and FIFOs in `limits` hold no more if there is one.

    None where that would take long, where processes feed each other in a cycle, and where blocks pass between whole
    processes.
    """
    graph: nx.DiGraph[str] = nx.DiGraph(list(network.ends().values()))
    many = len(ends) * sum(network.tokens().values()) > _MOST_TOKENS
    if many or any(c.kind == "pipo" for c in network.channels) or not nx.is_directed_acyclic_graph(graph):
        return None
    paces = {name: float(cycles) for name, cycles in cycles_a_word(network).items()}
    own = {p.name: _own(p, rules, len(ends), paces) for p in network.processes}
    connected = [own[name] for name in reversed(list(nx.topological_sort(graph))) if own[name].accesses]
    rooms = blocks_of(network)
    if limits and (found := _settled(connected, np.array(ends), limits, rooms)) is not None:
        return found
    return _settled(connected, np.array(ends), {}, rooms)


def _settled(
    processes: Sequence[OwnTimes], ends: Ints, limits: Mapping[str, int], rooms: Mapping[str, int]
) -> LatestSchedule | None:
    """The latest schedule in which slots of what has `limits`, and blocks of what has `rooms`, are given back in time;
    with limits None where something would have to begin before there is anything."""
    sweeps = _Sweeps(processes, ends, {**limits, **rooms})
    for left in reversed(range(_MOST_SWEEPS)):
        sweeps.sweep()
        if limits and not sweeps.begin_in_time:
            return None
        if not sweeps.stale or not left:
            break
    return LatestSchedule(sweeps.depths(rooms), list(zip(processes, sweeps.clocks, strict=True)), ends)


class _Sweeps:
    """Processes, readers first, as late as their writes may be, and as what is to be given back by then; of channels
    with `counts` that is a slot or a block so many tokens before the next one is written.

    What is given back sooner makes its reader earlier, and what that reads; so it goes on while any is `stale`.
    """

    def __init__(self, processes: Sequence[OwnTimes], ends: Ints, counts: Mapping[str, int]) -> None:
        self._bounded = [_Bounded(process, counts) for process in processes]
        self._ends, self._counts = ends, counts
        of_process = [(n, place, a) for n, own in enumerate(processes) for place, a in enumerate(own.accesses)]
        self._written = {access.channel: (number, place) for number, place, access in of_process if access.writes}
        self._reader = {access.channel: number for number, _, access in of_process if not access.writes}
        self._clocks: dict[int, OwnClock] = {}
        self._read: dict[str, Ints] = {}  # when tokens are taken, and given back
        self._given: dict[str, Ints] = {}
        self._due: dict[str, Ints] = {}  # by when they are to be, where they were not
        self.stale = set(range(len(processes)))

    @property
    def clocks(self) -> list[OwnClock]:
        return [self._clocks[number] for number in range(len(self._bounded))]

    @property
    def begin_in_time(self) -> bool:
        return all(clock.begins_in_time for clock in self._clocks.values())

    def depths(self, rooms: Container[str]) -> dict[str, int]:
        """Of every FIFO, what it holds at most."""
        found: dict[str, int] = {}
        for channel, (writer, place) in self._written.items():
            if channel not in rooms:
                first, _ = self._bounded[writer].at(place, self._clocks[writer])
                found[channel] = most_held(np.arange(len(first)), first, self._given[channel])
        return found

    def sweep(self) -> None:
        changed = set[str]()
        for number in range(len(self._bounded)):
            if number in self.stale:
                changed |= self._put(number)
        self.stale = set[int]()
        for channel in changed:
            self._check(channel)

    def _put(self, number: int) -> set[str]:
        """A process as late as it may be; which channels with counts that changes."""
        process = self._bounded[number]
        clock = self._clocks[number] = process.clock(self._ends, self._read, self._due)
        for place, access in enumerate(process.own.accesses):
            if access.writes:
                continue
            first, last = process.at(place, clock)
            was = self._read.get(access.channel)
            self._read[access.channel], self._given[access.channel] = first, last
            if was is None or not np.array_equal(was, first):
                self.stale.add(self._written[access.channel][0])
        return {access.channel for access in process.own.accesses if access.channel in self._counts}

    def _check(self, channel: str) -> None:
        """Whether slots or blocks are given back in time; if not, when that is."""
        count, (writer, place) = self._counts[channel], self._written[channel]
        first, _ = self._bounded[writer].at(place, self._clocks[writer])
        due = first[count:] - 1
        if len(due) and (self._given[channel][: len(due)] > due).any():
            self._due[channel] = np.append(due, np.full(min(count, len(first)), self._ends[-1]))
            self.stale.add(self._reader[channel])


class _Bounded:
    """A process, and what says how late it may be: its ends, its writes, and its reads of channels in `counts`."""

    def __init__(self, own: OwnTimes, counts: Container[str]) -> None:
        self.own = own
        self._accesses = [access for access in own.accesses if access.writes or access.channel in counts]
        times = np.concatenate([own.ends, *[access.after[1] for access in self._accesses]])
        self._order = np.argsort(times, kind="stable")
        self._times = times[self._order]
        self._places: dict[tuple[int, int], Ints] = {}  # of what accesses come after, among these times

    def at(self, place: int, clock: OwnClock) -> tuple[Ints, Ints]:
        """When tokens of one of its accesses pass: `first` and `last`."""
        access = self.own.accesses[place]
        first = access.first + clock.after(self._found(place, 0))
        return first, first if access.at_once else access.last + clock.after(self._found(place, 1))

    def _found(self, place: int, side: int) -> Ints:
        if (place, side) not in self._places:
            self._places[place, side] = self._times.searchsorted(self.own.accesses[place].after[side])
        return self._places[place, side]

    def clock(self, ends: Ints, read: Mapping[str, Ints], due: Mapping[str, Ints]) -> OwnClock:
        spare = [ends - self.own.ends]
        for access in self._accesses:
            if access.writes:
                spare.append(read[access.channel] - 1 - access.last)
            elif access.channel in due:
                spare.append(due[access.channel] - access.last)
            else:
                spare.append(np.full(len(access.last), NEVER))
        return OwnClock(self._times, np.concatenate(spare)[self._order])


def blocks_of(network: Network) -> dict[str, int]:
    """How many blocks each channel of such has."""
    return {c.name: c.depth or 1 for c in network.channels if c.kind == "block"}


class OwnClock:
    """A process's own clock, which may stand still but never goes back, as late as `spare` lets it be at each time."""

    def __init__(self, times: Ints, spare: Ints) -> None:
        """Of times in their order."""
        self._times = times
        self._late = np.minimum.accumulate(spare[::-1])[::-1]

    @property
    def begins_in_time(self) -> bool:
        """Whether it is nowhere earlier than by itself."""
        return bool(self._late[0] >= 0)

    def late(self, times: Ints) -> Ints:
        """By how much: no more than what comes at the same time or after it lets it be; all come before an end."""
        return self.after(self._times.searchsorted(times))

    def after(self, places: Ints) -> Ints:
        """The same by places among the times that it knows."""
        return self._late[places]


def _own(process: SimulatedProcess, rules: Rules, frames: int, paces: Mapping[str, float]) -> OwnTimes:
    found: dict[tuple[str, bool], list[OwnAccess]] = {}
    begun = rules.first_phase_delay if len(process.phases) > 1 else 0
    for number, phase in enumerate(process.phases):
        begun += rules.phase_gap if number else 0
        brought = [paces[a.channel] * a.tokens / phase.iterations for a in phase.accesses if a.channel in paces]
        period = max([float(phase.ii), *brought])
        for access in _accesses(phase, rules, period, begun, paces):
            found.setdefault((access.channel, access.writes), []).append(access)
        begun += int((phase.iterations - 1) * period) + phase.depth
    starts = (begun + rules.start_gap) * np.arange(frames)[:, None]

    def in_all(parts: Sequence[Ints]) -> Ints:
        return (starts + np.concatenate(parts)).ravel()

    accesses: list[OwnAccess] = []
    for (channel, writes), parts in found.items():
        first = in_all([part.first for part in parts])
        last = first if all(part.last is part.first for part in parts) else in_all([part.last for part in parts])
        after = (in_all([part.after[0] for part in parts]), in_all([part.after[1] for part in parts]))
        accesses.append(OwnAccess(channel, writes, first, last, after))
    return OwnTimes(tuple(accesses), (starts + begun).ravel())


def _accesses(phase: Phase, rules: Rules, period: float, begun: int, memory: Container[str]) -> Iterator[OwnAccess]:
    """Those of one phase to channels, at the process's own times."""
    front = phase.length
    if rules.flushing if phase.flushes is None else phase.flushes:
        front = max((stage_of(a, phase, rules) for a in phase.accesses if a.direction == "read"), default=0)
    for access in phase.accesses:
        if access.channel in memory:
            continue
        stage = stage_of(access, phase, rules)
        iterations = iterations_of(access.pattern, np.arange(access.pattern.count)).repeat(access.count)
        first = last = begun + (iterations * period).astype(np.int64)
        if access.hold:
            last = begun + ((iterations + access.hold) * period).astype(np.int64)
        taken, held = first + stage, min(stage, front)
        given = taken if last is first else last + stage
        yield OwnAccess(access.channel, access.direction == "write", taken, given, (first + held, last + held))
