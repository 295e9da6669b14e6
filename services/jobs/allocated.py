"""What simulation and placement say of a finished design, for its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects.builtin import StringAttr

from penstock.compiler.analysis.converter import ConverterPlan, plan_converter
from penstock.compiler.analysis.converting import COUNTABLE, choose_plan, converted_orders
from penstock.compiler.dialects.directives import element_bits
from penstock.compiler.evidence import Evidence
from penstock.compiler.package.decorating import Decorating
from penstock.compiler.package.report import (
    ConverterInfo,
    CrossingInfo,
    DieInfo,
    PathStep,
    PlacementReport,
    SimulatedRun,
    StallInfo,
    StoredInfo,
    TaskTiming,
    TimeFigures,
)
from penstock.compiler.package.report_placement import BankInfo, TensorInfo
from penstock.compiler.package.report_timing import LengthsTiming, LengthTiming
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator import Simulation
from penstock.dse.fifo import prefetched
from penstock.dse.finishing.lengths import AtLengths, hold_at_lengths
from penstock.dse.finishing.placement import Placement, place
from penstock.dse.memory import memory_svg
from penstock.dse.partition import partition_svg
from penstock.dse.rungs import simulate_inputs, steady_interval
from penstock.profiling.model import DesignFigures
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import simulate_design
from penstock.services.jobs.scheduled import Scheduled


@dataclass(frozen=True)
class Allocated:
    """A lowered design on every rung up to the one asked for, and its placement.

    `first` is the simulated run of one input, `several` that of inputs in a row; both None where nothing is simulated.
    """

    network: TaskNetwork
    figures: DesignFigures
    placement: Placement
    unsized: Mapping[str, int]
    first: Simulation | None
    several: Simulation | None
    at_lengths: AtLengths | None = None
    """Of a model whose sizes each call says, where anything is simulated."""

    @property
    def measured(self) -> tuple[TimeFigures, ...]:
        found = [_times("modelled", self.figures.latency, self.figures.initial_delay, self.figures.interval)]
        if self.several is not None:
            run = self.several
            found.append(_times("simulated", run.latency, run.initial_delay, steady_interval(run)))
        return tuple(found)


def examine(scheduled: Scheduled, evidence: Evidence) -> Allocated:
    """Place a design as it was lowered, where its record says, and (unless the model is all that was asked for)
    simulate it."""
    design, network, platform = scheduled.lowered.design, scheduled.network, scheduled.platform
    clock_mhz, simulate = design.clock_mhz, evidence != "modelled"
    return Allocated(
        network,
        scheduled.figures,
        place(network, platform, load_library(platform.operators, platform.check_clock(clock_mhz)), design),
        scheduled.unsized,
        simulate_design(network, platform, clock_mhz) if simulate else None,
        simulate_inputs(network, platform, clock_mhz) if simulate else None,
        _at_lengths(scheduled) if simulate and scheduled.lowered.program.lengths else None,
    )


def _at_lengths(scheduled: Scheduled) -> AtLengths:
    design = scheduled.lowered.design
    depths = {name: one.depth for name, one in scheduled.network.channels.items() if one.kind == "stream"}
    most = prefetched(scheduled.figures.channels, design.prefetch_bits)
    return hold_at_lengths(scheduled.lowered, scheduled.platform, depths, most=most)


def lengths_section(found: Allocated, clock_mhz: float) -> LengthsTiming | None:
    if (held := found.at_lengths) is None:
        return None
    runs = tuple(
        LengthTiming(
            sizes=dict(one.sizes), latency_cycles=one.latency, latency_us=round(one.latency / clock_mhz, 4),
            unbounded_cycles=one.unbounded,
        )
        for one in held.runs
    )  # fmt: skip
    return LengthsTiming(count=held.count, runs=runs)


def _times(evidence: Evidence, latency: int, delay: int | None, interval: int | None) -> TimeFigures:
    return TimeFigures(evidence=evidence, latency_cycles=latency, initial_delay_cycles=delay, interval_cycles=interval)


def simulated_section(found: Allocated) -> SimulatedRun | None:
    if found.first is None or found.several is None:
        return None
    processes = found.first.processes
    first = _first_tokens(found.network, found.first)
    stalls = [
        StallInfo(task=task, channel=stall.channel, cause=stall.cause, cycles=stall.cycles)
        for task, times in processes.items()
        for stall in times.stalls
    ]
    return SimulatedRun(
        rules=found.first.rules,
        frame_ends=found.several.frame_ends,
        tasks=tuple(
            TaskTiming(
                task=t.name,
                start_cycle=t.start,
                end_cycle=t.end,
                first_token_cycle=first.get(t.name, t.start),
                busy_cycles=t.busy,
                waited_cycles=t.waited,
            )
            for t in processes.values()
        ),
        stalls=tuple(sorted(stalls, key=lambda s: (-s.cycles, s.task, s.channel))),
        critical_path=tuple(
            PathStep(task=hop.process, start_cycle=hop.start, end_cycle=hop.end, channel=hop.channel)
            for hop in found.first.critical_path
        ),
    )


def _first_tokens(network: TaskNetwork, run: Simulation) -> dict[str, int]:
    """When each task first takes or gives a token; one that meets only external memory begins at once."""
    found: dict[str, int] = {}
    for name, (writer, reader) in network.ends().items():
        times = run.channels[name]
        for task, at in ((writer, times.first_write), (reader, times.first_read)):
            found[task] = min(found.get(task, at), at)
    sources = {t.name for t in network.tasks} - {reader for _, reader in network.ends().values()}
    return {task: run.processes[task].start if task in sources else at for task, at in found.items()}


def placement_section(
    found: Allocated, drawing: Decorating, tensors: tuple[TensorInfo, ...] = (), banks: tuple[BankInfo, ...] = ()
) -> PlacementReport:
    placed, built = found.placement.partition, found.placement.allocation
    tasks = [t.name for t in found.network.tasks]
    return PlacementReport(
        proven=placed.proven and built.proven,
        dies=tuple(
            DieInfo(
                name=die, tasks=tuple(t for t in tasks if placed.dies[t] == die),
                used=built.used(die).as_dict(), limit=built.limits[die].as_dict(),
            )
            for die in placed.site.dies
        ),
        crossings=tuple(
            CrossingInfo(
                between=b.between, wires=placed.wires(b), available=b.wires,
                channels=tuple(c.name for c in placed.crossing(b)),
            )
            for b in placed.site.boundaries
        ),
        memories=tuple(
            StoredInfo(
                name=name, die=built.regions[name], words=use.shape.words, word_bits=use.shape.word_bits,
                banks=use.shape.banks, copies=use.copies, kind=use.kind, blocks=use.blocks(found.placement.family),
            )
            for name, use in built.uses.items()
        ),
        tensors=tensors,
        banks=banks,
        dies_picture=drawing.make("the picture of dies", lambda: partition_svg(placed), ""),
        memories_picture=drawing.make("the picture of memories", lambda: memory_svg(built), ""),
        note=found.placement.undivided,
    )  # fmt: skip


def resources_by_task(found: Allocated) -> tuple[dict[str, Resources], dict[str, Resources]]:
    """What each task and each channel takes, with memories built as they were allocated."""
    uses = found.placement.allocation.uses
    tasks: dict[str, Resources] = {}
    for task in found.network.tasks:
        area = Resources()
        for nest in task.nests:
            area = area + nest.logic
        for name in dict.fromkeys(f"{task.name}.{m.name}" for nest in task.nests for m in nest.memories):
            area = area + uses[name].area
        tasks[task.name] = area
    return tasks, {name: uses[name].area for name in found.network.channels}


def converter_infos(lowered: Lowered) -> tuple[ConverterInfo, ...]:
    """Every converter of a design: what it keeps, and the least that any between these orders would have to."""
    found: list[ConverterInfo] = []
    for op in lowered.itensor.walk():
        orders = converted_orders(op)
        if orders is None:
            continue
        source, target = orders
        plan, least = choose_plan(source, target), plan_converter(source, target)
        blocks = isinstance(plan, ConverterPlan)
        elements = plan.ping_pong_elements if blocks else plan.elements
        name = op.properties["sym_name"]
        assert isinstance(name, StringAttr)
        found.append(
            ConverterInfo(
                name=name.data, source=str(source), target=str(target), method="two blocks" if blocks else "one nest",
                buffer_elements=elements, buffer_bits=elements * element_bits(source.dtype),
                live_elements=least.live_max if least.block_elements <= COUNTABLE else None,
            )
        )  # fmt: skip
    return tuple(found)
