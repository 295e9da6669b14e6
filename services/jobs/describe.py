"""A lowered design and what the model says of it, as sections of the report."""

from __future__ import annotations

import math
import platform as machine
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.dialects.injected import Injected
from penstock.compiler.names import c_name
from penstock.compiler.package.decorating import Decorating
from penstock.compiler.package.report import (
    BandwidthUse,
    ChannelInfo,
    DesignInfo,
    KernelInfo,
    KernelResources,
    KernelTiming,
    Product,
    ResourceUse,
    RtlCheck,
    SynthesisInfo,
    Timing,
)
from penstock.compiler.package.report_elements import BodyInfo, ElementInfo, PlacementInfo, WrittenInfo
from penstock.compiler.package.report_timing import ListTiming
from penstock.compiler.package.sections import resources_section, timing_section
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.places import of_file, places_of, shown_line
from penstock.compiler.platforms import Platform, Resources, load_platform, total
from penstock.compiler.schedule import load_library
from penstock.compiler.simulator.call_list import cycles_of_list
from penstock.compiler.tasks.mapping.apply import elements, placed
from penstock.compiler.tasks.mapping.candidates import ports_of
from penstock.compiler.tasks.mapping.place import GridPlacement
from penstock.compiler.tasks.opened import network_of
from penstock.profiling.bandwidth import memory_ports
from penstock.profiling.injected.predicted import predict
from penstock.profiling.model import ChannelFigures, DesignFigures
from penstock.profiling.simulated import rules_of
from penstock.services.jobs.allocated import (
    Allocated,
    converter_infos,
    lengths_section,
    resources_by_task,
    simulated_section,
)

TOOLS = ("torch", "torch-mlir", "xdsl", "numpy", "optuna")


def describe_design(lowered: Lowered, found: Allocated, making: Decorating) -> DesignInfo:
    """The kernels as they were decided, and the channels between them with what runs through them."""
    design = lowered.design
    labels = _Labels(lowered, found.figures)
    return DesignInfo(
        digest=design.digest(),
        clock_mhz=design.clock_mhz,
        kernels=tuple(_kernel(lowered, op) for op in lowered.graph.operations),
        channels=tuple(_channel(c, labels, found) for c in found.figures.channels),
        converters=making.make("what converters keep", lambda: converter_infos(lowered), ()),
        written=making.make("the kernels' lines in the model", lambda: tuple(_written(lowered)), ()),
        **_elements(lowered),
    )


def _written(lowered: Lowered) -> Iterator[WrittenInfo]:
    """Where each kernel stands in what the user wrote."""
    program = lowered.program
    if not lowered.is_tasks:
        for op in lowered.graph.operations:
            for place in places_of(program.places, op.layer):
                yield WrittenInfo(kernel=op.layer, **asdict(place))
        return
    network, kernel = network_of(program.module), program.places.get("", ())
    for task in network.program.tasks:
        if kernel:  # the program was made of a tile program: its own lines are nobody's
            yield from (WrittenInfo(kernel=task.name, **asdict(place)) for place in kernel)
            continue
        file, line = of_file(task.line)
        text = shown_line(network.source.lines[line - 1]) if 0 < line <= len(network.source.lines) else ""
        yield WrittenInfo(kernel=task.name, file=file, line=line, text=text, layer="", operation="")


def _elements(lowered: Lowered) -> dict[str, Any]:
    """Which instances of a task program share which element, if any do."""
    if not lowered.is_tasks:
        return {}
    mapping = lowered.design.mapping
    network = elements(network_of(lowered.program.module), mapping)
    standing = placed(network)
    if standing is None and not any(one.shared_by or one.injected for one in network.instances):
        return {}
    platform, clock = load_platform(lowered.design.platform), lowered.design.clock_mhz
    bodies = {one.injected: _body(one.injected, platform, clock) for one in network.instances}
    at = standing.at if standing is not None else {}
    found = tuple(
        ElementInfo(
            name=one.name, instances=one.members, ports=ports_of(one), body=bodies[one.injected],
            row=at[one.name][0] if at else None, column=at[one.name][1] if at else None,
        )
        for one in network.instances
    )  # fmt: skip
    return {
        "mapping": mapping or tuple(map(str, network.program.schedule)), "elements": found,
        "placement": None if standing is None else _placement(standing),
    }  # fmt: skip


