"""A kernel simulated: who waits for whom, how deep FIFOs must be, and what limits each loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.area import area_of
from penstock.compiler.hls_in.delays import Delays, delays_for
from penstock.compiler.hls_in.elaborate import read_kernel
from penstock.compiler.hls_in.records import Pipeline, Straight
from penstock.compiler.hls_in.storage import KernelStream
from penstock.compiler.hls_in.timed import Timed, time_kernel
from penstock.compiler.simulator import VITIS, Network, Simulation, Simulator, simulate
from penstock.profiling.kernels.from_reports import Reported
from penstock.profiling.kernels.unused import unused_directives
from penstock.profiling.vitis.doubts import doubts_of_synthesis
from penstock.profiling.vitis.report_folder import read_report_folder

FAMILIES = {"xcu": "vitis-ultrascale-plus", "xczu": "vitis-ultrascale-plus", "xcvu": "vitis-ultrascale-plus"}
"""Operator tables by how a part's name begins."""
LEAST_DEPTH = 2
"""What the tool makes of a shallower FIFO."""


@dataclass(frozen=True)
class LoopLine:
    task: str
    loop: str
    where: str
    iterations: int
    ii: int
    target_ii: int
    depth: int
    limit: str
    """What keeps the II above 1, in words; empty where nothing does."""
    limit_at: str
    """The line of the source that it comes from."""
    evidence: Literal["modelled", "csynth"]


@dataclass(frozen=True)
class TaskLine:
    name: str
    start: int
    end: int
    busy: int
    waits: tuple[tuple[str, str, int], ...]
    """(channel, why, cycles), the longest first."""


@dataclass(frozen=True)
class FifoLine:
    name: str
    where: str
    lanes: int
    bits: int
    depth: int
    needed: int
    saved_bits: int
    writer: str
    reader: str


