"""What a schedule says of a nest: records that the model, the simulator and the report read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule.memory import MemoryUse
from penstock.compiler.schedule.pattern import TokenPattern

Direction = Literal["read", "write"]
PortKind = Literal["stream", "block", "external"]


@dataclass(frozen=True)
class Bound:
    """One lower bound on the initiation interval, and what causes it."""

    kind: Literal["recurrence", "memory ports", "stream ports", "external ports", "pipeline", "circle", "asked"]
    ii: int
    reason: str


@dataclass(frozen=True)
class OpStage:
    """When an operation of the body runs: stages counted from the iteration's start."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class PortSchedule:
    """How a nest meets one channel or external memory: which way, at which stage, in which iterations."""

    channel: str
    kind: PortKind
    direction: Direction
    bits: int
    stage: int
    pattern: TokenPattern

    @property
    def tokens(self) -> int:
        return self.pattern.count


@dataclass(frozen=True)
class NestSchedule:
    """A nest's timing and area under one operator library.

    What enters in slot i is in stage s at cycle i*ii + s: a run takes ii*(slots-1) + depth cycles if it
    never waits.
    """

    name: str
    iterations: int
    block_iterations: int
    """Iterations between two hand-overs of block channels; all of them where there are none."""
    ii: int
    bounds: tuple[Bound, ...]
    depth: int
    stages: tuple[OpStage, ...]
    ports: tuple[PortSchedule, ...]
    memories: tuple[MemoryUse, ...]
    logic: Resources
    """Operators, pipeline registers and control, without the memories."""
    block_entry: int | None = None
    """Cycles between the end of a run of the pipeline over one block and its run over the next one; None: all blocks
    are one run."""
    flushes: bool = False
    """What has entered goes on while the next iteration waits for input; else the pipeline stops whole."""

    @cached_property
    def takes(self) -> tuple[str, ...]:
        """The channels that it reads, once for every port."""
        return tuple([p.channel for p in self.ports if p.kind != "external" and p.direction == "read"])

    @cached_property
    def gives(self) -> tuple[str, ...]:
        """The channels that it writes, once for every port."""
        return tuple([p.channel for p in self.ports if p.kind != "external" and p.direction == "write"])

    @property
    def blocks(self) -> int:
        return self.iterations // self.block_iterations

    @property
    def run_iterations(self) -> int:
        """Of one run of the pipeline: what its tool reports as the trip count of its loop."""
        return self.iterations if self.block_entry is None else self.block_iterations

    @property
    def idle(self) -> int:
        """Slots between two blocks in which no iteration enters: the pipeline runs empty, and then starts anew."""
        if self.block_entry is None or self.blocks == 1:
            return 0
        return max(0, -(-(self.depth + self.block_entry - self.ii) // self.ii))

    @property
    def slots(self) -> int:
        """Of one run of the nest: its iterations, and the idle slots between them."""
        return self.iterations + self.idle * (self.blocks - 1)

    def in_slots(self, pattern: TokenPattern) -> TokenPattern:
        """When the iterations of a pattern enter the pipeline."""
        if not self.idle:
            return pattern
        inner, run = self.block_iterations, self.block_iterations + self.idle
        levels = [
            replace(level, stride=level.stride // inner * run) if level.stride >= inner else level
            for level in pattern.levels
        ]
        return TokenPattern(tuple(levels))

    @property
    def latency(self) -> int:
        return self.ii * (self.slots - 1) + self.depth

    @property
    def initial_delay(self) -> int:
        """Cycles before the first token leaves; the latency for a nest that writes to no channel."""
        firsts = [self.cycle(port, 0) for port in self.ports if port.direction == "write"]
        return min(firsts) if firsts else self.latency

    @property
    def ii_reason(self) -> str:
        return max(self.bounds, key=lambda bound: bound.ii).reason

    @property
    def area(self) -> Resources:
        return self.logic + total([memory.area for memory in self.memories])

    def cycle(self, port: PortSchedule, token: int) -> int:
        """The cycle of the port's token-th access, if the nest never waits."""
        return self.in_slots(port.pattern).iteration(token) * self.ii + port.stage