def _placement(found: GridPlacement) -> PlacementInfo:
    return PlacementInfo(
        rows=found.grid.rows, columns=found.grid.columns, streams=len(found.hops),
        over_neighbours=sum(hops == 1 for hops in found.hops.values()), longest=max(found.hops.values(), default=0),
        hops=found.cost, bound=found.bound, most_on_a_link=found.most_on_a_link,
    )  # fmt: skip


_CHECKED = {
    "systemverilog": "tokens, answers, II, depth and pauses in Verilator; area is declared",
    "cpp": "tokens and answers of the compiled C++; area is declared; ",
}


def _body(injected: Injected | None, platform: Platform, clock_mhz: float) -> BodyInfo | None:
    if injected is None:
        return None
    checked = _CHECKED[injected.language]
    if injected.language == "cpp":
        checked += f"{predict(injected, platform, clock_mhz).said(injected)} [modelled]"
    return BodyInfo(
        name=injected.name, language=injected.language, symbol=injected.symbol, ii=injected.ii, depth=injected.depth,
        checked=checked,
    )  # fmt: skip


def describe_timing(
    lowered: Lowered, found: Allocated, rtl: RtlCheck | None = None, synthesis: SynthesisInfo | None = None
) -> Timing:
    figures = found.figures
    labels = _Labels(lowered, figures).labels
    kernels = [
        KernelTiming(
            kernel=labels[task.name], nest=task.name, ii=task.ii, ii_reason=task.ii_reason if task.ii > 1 else "",
            depth=task.depth, trips=task.iterations, latency_cycles=task.latency,
            initial_delay_cycles=task.initial_delay, evidence=figures.evidence,
        )
        for task in figures.tasks
    ]  # fmt: skip
    note = "" if figures.exact_times else "Long channels were sampled: modelled times and depths are approximate."
    by_tools = [synthesis.retimed, synthesis.times] if synthesis else []
    measured = (*found.measured, *([rtl.times] if rtl and rtl.times else []), *by_tools)
    best = measured[-1].latency_cycles if measured else None
    whole = None if best is None else _all_layers(lowered, best)
    clock = lowered.design.clock_mhz
    return timing_section(
        clock, measured, kernels, note, simulated_section(found), whole, lengths_section(found, clock)
    )


def _all_layers(lowered: Lowered, one: int) -> ListTiming | None:
    """Where one start runs all layers; the sequencer's cycles are counted, and `one` is a layer's latency."""
    layers, clock = lowered.program.layers, lowered.design.clock_mhz
    if layers is None or lowered.top.calls is None:
        return None
    platform = load_platform(lowered.design.platform)
    latency = load_library(platform.operators, clock).memory.external_load_latency
    moved = len(lowered.top.moved)
    cycles = cycles_of_list(one, len(layers.names), moved, rules_of(platform, clock), latency)
    return ListTiming(
        evidence="modelled", layers=cycles.calls, moved=moved, overhead_cycles=cycles.overhead,
        latency_cycles=cycles.total, latency_us=round(cycles.total / clock, 4),
    )  # fmt: skip


def describe_resources(
    lowered: Lowered, found: Allocated, platform: Platform, synthesis: SynthesisInfo | None = None
) -> ResourceUse:
    """By layer: all tasks of a layer together, and all channels in one row. The whole is the tools', where they ran."""
    figures = found.figures
    labels = _Labels(lowered, figures).labels
    tasks, channels = resources_by_task(found)
    by_layer: dict[str, list[Resources]] = {}
    for task in figures.tasks:
        by_layer.setdefault(labels[task.name], []).append(tasks[task.name])
    by_layer["channels"] = list(channels.values())
    rows = [
        KernelResources(kernel=layer, **total(parts).as_dict(), evidence=figures.evidence)
        for layer, parts in by_layer.items()
    ]
    if synthesis is not None:
        note = "The whole as high-level synthesis counts it; its parts as they are modelled."
        return resources_section(synthesis.resources, platform, rows, synthesis.evidence, note)
    return resources_section(found.placement.resources.as_dict(), platform, rows, figures.evidence)


