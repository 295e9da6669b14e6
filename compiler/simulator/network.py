"""A network of processes as plain data: what the simulator needs to know of a design, and nothing of its values.

A process runs phases one after the other; a phase is one pipelined loop nest. Accesses say in which iterations, at
which stage, a phase meets which channel or memory port. Regions that run one after the other form a `Sequence`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from penstock.compiler.schedule import TokenPattern
from penstock.compiler.schedule.records import Direction

ChannelKind = Literal["fifo", "block", "pipo"]


@dataclass(frozen=True)
class ChannelAccess:
    """Where a phase reads from or writes to a channel (or a memory port, by its name).

    In every iteration of `pattern`, `count` tokens pass in one cycle. `stage` None is the rules' own choice. On a block
    channel the pattern says when a block is taken hold of; `hold` iterations later it is handed on. For FIFOs `hold`
    is 0: the token passes at once.
    """

    channel: str
    direction: Direction
    pattern: TokenPattern
    stage: int | None = None
    count: int = 1
    hold: int = 0

    @property
    def tokens(self) -> int:
        return self.pattern.count * self.count


@dataclass(frozen=True)
class Phase:
    """One perfect loop nest, a pipeline of `iterations` that enter every `ii` cycles and stay for `depth`."""

    trips: tuple[int, ...]
    ii: int
    depth: int
    accesses: tuple[ChannelAccess, ...] = ()
    name: str = ""
    flushes: bool | None = None
    """Whether what has entered goes on while the next iteration waits for input; None: as the rules say."""

    @property
    def iterations(self) -> int:
        return prod(self.trips)

    @property
    def length(self) -> int:
        """Cycles if it never waits."""
        return (self.iterations - 1) * self.ii + self.depth


@dataclass(frozen=True)
class SimulatedProcess:
    """Phases that run strictly one after the other."""

    name: str
    phases: tuple[Phase, ...]


@dataclass(frozen=True)
class Channel:
    """Between processes. A slot is a token of a FIFO or a whole block; `depth` slots, None for as many as are needed.

    "fifo" and "block" channels are met inside phases and have one writer and one reader, found from the accesses.
    A "pipo" is a block that is handed over from process to process, outside their phases: its `consumers` start when
    all its `producers` are done.
    """

    name: str
    kind: ChannelKind = "fifo"
    depth: int | None = 2
    bits: int = 32
    words: int = 1
    producers: tuple[str, ...] = ()
    consumers: tuple[str, ...] = ()


@dataclass(frozen=True)
class SimulatedMemory:
    """An external memory of `banks` equal banks; `bits_per_cycle` is one bank's peak, of which 85 % can be had."""

    name: str
    banks: int
    bits_per_cycle: float
    latency: int = 0
    """Cycles until the first word of a phase is there, beyond what the phase's depth has in it already."""


@dataclass(frozen=True)
class MemoryPort:
    """One port of the network to one bank of a memory: words of `bits`, `ahead` of them buffered."""

    name: str
    memory: str
    bank: int
    bits: int
    ahead: int = 64


@dataclass(frozen=True)
class Network:
    """Processes that run at the same time, and what connects them. Process order decides nothing but speed."""

    name: str
    processes: tuple[SimulatedProcess, ...]
    channels: tuple[Channel, ...] = ()
    ports: tuple[MemoryPort, ...] = ()
    memories: tuple[SimulatedMemory, ...] = ()

    def process(self, name: str) -> SimulatedProcess:
        return next(p for p in self.processes if p.name == name)

    def channel(self, name: str) -> Channel:
        return next(c for c in self.channels if c.name == name)

    def with_depths(self, depths: Mapping[str, int | None]) -> Network:
        """The same network with other depths for some channels."""
        changed = tuple(replace(c, depth=depths[c.name]) if c.name in depths else c for c in self.channels)
        return replace(self, channels=changed)

    def ends(self) -> dict[str, tuple[str, str]]:
        """(writing process, reading process) of every FIFO and block channel."""
        writer, reader = dict[str, str](), dict[str, str]()
        for process in self.processes:
            for phase in process.phases:
                for access in phase.accesses:
                    (writer if access.direction == "write" else reader)[access.channel] = process.name
        return {c.name: (writer[c.name], reader[c.name]) for c in self.channels if c.kind != "pipo"}

    def tokens(self) -> dict[str, int]:
        """Slots that pass through every channel in one frame."""
        counts = {c.name: 1 if c.kind == "pipo" else 0 for c in self.channels}
        for process in self.processes:
            for phase in process.phases:
                for access in phase.accesses:
                    if access.direction == "write" and access.channel in counts:
                        counts[access.channel] += access.tokens
        return counts


@dataclass(frozen=True)
class Repeat:
    """A loop that is not pipelined: `body` phases one after the other, `iteration_latency` cycles each time."""

    times: int
    iteration_latency: int
    body: tuple[Phase, ...]


@dataclass(frozen=True)
class StartControl:
    """How a sequence is started: handshake wires, or registers on a bus that the host writes first."""

    protocol: Literal["ap_ctrl_hs", "s_axilite"] = "ap_ctrl_hs"
    scalar_registers: int = 0


Item = Phase | Repeat | Network


@dataclass(frozen=True)
class Sequence:
    """Steps one after the other; the items of a step run at the same time and share nothing."""

    name: str
    steps: tuple[tuple[Item, ...], ...]
    control: StartControl = field(default_factory=StartControl)

    @property
    def networks(self) -> tuple[Network, ...]:
        """The items that are networks, in order."""
        return tuple(item for step in self.steps for item in step if isinstance(item, Network))
