"""What a schedule says of a nest: records that the model, the simulator and the report read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule.memory import MemoryUse
from penstock.compiler.schedule.pattern import TokenPattern

Direction = Literal["read", "write"]
PortKind = Literal["stream", "block", "external"]


@dataclass(frozen=True)
class Bound:
    """One lower bound on the initiation interval, and what causes it."""

    kind: Literal["recurrence", "memory ports", "stream ports", "external ports", "pipeline"]
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

    Iteration i is in stage s at cycle i*ii + s: a run takes ii*(iterations-1) + depth cycles if it
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

    @property
    def latency(self) -> int:
        return self.ii * (self.iterations - 1) + self.depth

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
        return port.pattern.iteration(token) * self.ii + port.stage