def describe_bandwidth(found: Allocated, timing: Timing, platform: Platform) -> BandwidthUse | None:
    """What the design takes of external memory at the pace that the report gives."""
    memory, busy = platform.fastest_memory, found.figures.memory_cycles
    if memory is None or busy is None or not timing.interval_cycles or timing.evidence is None:
        return None
    share = busy / timing.interval_cycles
    banks = Counter[int]()
    for kernel in found.network.groups:
        for use in memory_ports(kernel, platform).values():
            banks[use.bank] += use.bits
    whole = memory.sustained_gb_s / memory.ports * 8e3 / timing.clock_mhz * timing.interval_cycles
    return BandwidthUse(
        memory=memory.name, used_gb_s=round(share * memory.sustained_gb_s, 6), share=share,
        sustained_gb_s=round(memory.sustained_gb_s, 6), evidence=timing.evidence,
        banks=tuple([round(bits / whole, 4) for _, bits in banks.most_common()]),
    )  # fmt: skip


def product() -> Product:
    try:
        return Product(version=version("penstock"))
    except PackageNotFoundError:
        return Product(version="(not installed)")


def tool_versions() -> dict[str, str]:
    """Versions of everything that had a part in the figures of a package."""
    found = {"python": machine.python_version()}
    for name in TOOLS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler:
        answer = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
        found["c++"] = answer.stdout.splitlines()[0] if answer.stdout else "unknown"
    return found


class _Labels:
    """What the report calls a task: its layer, or what it loads, stores, forks or converts.

    A parameter may bear a layer's name, as the bias of a layer does; its loading task is told apart.
    """

    def __init__(self, lowered: Lowered, figures: DesignFigures) -> None:
        names, kinds = lowered.top.argument_names, lowered.top.argument_kinds
        arguments = {n.data: k.data for n, k in zip(names, kinds, strict=True)}
        self.labels: dict[str, str] = {}
        self.host: set[str] = set()
        for task in figures.tasks:
            computes = task.layer in lowered.graph.by_layer and task.name == c_name(task.layer)
            kind = None if computes else arguments.get(task.layer)
            self.labels[task.name] = f"memory {task.layer}" if kind == "parameter" else task.layer
            if kind in ("input", "output"):
                self.host.add(task.name)

    def end(self, task: str) -> str:
        """One end of a channel: nothing for the host's side."""
        return "" if task in self.host else self.labels[task]


def _channel(c: ChannelFigures, labels: _Labels, found: Allocated) -> ChannelInfo:
    token = f"{c.bits} bit" if c.kind == "stream" else f"block of {c.bits}-bit words"
    run, unsized = found.several, found.unsized.get(c.name)
    return ChannelInfo(
        name=c.name, source=labels.end(c.writer), target=labels.end(c.reader),
        kind="fifo" if c.kind == "stream" else "blocks", token=token, width_bits=c.bits, depth=c.depth,
        tokens=c.tokens, high_water=c.high_water, evidence=found.figures.evidence,
        held=run.channels[c.name].high_water if run else None, unsized_depth=unsized,
        saved_bits=None if unsized is None else (unsized - c.depth) * c.bits,
        memory=found.placement.allocation.uses[c.name].kind,
    )  # fmt: skip


def _kernel(lowered: Lowered, op: TensorOp) -> KernelInfo:
    decided = lowered.design.kernels[op.layer]
    return KernelInfo(
        name=op.layer, operation=_operation(op), trips=op.trips, tile=decided.tile, unroll=decided.unroll,
        order=decided.order, weights=decided.weights,
    )  # fmt: skip


def _operation(op: TensorOp) -> str:
    """What a kernel computes, in words short enough for a box."""
    extents = " × ".join(str(t) for d, t in enumerate(op.trips) if d not in op.reductions)
    if not op.reductions:
        return f"elementwise {extents}"
    reduced = math.prod(op.trips[d] for d in op.reductions)
    return f"reduce {reduced} → {extents or '1'}"
