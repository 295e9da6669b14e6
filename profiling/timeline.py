"""When every token of a network is written and read.

A nest runs on a clock of its own that stands still while it has to wait. A read waits for its token to have
been written in an earlier cycle; a write waits for a slot that was freed in an earlier cycle; a block is
handed over whole. How long a nest has waited at any moment is the largest lateness of what it has met so far,
so all times follow from cumulative maxima over sorted accesses, with no stepping through cycles.

In a pipeline that stalls as a whole, a late read holds back everything behind and inside it; in one that
flushes, only the iterations that follow. Channels of many tokens are looked at in samples (`sampling.py`);
the figures are then approximate, and say so.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Sequence as KernelSequence
from penstock.compiler.simulator import Simulator
from penstock.profiling.bandwidth import memory_ports
from penstock.profiling.channel_times import ChannelTimes
from penstock.profiling.in_order import Found, Slots, times_in_order
from penstock.profiling.network import Task, TaskNetwork
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.sampling import Ends, Times, ends_of, sample_tokens
from penstock.profiling.simulated import rules_of, simulated_network
from penstock.profiling.task_times import TaskRun, TaskTimes, Work, run_task, work_of

_MOST_SWEEPS = 8  # after which times move a few tokens at once, in circles
_PAST = -(1 << 40)


@dataclass(frozen=True)
class Timeline:
    """The whole network's times. `exact` is False where channels were sampled."""

    tasks: dict[str, TaskTimes]
    channels: dict[str, ChannelTimes]
    busy: dict[str, int]
    """Cycles that each task takes if it never waits for another; external memory's pace is in it."""
    first_output: int
    exact: bool
    apart: int | None = None
    """Cycles between the last of several inputs, where more than one was followed."""

    @property
    def latency(self) -> int:
        return max(task.end for task in self.tasks.values())


class TimelineMemory:
    """What was found for earlier networks of the same schedules, platform and clock. It forgets all when it is full.

    Everything is looked up by the identity of what it follows from, which is kept beside it.
    """

    def __init__(self, most_bytes: int = 1 << 28) -> None:
        self.most_bytes = most_bytes
        self.clear()

    def clear(self) -> None:
        self._bytes = 0
        self.ends: dict[int, tuple[Ends, object]] = {}
        self.samples: dict[Hashable, Times] = {}
        self.work: dict[Hashable, tuple[Work, object]] = {}
        self.runs: dict[Hashable, tuple[TaskRun, object]] = {}
        self.channels: dict[Hashable, ChannelTimes] = {}
        self.slots: dict[tuple[int, int, bool], tuple[int, Times, Times]] = {}

    def grow(self, size: int) -> None:
        self._bytes += size + 1024

    def make_room(self) -> None:
        """Between two networks: what one is made of must not go while it is looked at."""
        if self._bytes > self.most_bytes:
            self.clear()

    def ends_of(self, task: Task) -> Ends:
        found = self.ends.get(id(task.nests))
        if found is None:
            found = self.ends[id(task.nests)] = (ends_of(task.nests), task.nests)
            self.grow(0)
        return found[0]

    def slots_of(self, index: Times, depth: int, *, early: bool = False) -> tuple[int, Times]:
        """The first sample that has to wait for a slot, and for it and all later ones the sample that frees theirs.

        That is the nearest sample not before the token whose slot is needed, unless that is itself: later is safe. With
        `early` it is the nearest one not after it: then nobody waits who would not.
        """
        key = (id(index), depth, early)
        if key not in self.slots:
            first, place = slots_of(index, depth, early=early)
            self.slots[key] = (first, place, index)
            self.grow(place.nbytes)
        return self.slots[key][:2]


def slots_of(index: Times, depth: int, *, early: bool) -> Slots:
    """The same for any samples, which are found anew."""
    first = int(index.searchsorted(depth))
    if early:
        return first, index.searchsorted(index[first:] - depth, side="right") - 1
    place = index.searchsorted(index[first:] - depth)
    return first, place - (place >= np.arange(first, len(index)))