@dataclass(frozen=True)
class Analysis:
    kernel: str
    top: str
    part: str
    clock_mhz: float
    latency: int | None
    interval: int | None
    evidence: Literal["simulated"]
    schedule: Literal["modelled", "csynth", "mixed"]
    deadlock: str | None
    latency_with_needed_depths: int | None
    saved_bits: int
    area: Mapping[str, int]
    loops: tuple[LoopLine, ...]
    tasks: tuple[TaskLine, ...]
    fifos: tuple[FifoLine, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def fifos_said(self) -> str:
        """What other depths would save, or cost."""
        if not self.saved_bits:
            return "each is as deep as it is filled"
        cycles = self.latency_with_needed_depths
        at = f" at {cycles:,} cycles" if cycles is not None else ""
        if self.saved_bits < 0:
            return f"{-self.saved_bits:,} bits more would let none of them be full{at}"
        return f"{self.saved_bits:,} bits could be saved{at}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def read(said: Mapping[str, Any]) -> Analysis:
        """As it was written."""
        tasks = tuple(
            TaskLine(**{**one, "waits": tuple((str(c), str(w), int(n)) for c, w, n in one["waits"])})
            for one in said["tasks"]
        )
        lists = {
            "loops": tuple(LoopLine(**one) for one in said["loops"]), "tasks": tasks,
            "fifos": tuple(FifoLine(**one) for one in said["fifos"]),
            "unused": tuple(said["unused"]), "notes": tuple(said["notes"]),
        }  # fmt: skip
        return Analysis(**{**said, **lists})


def analyse_kernel(
    path: Path, top: str, clock_mhz: float = 300.0, part: str = "xcu280-fsvh2892-2L-e", reports: Path | None = None
) -> Analysis:
    """Everything about one kernel. An error names file, line, column, what, and what to write instead."""
    delays = delays_of(part, clock_mhz)
    kernel = read_kernel(path, top)
    report = read_report_folder(reports, top) if reports is not None else None
    reported = Reported(report) if report is not None else None
    timed = time_kernel(kernel, delays, reported)
    result = simulate(timed.design, VITIS)
    loops = tuple(_loops(timed, path.name, reported))
    fifos, shrunk = fifos_of(timed)
    area = area_of(timed, delays)
    notes = [*kernel.notes, *(reported.notes() if reported is not None else ())]
    if report is not None:
        notes += doubts_of_synthesis(report, multiplications=sum(map(_multiplies, timed.schedules)))
    if kernel.axi:
        notes.append("of m_axi ports a load's usual 64 cycles are in these cycles, starts and bursts are not")
    return Analysis(
        kernel=path.name, top=top, part=part, clock_mhz=clock_mhz,
        latency=None if result.deadlock is not None else result.latency, interval=_interval(result, timed),
        evidence="simulated", schedule=_rests_on(loops),
        deadlock=str(result.deadlock) if result.deadlock is not None else None,
        latency_with_needed_depths=shrunk, saved_bits=sum(fifo.saved_bits for fifo in fifos),
        area=asdict(area), loops=loops, tasks=tuple(_tasks(result)), fifos=fifos,
        unused=tuple(unused_directives(timed, delays)), notes=tuple(notes),
    )  # fmt: skip


def delays_of(part: str, clock_mhz: float) -> Delays:
    """The operators of a part at a clock."""
    family = next((tables for begin, tables in FAMILIES.items() if part.lower().startswith(begin)), None)
    if family is None:
        raise PenstockError(
            code="unknown-part", what=f"there are no operator tables for the part {part!r}",
            limit="known are parts that begin with " + ", ".join(FAMILIES),
            hint="name an UltraScale+ part of the same speed grade",
        )  # fmt: skip
    return delays_for(clock_mhz, family=family)


def _multiplies(item: Pipeline | Straight) -> int:
    """Products of two values that no compiler can know."""
    return sum(node.op == "mul" and not any(arg.constant for arg in node.args) for node in item.graph.nodes)


def _interval(result: Simulation, timed: Timed) -> int | None:
    if result.deadlock is not None:
        return None
    if not isinstance(timed.design, Network):
        only = timed.kernel.body[0] if len(timed.kernel.body) == 1 else None
        if isinstance(only, Pipeline) and not only.counters:  # a function that is a pipeline: a run is an iteration
            return timed.schedules[only].ii
        return result.latency + 1
    return simulate(timed.design, VITIS, frames=2).interval


def _rests_on(loops: tuple[LoopLine, ...]) -> Literal["modelled", "csynth", "mixed"]:
    kinds = {loop.evidence for loop in loops}
    if len(kinds) > 1:
        return "mixed"
    return "csynth" if "csynth" in kinds else "modelled"


def _loops(timed: Timed, file: str, reported: Reported | None) -> list[LoopLine]:
    found: list[LoopLine] = []
    for item, schedule in timed.schedules.items():
        if isinstance(item, Pipeline):
            limit = schedule.limit if schedule.ii > 1 else None
            said = reported is not None and item in reported.taken
            found.append(
                LoopLine(
                    timed.owners[item],
                    item.name,
                    item.where,
                    item.iterations,
                    schedule.ii,
                    item.target,
                    schedule.depth,
                    limit.reason if limit else "",
                    f"{file}:{limit.line or item.line}" if limit else "",
                    "csynth" if said else "modelled",
                )
            )
    return found


def _tasks(result: Simulation) -> list[TaskLine]:
    return [
        TaskLine(p.name, p.start, p.end, p.busy, tuple((s.channel, s.cause, s.cycles) for s in p.stalls))
        for p in result.processes.values()
    ]


def fifos_of(timed: Timed) -> tuple[tuple[FifoLine, ...], int | None]:
    """Each FIFO's depth and what it needs, and the latency with all of these."""
    if not isinstance(timed.design, Network):
        return (), None
    network = timed.design
    own = {c.name: c for c in network.channels if c.kind == "fifo"}
    if not own:
        return (), None
    simulator = Simulator(network, VITIS)
    free = simulator.run(dict.fromkeys(own))
    if free.deadlock is not None:
        return (), None
    needed = {name: max(LEAST_DEPTH, free.channels[name].high_water) for name in own}
    again = simulator.run(needed)
    ends = network.ends()
    lines: list[FifoLine] = []
    for name, channel in own.items():
        streams = timed.channels[name]
        assert isinstance(streams, KernelStream)
        lanes = timed.lanes.get(name, 1)
        depth = channel.depth or LEAST_DEPTH
        saved = (depth - needed[name]) * channel.bits * lanes
        lines.append(
            FifoLine(
                name, streams.directive or streams.where, lanes, channel.bits, depth, needed[name], saved, *ends[name]
            )
        )
    return tuple(lines), None if again.deadlock is not None else again.latency
