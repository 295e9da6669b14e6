"""What a simulation says: plain records, every time a cycle counted from the network's start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.compiler.errors import PenstockError

Cause = Literal["empty", "full", "memory"]


@dataclass(frozen=True)
class Stall:
    """Cycles that a process waited at one channel: for a token or block, for a slot, or for external memory."""

    channel: str
    cause: Cause
    cycles: int


@dataclass(frozen=True)
class ProcessTimes:
    """The first frame's start and end (the first cycle after it), and all waiting of all frames, longest first."""

    name: str
    start: int
    end: int
    busy: int
    """Cycles of one frame if it never waited."""
    stalls: tuple[Stall, ...]

    @property
    def waited(self) -> int:
        return sum(stall.cycles for stall in self.stalls)


@dataclass(frozen=True)
class ChannelResult:
    """`high_water` is how many slots were held at most, each from its write (or claim) to the cycle of its read."""

    name: str
    tokens: int
    depth: int | None
    high_water: int
    first_write: int
    first_read: int


@dataclass(frozen=True)
class Wait:
    """A process that cannot go on: it waits at a channel for another process."""

    process: str
    channel: str
    cause: Cause
    waits_for: str


@dataclass(frozen=True)
class Deadlock:
    """Nobody can move. `cycle` are the processes that wait for each other, the last one for the first; or, if that one
    waits for no channel, for it."""

    cycle: tuple[Wait, ...]
    at: int
    """The cycle in which something happened last."""

    def __str__(self) -> str:
        return "; ".join(f"{w.process} waits for {w.waits_for} ({w.channel} is {w.cause})" for w in self.cycle)


@dataclass(frozen=True)
class Hop:
    """A stretch of the critical path: the process ran from `start` to `end`; `channel` is what it had waited for."""

    process: str
    start: int
    end: int
    channel: str | None


@dataclass(frozen=True)
class Simulation:
    """The whole network's times. `evidence` is always "simulated"."""

    network: str
    rules: str
    frame_ends: tuple[int, ...]
    processes: Mapping[str, ProcessTimes]
    channels: Mapping[str, ChannelResult]
    initial_delay: int | None
    """The first cycle in which a process without outgoing channels meets a token; None where there is none."""
    critical_path: tuple[Hop, ...]
    deadlock: Deadlock | None
    evidence: Literal["simulated"] = "simulated"

    @property
    def latency(self) -> int:
        """Cycles of the first frame; an error for a network that deadlocks."""
        if self.deadlock is not None:
            raise PenstockError(
                code="deadlock", what=f"the network stops for ever: {self.deadlock}", where=self.network,
                limit=f"after cycle {self.deadlock.at}", hint="deepen a channel of the cycle, or break it",
            )  # fmt: skip
        return self.frame_ends[0]

    @property
    def interval(self) -> int | None:
        """Cycles between the ends of the last two frames; None for a single frame."""
        return self.frame_ends[-1] - self.frame_ends[-2] if len(self.frame_ends) > 1 else None