class FreeTimeline:
    """The times of a network in which no channel is ever full, and from these its times with any depths."""

    def __init__(
        self,
        network: TaskNetwork,
        *,
        read_stage: int,
        platform: Platform,
        clock_mhz: float,
        memory: TimelineMemory | None = None,
    ) -> None:
        memory = memory or TimelineMemory()
        memory.make_room()
        self.network, self.memory = network, memory
        self.read_stage = read_stage
        self.platform, self.clock_mhz = platform, clock_mhz
        ends = {task.name: memory.ends_of(task) for task in network.tasks}
        self.samples = sample_tokens(network, ends, memory.samples)
        whole = _cycles_a_bit(platform, clock_mhz)
        self.shares = {name: whole / use.share for name, use in memory_ports(network, platform).items()}
        self.names = {task.name: [task.channel(p) for p in ends[task.name].ports] for task in network.tasks}
        self.work = {task.name: self._work(task, ends[task.name]) for task in network.tasks}
        self._busy = {name: work.busy for name, work in self.work.items()}
        self.written: dict[str, Times] = {}
        self.claimed: dict[str, Times] = {}
        self.read: dict[str, Times] = {}
        self.times: dict[str, TaskTimes] = {}
        self.apart: int | None = None
        self._early = False
        self._runs: dict[Hashable, tuple[TaskRun, object, object]] = {}
        self._freed: dict[Hashable, tuple[Times, object]] = {}
        self._ends: Mapping[str, tuple[str, str]] = {}
        self._waiting: set[str] = set()
        self._run_free()

    def _work(self, task: Task, ends: Ends) -> Work:
        indices = tuple([self.samples[name] for name in self.names[task.name]])
        share = self.shares.get(task.name, 0.0)
        key = (id(task.nests), share, *map(id, indices))
        found = self.memory.work.get(key)
        if found is None:
            work = work_of(task.nests, ends, indices, share=share, read_stage=self.read_stage)
            found = self.memory.work[key] = (work, task.nests)
            self.memory.grow(work.bytes)
        return found[0]

    def _run_free(self) -> None:
        """Every task once, writers first, as if no channel were ever full."""
        if self.network.has_circles:
            self._run_circles()
            return
        for task in self.network.tasks:
            work, names = self.work[task.name], self.names[task.name]
            arrivals = {position: self.written[names[position]] for position in work.reads}
            key = (id(work), *map(id, arrivals.values()))
            found = self.memory.runs.get(key)
            if found is None:
                run = run_task(work, arrivals, {})
                found = self.memory.runs[key] = (run, (work, arrivals))
                self.memory.grow(sum(times.nbytes for times in (*run.read.values(), *run.written.values())))
            self._take(task, found[0])

    def _run_circles(self) -> None:
        """The same where tokens come back: at the times that the simulator finds for them."""
        found = simulated_network(self.network, self.platform, self.clock_mhz)
        assert not isinstance(found, KernelSequence), "a task program is one kernel"
        for one in Simulator(found, rules_of(self.platform, self.clock_mhz)).free_run().tokens:
            name = one.channel.name
            self.written[name] = one.filled[self.samples[name]]
        for task in self.network.tasks:
            work, names = self.work[task.name], self.names[task.name]
            self._take(task, run_task(work, {position: self.written[names[position]] for position in work.reads}, {}))

    def _take(self, task: Task, run: TaskRun) -> None:
        names = self.names[task.name]
        self.read.update({names[position]: times for position, times in run.read.items()})
        self.written.update({names[position]: times for position, times in run.written.items()})
        self.claimed.update({names[position]: times for position, times in run.claimed.items()})
        self.times[task.name] = run.times

    def followed(self, network: TaskNetwork, inputs: int, *, seen: bool = False) -> Timeline:
        """The times of the first of several inputs where full channels make their writers wait, and how far apart the
        last ones end: of the same network, with any depths. Not where tokens come back."""
        settled = self._with_depths_of(network)
        settled._follow(seen, inputs)
        return settled.result()

    def bounded(self, network: TaskNetwork, *, seen: bool = False) -> Timeline:
        """The same of one input alone.

        Of depths that were `seen` to run through, samples that stand in a circle say that samples are too few.
        """
        if not self._shallow(network):
            return self.result()
        settled = self._with_depths_of(network)
        settled._follow(seen, 1)
        return settled.result()

    def _shallow(self, network: TaskNetwork) -> list[str]:
        """The channels that would hold more than they have room for."""
        return [n for n, c in network.channels.items() if self._channel(n).high_water > c.depth]

    def _with_depths_of(self, network: TaskNetwork) -> FreeTimeline:
        """As it is, for times with the depths of a network to take the place of its own.

        Tasks that are alike and wait for the same are run once: what is known holds all that it is known by.
        """
        settled = copy(self)
        settled.network = network
        settled.written, settled.claimed, settled.read = dict(self.written), dict(self.claimed), dict(self.read)
        settled.times = dict(self.times)
        settled._runs, settled._freed, settled._ends, settled._waiting = {}, {}, network.ends(), set()
        return settled

    def _follow(self, seen: bool, inputs: int) -> None:
        """Every access once, in order."""
        found = self._in_order(inputs)
        if found.stuck and seen:
            self._early = True
            self._freed.clear()
            found = self._in_order(inputs)
        if found.stuck and seen and self.network.has_circles:
            self._sweep_through()  # accesses are looked at port by port, which says too little where tokens come back
            return
        if found.stuck:
            raise ProfilingError(
                "deadlock", what="the network does not settle with these channel depths",
                where=", ".join(sorted(found.stuck)),
                limit="depths " + ", ".join(str(self.network.channels[n].depth) for n in sorted(found.stuck)),
                hint="deepen these channels, or leave their depths to the tool",
            )  # fmt: skip
        self.written, self.read = found.written, found.read
        self.apart = _apart(found.ends)
        for task in self.network.tasks:
            self._run_again(task)

    def _in_order(self, inputs: int) -> Found:
        counts = {name: len(index) for name, index in self.samples.items()}
        return times_in_order(self.work, self.names, self._slots(inputs), counts, inputs)

    def _slots(self, inputs: int) -> dict[str, Slots]:
        """Which token of all inputs frees whose slot, by channel."""
        depths = {name: channel.depth for name, channel in self.network.channels.items()}
        if inputs == 1:
            return {name: self.memory.slots_of(self.samples[name], d, early=self._early) for name, d in depths.items()}
        repeated = {id(index): _repeated(index, inputs) for index in self.samples.values()}
        return {name: slots_of(repeated[id(self.samples[name])], d, early=self._early) for name, d in depths.items()}

    def _sweep_through(self) -> None:
        """Let full channels hold their writers back, task by task, until nothing moves or it would not soon end."""
        self._waiting = {self._ends[name][0] for name in self._shallow(self.network)}
        for _ in range(_MOST_SWEEPS):
            for task in (*self.network.tasks, *reversed(self.network.tasks)):
                if task.name in self._waiting:
                    self._waiting.discard(task.name)
                    self._run_again(task)
            if not self._waiting:
                return

    def _run_again(self, task: Task) -> None:
        """The task with the slots that its readers have freed so far. Whose times that changes has to be run again."""
        work, names = self.work[task.name], self.names[task.name]
        arrivals = {position: self.written[names[position]] for position in work.reads}
        freed = {position: self._free(names[position]) for position in work.writes}
        key = (id(work), *map(id, arrivals.values()), *map(id, freed.values()))
        if key not in self._runs:
            self._runs[key] = (run_task(work, arrivals, freed), arrivals, freed)
        run = self._runs[key][0]
        for found, held, end in (
            (run.read, self.read, 0),
            (run.written, self.written, 1),
            (run.claimed, self.claimed, 1),
        ):
            for position, times in found.items():
                name = names[position]
                if times is not held[name] and not np.array_equal(times, held[name]):
                    held[name] = times  # what did not move stays the same array, and is known
                    self._waiting.add(self._ends[name][end])
        self.times[task.name] = run.times

    def _free(self, name: str) -> Times:
        """From when a slot is free for each sampled token; the far past for those that find one at the start."""
        index, depth, read = self.samples[name], self.network.channels[name].depth, self.read[name]
        key = (id(index), depth, id(read))
        if key not in self._freed:
            first, place = self.memory.slots_of(index, depth, early=self._early)
            free = np.full(index.shape, _PAST, np.int64)
            free[first:] = read[place] + 1
            self._freed[key] = (free, read)
        return self._freed[key][0]

    def _channel(self, name: str) -> ChannelTimes:
        index, written, read = self.samples[name], self.written[name], self.read[name]
        claimed = self.claimed.get(name, written)
        key = (id(index), id(written), id(read), id(claimed))
        found = self.memory.channels.get(key)
        if found is None:  # it holds the arrays, so that their identities stay theirs
            found = self.memory.channels[key] = ChannelTimes(index, int(index[-1]) + 1, claimed, written, read)
            self.memory.grow(0)
        return found

    def result(self) -> Timeline:
        channels = {name: self._channel(name) for name in self.network.channels}
        exact = all(len(c.index) == c.count for c in channels.values())
        firsts = [
            int(self.read[name][0])
            for task in self.network.tasks
            if not self.work[task.name].writes
            for name in self.names[task.name]
        ]
        return Timeline(dict(self.times), channels, self._busy, min(firsts, default=0), exact, self.apart)


def _cycles_a_bit(platform: Platform, clock_mhz: float) -> float:
    """Of a bank of the memory with the most bandwidth that serves one port alone."""
    memory = platform.fastest_memory
    if memory is None:
        return 0.0  # no memory of its own: the host's link delivers, and is not modelled
    return 1 / memory.port_bits_a_cycle(clock_mhz)


def _apart(ends: Sequence[int]) -> int | None:
    """How far the last inputs are apart: the mean of two times, where every other input may be sooner."""
    latest = ends[-3:]
    return -(-(latest[-1] - latest[0]) // (len(latest) - 1)) if len(latest) > 1 else None


def _repeated(index: Times, inputs: int) -> Times:
    """The sampled tokens of as many inputs that follow each other."""
    count = int(index[-1]) + 1
    return np.concatenate([index + number * count for number in range(inputs)])
