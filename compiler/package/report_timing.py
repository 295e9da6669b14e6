"""The report's records about time: by nest, by kind of evidence, and what a simulation saw."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Count, Cycles, From, Record, check_evidence


class KernelTiming(Record):
    """One pipelined loop nest of a kernel."""

    kernel: str
    nest: str
    ii: Cycles = None
    ii_reason: str = Field(default="", description="what keeps the initiation interval up")
    depth: Cycles = None
    trips: Count = Field(default=None, description="iterations of the pipeline")
    latency_cycles: Cycles = None
    initial_delay_cycles: Cycles = Field(default=None, description="cycles until the first token leaves")
    evidence: From = None


class TimeFigures(Record):
    """A design's times by one kind of evidence."""

    evidence: Evidence
    latency_cycles: Cycles
    initial_delay_cycles: Cycles = None
    interval_cycles: Cycles = None
    fmax_mhz: float | None = None
    basis: str = Field(default="", description="what it rests on, where the evidence alone does not say it")


class StallInfo(Record):
    """Cycles that a task waited at one channel, in the first input's run."""

    task: str
    channel: str
    cause: Literal["empty", "full", "memory"] = Field(description="no token, no room, or external memory")
    cycles: int


class PathStep(Record):
    """A stretch of the critical path: the task ran; before it did, it had waited for `channel`."""

    task: str
    start_cycle: int
    end_cycle: int
    channel: str | None


class TaskTiming(Record):
    """One task in the first input's run."""

    task: str
    start_cycle: int
    end_cycle: int
    first_token_cycle: int = Field(description="when it first takes or gives something")
    busy_cycles: int = Field(description="what it takes if it never waits")
    waited_cycles: int


class ListTiming(Record):
    """All layers that share the accelerator, by one start."""

    evidence: Evidence
    layers: int
    moved: int = Field(description="memories of which each layer has its own part; their beginnings are read before it")
    overhead_cycles: int = Field(description="what the sequencer takes besides the layers")
    latency_cycles: int
    latency_us: float


class LengthTiming(Record):
    """One size of those that a call says, or one choice of several."""

    sizes: dict[str, int]
    latency_cycles: int
    latency_us: float
    unbounded_cycles: int = Field(description="the same if no FIFO were ever full")

    @property
    def later(self) -> bool:
        return self.latency_cycles > self.unbounded_cycles


class LengthsTiming(Record):
    """When a run ends at each of the sizes that a call may say, or at some of them, the smallest first."""

    evidence: Literal["simulated"] = "simulated"
    count: int = Field(description="how many sizes there are")
    runs: tuple[LengthTiming, ...]

    @property
    def said(self) -> str:
        every = len(self.runs) == self.count
        return f"at {'all ' if every else f'{len(self.runs)} of '}{self.count:,} lengths"


class SimulatedRun(Record):
    """What the cycle-exact simulator says of the design at its own depths."""

    evidence: Literal["simulated"] = "simulated"
    rules: str = Field(description="how pipelines behave: of which tool chain")
    frame_ends: tuple[int, ...] = Field(description="when each of several inputs in a row is done")
    tasks: tuple[TaskTiming, ...]
    stalls: tuple[StallInfo, ...] = Field(description="the longest first")
    critical_path: tuple[PathStep, ...] = Field(description="which task, one after the other, decides the latency")


class Timing(Record):
    evidence: From
    clock_mhz: float
    latency_cycles: Cycles
    latency_us: float | None
    interval_cycles: Cycles = Field(description="cycles between two inputs at full load")
    inferences_per_second: float | None
    kernels: tuple[KernelTiming, ...] = ()
    note: str = ""
    initial_delay_cycles: Cycles = Field(default=None, description="cycles until the first token of the answer")
    measured: tuple[TimeFigures, ...] = Field(default=(), description="the same by every evidence, weakest first")
    simulated: SimulatedRun | None = Field(default=None, description="null: not simulated")
    lengths: LengthsTiming | None = Field(default=None, description="null: the model has one size, or is not simulated")
    all_layers: ListTiming | None = Field(default=None, description="null: each call of the accelerator is a start")

    @model_validator(mode="after")
    def _evidence_is_named(self) -> Self:
        check_evidence(self.evidence, [self.latency_cycles, self.interval_cycles])
        return self
