"""A network as the engine's memory: rows of integers that point to each other, and the names behind them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

import numpy as np

from penstock.compiler.jit import Ints
from penstock.compiler.platforms import MEMORY_EFFICIENCY
from penstock.compiler.platforms.sharing import shares
from penstock.compiler.schedule import TokenPattern
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.network import Channel, ChannelAccess, Network, Phase, SimulatedProcess
from penstock.compiler.simulator.rules import Rules


@dataclass(frozen=True)
class PlannedChannel:
    """A channel of the plan: one writer and one reader. A pipo with several ends is several links."""

    channel: Channel
    writer: int
    reader: int
    address: int
    tokens: int


@dataclass(frozen=True)
class Meeting:
    """Where a process meets a channel or memory port: what a port or a start of the memory stands for."""

    process: int
    channel: str
    link: int
    """-1 for a memory port."""
    reads: bool
    memory: bool
    at_start: bool


@dataclass(frozen=True)
class SimulationPlan:
    """The memory before a run, without what depends on depths and frames."""

    memory: Ints
    processes: tuple[str, ...]
    addresses: tuple[int, ...]
    """Of the processes' rows."""
    links: tuple[PlannedChannel, ...]
    link_addresses: Ints
    meetings: dict[int, Meeting]
    """By the address of the port or start."""
    busy: tuple[int, ...]
    accesses: int
    """Events in one frame: what a simulation's time is proportional to."""


def stage_of(access: ChannelAccess, phase: Phase, rules: Rules) -> int:
    """The stage of an access: as the network says, or by the rules."""
    if access.stage is not None:
        return access.stage
    return min(rules.read_stage, phase.depth - 1) if access.direction == "read" else phase.depth - 1


def plan_network(network: Network, rules: Rules) -> SimulationPlan:
    """The plan of a network that `check_network` has let pass."""
    return _Planner(network, rules).plan()


