"""The report's records about what AMD's tools synthesised, before FIFOs were sized for it and after."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from penstock.compiler.evidence import Evidence
from penstock.compiler.package.record import Count, Cycles, Record
from penstock.compiler.package.report_timing import TimeFigures


class ChipUse(Record):
    """One resource of the chip, in the tool's words."""

    resource: str
    used: int
    available: int


class LoopInfo(Record):
    """One pipelined loop as it was planned, and as the tool made it."""

    task: str
    loop: str
    trips: Count
    planned_ii: Cycles
    ii: Cycles
    planned_depth: Cycles
    depth: Cycles


class OtherLoop(Record):
    """A loop of the report that is none of ours, such as one around others."""

    module: str
    loop: str
    trips: Count
    ii: Cycles
    depth: Cycles
    latency_cycles: Cycles


class SynthesisPass(Record):
    """One of the two syntheses: before FIFOs were sized for the pipelines that the tool made, and after."""

    latency_cycles: Cycles = Field(description="the tool's own")
    retimed_cycles: Cycles = Field(description="simulated with the report's II and depth")
    fifo_bits: int
    bram18: Count
    lut: Count


class SynthesisInfo(Record):
    """What high-level synthesis says of the design in this package, and what follows from it."""

    evidence: Evidence = "csynth"
    tool: str
    version: str
    part: str | None
    clock_target_ns: float | None
    clock_uncertainty_ns: float | None
    clock_estimated_ns: float | None
    fmax_mhz: float | None = Field(description="estimated before placement")
    times: TimeFigures = Field(description="the tool's own, by csynth or cosim")
    retimed: TimeFigures = Field(description="the simulator's, with II and depth from the report: evidence simulated")
    resources: dict[str, int | None] = Field(description="with deep FIFOs at the block RAMs that they take")
    usage: tuple[ChipUse, ...] = Field(description="as the report counts it")
    loops: tuple[LoopInfo, ...]
    others: tuple[OtherLoop, ...] = ()
    planned: tuple[str, ...] = Field(default=(), description="tasks whose loops the report lacks: as they were planned")
    before: SynthesisPass
    after: SynthesisPass
    rules: Literal["vitis"] = "vitis"
    notes: tuple[str, ...] = ()