@dataclass
class _Planner:
    network: Network
    rules: Rules
    memory: list[int] = field(default_factory=lambda: [0] * at.HEADER)
    links: list[PlannedChannel] = field(default_factory=list[PlannedChannel])
    meetings: dict[int, Meeting] = field(default_factory=dict[int, Meeting])
    events: int = 0

    def plan(self) -> SimulationPlan:
        self.index = {p.name: i for i, p in enumerate(self.network.processes)}
        self.paces = {name: ceil(cycles * at.TICKS) for name, cycles in cycles_a_word(self.network).items()}
        self.ports = {p.name: p for p in self.network.ports}
        self.latency = {m.name: m.latency for m in self.network.memories}
        self._links()
        self.by_name = {link.channel.name: i for i, link in enumerate(self.links)}
        self.read_by: list[list[int]] = [[] for _ in self.index]
        self.written_by: list[list[int]] = [[] for _ in self.index]
        for i, link in enumerate(self.links):
            self.read_by[link.reader].append(i)
            self.written_by[link.writer].append(i)
        rows = self._rows(len(self.index), at.PROCESS_SIZE)
        first, last = at.PROCESSES, at.PROCESSES_END
        self._set(0, {at.START_GAP: self.rules.start_gap, at.NEAR: rows[0], at.FAR_BACK: rows[0],
                      first: rows[0], last: rows[-1] + at.PROCESS_SIZE})  # fmt: skip
        for link in self.links:
            self._set(link.address, {at.WRITER: rows[link.writer], at.READER: rows[link.reader]})
        for number, (row, process) in enumerate(zip(rows, self.network.processes, strict=True)):
            self._process(number, row, process)
            self._wakes(number, row, rows)
        phases = [list(p.phases) for p in self.network.processes]
        busy = tuple(sum(f.length for f in own) + self._delays(len(own)) for own in phases)
        return SimulationPlan(
            memory=np.array(self.memory, np.int64),
            processes=tuple(self.index),
            addresses=tuple(rows),
            links=tuple(self.links),
            link_addresses=np.array([link.address for link in self.links], np.int64),
            meetings=self.meetings,
            busy=busy,
            accesses=self.events,
        )

    def _delays(self, phases: int) -> int:
        return sum(self._delay(i, phases) for i in range(phases))

    def _delay(self, position: int, phases: int) -> int:
        if position:
            return self.rules.phase_gap
        return self.rules.first_phase_delay if phases > 1 else 0

    def _rows(self, count: int, size: int) -> list[int]:
        start = len(self.memory)
        self.memory += [0] * (count * size)
        return [start + i * size for i in range(count)]

    def _list(self, values: Sequence[int]) -> tuple[int, int]:
        start = len(self.memory)
        self.memory += values
        return start, len(self.memory)

    def _set(self, row: int, values: dict[int, int]) -> None:
        for offset, value in values.items():
            self.memory[row + offset] = int(value)

    def _links(self) -> None:
        ends, tokens = self.network.ends(), self.network.tokens()
        pairs: list[tuple[Channel, str, str]] = []
        for channel in self.network.channels:
            if channel.kind == "pipo":
                pairs += [(channel, w, r) for w in channel.producers for r in channel.consumers]
            else:
                pairs.append((channel, *ends[channel.name]))
        rows = self._rows(len(pairs), at.CHANNEL_SIZE)
        begin = rows[0] if rows else 0
        self._set(0, {at.CHANNELS: begin, at.CHANNELS_END: begin + len(rows) * at.CHANNEL_SIZE})
        self.links = [
            PlannedChannel(channel, self.index[writer], self.index[reader], row, tokens[channel.name])
            for (channel, writer, reader), row in zip(pairs, rows, strict=True)
        ]
        for row, (channel, _, _) in zip(rows, pairs, strict=True):
            fills, takes, claims = self._rows(3, at.SEQUENCE_SIZE)
            self._set(row, {at.FIRST_FILL: -1, at.FIRST_TAKE: -1, at.FILLS: fills, at.TAKES: takes,
                            at.CLAIMS: fills if channel.kind == "fifo" else claims})  # fmt: skip

    def _process(self, number: int, row: int, process: SimulatedProcess) -> None:
        waits = [(i, reads) for reads in (True, False) for i in (self.read_by if reads else self.written_by)[number]]
        waits = [(i, self.links[i], reads) for i, reads in waits if self.links[i].channel.kind == "pipo"]
        starts = self._rows(len(waits), at.START_SIZE)
        for start, (i, link, reads) in zip(starts, waits, strict=True):
            flags = at.TOKEN | at.TAKE if reads else at.SLOT | at.FILL
            self._set(start, {at.START_CHANNEL: link.address, at.START_FLAGS: flags})
            self.meetings[start] = Meeting(number, link.channel.name, i, reads, memory=False, at_start=True)
        begin = starts[0] if starts else 0
        phases = self._rows(len(process.phases), at.PHASE_SIZE)
        self._set(row, {at.STARTS: begin, at.STARTS_END: begin + len(starts) * at.START_SIZE, at.PHASE: phases[0],
                        at.FIRST_PHASE: phases[0], at.PHASES_END: phases[-1] + at.PHASE_SIZE, at.READY: 1,
                        at.LOG_AT: number * 2 * at.LOG})  # fmt: skip
        for position, (phase_row, phase) in enumerate(zip(phases, process.phases, strict=True)):
            self._phase(number, phase_row, phase, self._delay(position, len(phases)))

    def _wakes(self, number: int, row: int, rows: list[int]) -> None:
        others = {self.links[i].writer for i in self.read_by[number]}
        others |= {self.links[i].reader for i in self.written_by[number]}
        begin, end = self._list([rows[p] for p in sorted(others)])
        self._set(row, {at.WAKES: begin, at.WAKES_END: end})

    def _phase(self, number: int, row: int, phase: Phase, delay: int) -> None:
        accesses = [a for a in phase.accesses if a.pattern.count]
        stages = [stage_of(a, phase, self.rules) for a in accesses]
        front = max((s for s, a in zip(stages, accesses, strict=True) if a.direction == "read"), default=0)
        met = [a.channel for a in accesses]
        wanted: list[tuple[ChannelAccess, int, int, int]] = []  # access, stage, flags, iterations later
        for access, stage in zip(accesses, stages, strict=True):
            read = access.direction == "read"
            back = at.BACK if not read and stage > front else 0
            takes, gives = (at.TOKEN, at.TAKE) if read else (at.SLOT, at.FILL)
            if access.channel in self.ports:
                simple = at.SIMPLE if access.count == 1 else 0
                wanted.append((access, stage, (at.LOAD if read else at.STORE) | back | simple, 0))
            elif access.hold:
                wanted += [(access, stage, takes | back, 0), (access, stage, gives | back, access.hold)]
            else:
                simple = at.SIMPLE if access.count == 1 and met.count(access.channel) == 1 else 0
                wanted.append((access, stage, takes | gives | back | simple, 0))
        rows = self._rows(len(wanted), at.PORT_SIZE)
        begin = rows[0] if rows else 0
        entries = 0
        for port, (access, stage, flags, late) in zip(rows, wanted, strict=True):
            later = stage - front
            size = later // phase.ii + 2 if flags & at.BACK else 0
            queue, _ = self._list([0] * size)
            entries += size
            self._set(port, {at.FLAGS: flags, at.COUNT: access.count, at.STAGE: stage, at.LATER: later,
                             at.SLOTS: access.tokens, at.QUEUE: queue, at.QUEUE_SIZE: size})  # fmt: skip
            self._target(number, port, access)
            self._pattern(port, access.pattern, phase, late)
            self.events += access.pattern.count
        members, _ = self._list([0] * (len(rows) + 1))
        moments, _ = self._list([0] * (4 * entries + 2))
        ordered = all(met.count(a.channel) == 1 and a.channel not in self.ports for a, _, f, _ in wanted if f & at.BACK)
        self._set(row, {at.PORTS: begin, at.PORTS_END: begin + len(rows) * at.PORT_SIZE, at.LENGTH: phase.length,
                        at.DELAY: delay, at.MEMBERS: members, at.MOMENTS_AT: moments, at.ORDERED: ordered,
                        at.FLUSHES: self.rules.flushing if phase.flushes is None else phase.flushes})  # fmt: skip

    def _target(self, number: int, port: int, access: ChannelAccess) -> None:
        name, reads = access.channel, access.direction == "read"
        if name in self.ports:
            pace = self.paces[name]
            ahead = (self.ports[name].ahead - 1) * pace
            latency = self.latency[self.ports[name].memory]
            self._set(port, {at.AHEAD: ahead, at.PACE: pace, at.LATENCY: latency})
            self.meetings[port] = Meeting(number, name, -1, reads, memory=True, at_start=False)
        else:
            link = self.by_name[name]
            self._set(port, {at.CHANNEL: self.links[link].address})
            self.meetings[port] = Meeting(number, name, link, reads, memory=False, at_start=False)

    def _pattern(self, port: int, pattern: TokenPattern, phase: Phase, late: int) -> None:
        levels = merged_levels(pattern)
        rows = self._rows(len(levels), at.LEVEL_SIZE)
        shift = (fixed_part(pattern) + late) * phase.ii  # what never varies goes into the first level's runs
        for row, (stride, runs) in zip(rows, levels, strict=True):
            begin, end = self._list([n for first, length in runs for n in (first * stride * phase.ii + shift, length)])
            self._set(row, {at.STRIDE: stride * phase.ii, at.RUNS: begin, at.RUNS_END: end})
            shift = 0
        self._set(port, {at.LEVELS: rows[0], at.LEVELS_END: rows[-1] + at.LEVEL_SIZE,
                         at.STEP: levels[-1][0] * phase.ii})  # fmt: skip


def merged_levels(pattern: TokenPattern) -> list[tuple[int, list[tuple[int, int]]]]:
    """(iterations a step, runs of (first, length)), outermost first; levels that continue each other are one."""
    levels: list[tuple[int, list[tuple[int, int]]]] = []
    for level in pattern.levels:
        if level.count == 1:
            continue
        first, length = level.runs[0]
        if levels and len(level.runs) == 1 and first == 0 and levels[-1][0] == level.stride * length:
            levels[-1] = (level.stride, [(begin * length, n * length) for begin, n in levels[-1][1]])
        else:
            levels.append((level.stride, list(level.runs)))
    return levels or [(1, [(0, 1)])]


def fixed_part(pattern: TokenPattern) -> int:
    """Iterations before the first access that come from loops in which it happens once only."""
    return sum(level.runs[0][0] * level.stride for level in pattern.levels if level.count == 1)


def cycles_a_word(network: Network) -> dict[str, Fraction]:
    """Of every memory port: what its bank sustains, shared with the bank's other ports."""
    memories = {m.name: m for m in network.memories}
    words = dict.fromkeys((p.name for p in network.ports), 0)
    at_once = dict(words)
    for phase in (phase for process in network.processes for phase in process.phases):
        own = Counter(a.channel for a in phase.accesses if a.channel in words)
        at_once |= {name: max(at_once[name], count) for name, count in own.items()}
        for access in phase.accesses:
            if access.channel in words:
                words[access.channel] += access.tokens
    paces: dict[str, Fraction] = {}
    for place in dict.fromkeys((p.memory, p.bank) for p in network.ports):
        ports = [p for p in network.ports if (p.memory, p.bank) == place]
        sustained = Fraction(memories[place[0]].bits_per_cycle) * Fraction(str(MEMORY_EFFICIENCY))
        for port, share in zip(ports, shares([p.bits * words[p.name] for p in ports]), strict=True):
            paces[port.name] = port.bits * max(1, at_once[port.name]) / (sustained * share)
    return paces
