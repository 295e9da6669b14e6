"""csynth.xml and the XML of single modules, in the elements that the reports of a release have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape, quoteattr

from tests.standin.analysis import Loop, Module
from tests.standin.generations import Style

Node = tuple[str, "str | Sequence[Node]"]
_DEVICES = {  # block RAMs of 18 kbit, DSPs, registers, LUTs, URAMs
    "xcu55c": (4032, 9024, 2607360, 1303680, 960), "xcu280": (4032, 9024, 2607360, 1303680, 960),
    "xcu200": (4320, 6840, 2364480, 1182240, 960), "xcu250": (5376, 12288, 3456000, 1728000, 1280),
    "xczu7ev": (624, 1728, 460800, 230400, 96), "xczu3eg": (432, 360, 141120, 70560, 0),
}  # fmt: skip
_RESOURCES = ("BRAM_18K", "DSP", "FF", "LUT", "URAM")


@dataclass(frozen=True)
class Synthesis:
    """A design as it was synthesised: its modules, the top last."""

    style: Style
    part: str
    period: float
    source: str
    modules: list[Module]

    @property
    def top(self) -> Module:
        return self.modules[-1]

    @property
    def estimated(self) -> float:
        return 0.73 * self.period

    @property
    def family(self) -> str:
        return "virtexuplusHBM" if self.part[:6] in ("xcu55c", "xcu280") else "virtexuplus"

    @property
    def available(self) -> dict[str, int]:
        return dict(zip(_RESOURCES, _DEVICES[self.part.partition("-")[0]], strict=True))


def used(module: Module) -> dict[str, int]:
    return dict(zip(_RESOURCES, (module.bram, module.dsp, module.ff, module.lut, 0), strict=True))


def split(modules: Iterable[Module], style: Style) -> list[Module]:
    """The modules as a release reports them: it may give a pipelined loop beside others a module of its own."""
    found: list[Module] = []
    for module in modules:
        loops = [loop for outer in module.loops for loop in (outer, *outer.inside)]
        if not style.splits or len(loops) < 2:
            found.append(module)
            continue
        for loop in loops:
            if loop.ii is not None:
                own = Module(f"{module.name}_Pipeline_{loop.name}", loop.line, [loop], [], False, [], [])
                own.latency = own.interval = loop.latency + 2
                found.append(own)
        found.append(replace(module, loops=[_emptied(loop) for loop in module.loops if loop.ii is None]))
    return found


def _emptied(loop: Loop) -> Loop:
    return replace(loop, inside=[], depth=loop.iteration)


def csynth_xml(design: Synthesis, *, with_modules: bool = True) -> str:
    """The whole design; without its modules it is what the oldest tools write, which give each a file of its own."""
    top, style = design.top, design.style
    parts = _profile(design, top)
    if with_modules:
        parts.append(("ModuleInformation", [_module(design, module) for module in design.modules]))
        parts.append(("FIFOInformation", [_fifo(fifo.name, fifo.depth) for m in design.modules for fifo in m.fifos]))
    text = "\n".join(_lines(("profile", parts), 0, style.release > "2021"))
    return text + "\n"


def module_xml(design: Synthesis, module: Module) -> str:
    """`<module>_csynth.xml`, which describes a module as if it were a top."""
    return "\n".join(_lines(("profile", _profile(design, module)), 0, False)) + "\n"


def _profile(design: Synthesis, module: Module) -> list[Node]:
    style, available = design.style, design.available
    performance: list[Node] = [
        ("PipelineType", _kind(module, style)),
        ("SummaryOfTimingAnalysis", [("unit", "ns"), ("EstimatedClockPeriod", f"{design.estimated:.3f}")]),
        ("SummaryOfOverallLatency", [
            ("unit", "clock cycles"), *_latencies(module, design),
            *([("DataflowPipelineThroughput", str(module.interval))] if module.dataflow else []),
            ("Interval-min", str(module.interval)), ("Interval-max", str(module.interval)),
        ]),
    ]  # fmt: skip
    if module.loops:
        performance.append(_loop_latency(design, module))
    return [
        ("ReportVersion", [("Version", style.release)]),
        ("UserAssignments", [
            ("unit", "ns"), ("ProductFamily", design.family), ("Part", design.part), ("TopModelName", module.name),
            ("TargetClockPeriod", f"{design.period:.2f}"), ("ClockUncertainty", f"{0.27 * design.period:.2f}"),
            ("FlowTarget", "vitis"),
        ]),
        ("PerformanceEstimates", performance),
        ("AreaEstimates", [
            ("Resources", [(name, str(count)) for name, count in used(module).items()]),
            ("AvailableResources", [(name, str(count)) for name, count in available.items()]),
        ]),
    ]  # fmt: skip


def _latencies(module: Module, design: Synthesis) -> list[Node]:
    cases = ("Best", "Average", "Worst")
    real = absolute(module.latency, design.period)
    return [
        *((f"{case}-caseLatency", str(module.latency)) for case in cases),
        *((f"{case}-caseRealTimeLatency", real) for case in cases),
    ]


def absolute(cycles: int, period: float) -> str:
    """A time as the reports write it: "2.662 ms"."""
    nanoseconds = cycles * period
    scale, unit = next(pair for pair in ((1e9, "sec"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")) if nanoseconds >= pair[0])
    return f"{nanoseconds / scale:.3f} {unit}"


def _kind(module: Module, style: Style) -> str:
    return "dataflow" if module.dataflow else style.idle


def _loop_latency(design: Synthesis, module: Module) -> Node:
    return ("SummaryOfLoopLatency", [_loop(design, loop, module) for loop in module.loops])


def _loop(design: Synthesis, loop: Loop, module: Module) -> Node:
    style = design.style
    absolute_time = absolute(loop.latency, design.period) if style.names else f"{loop.latency * design.period:.0f}"
    figures: list[Node] = [("Name", loop.name), ("Slack", "2.43")] if style.names else []
    figures += [("TripCount", str(loop.trip)), ("Latency", str(loop.latency)), ("AbsoluteTimeLatency", absolute_time)]
    if loop.ii is None:
        figures.append(("IterationLatency", str(loop.iteration)))
    else:
        figures += [("PipelineII", str(loop.ii)), ("PipelineDepth", str(loop.depth))]
    if style.names:
        figures.append(("PipelineType", pipeline_word(loop, module, style)))
    figures.append(("InstanceList", ""))
    return (loop.name, [*figures, *(_loop(design, inner, module) for inner in loop.inside)])


def pipeline_word(loop: Loop, module: Module, style: Style) -> str:
    """What a release says of a loop's pipeline: newer ones also how it starts again, and how it waits.

    Of what flushes no report was at hand: that its style is named is all that is assumed.
    """
    if loop.ii is None:
        return "no"
    if style.release >= "2024" and loop.style is not None:
        return f"loop {loop.style}"
    rewinds = style.release >= "2024" and "_Pipeline_" in module.name
    return "loop auto-rewind stp(delay=0 clock cycles(s))" if rewinds else "yes"


def _module(design: Synthesis, module: Module) -> Node:
    available = {name.removesuffix("_18K"): count for name, count in design.available.items()}
    resources: list[Node] = []
    for name, count in used(module).items():
        short = name.removesuffix("_18K")
        resources += [(name, str(count)), (f"AVAIL_{short}", str(available[short])), (f"UTIL_{short}", "~0")]
    throughput = [("DataflowPipelineThroughput", str(module.interval))] if module.dataflow else []
    performance: list[Node] = [
        ("SummaryOfTimingAnalysis", [
            ("TargetClockPeriod", f"{design.period:.2f}"), ("ClockUncertainty", f"{0.27 * design.period:.2f}"),
            ("EstimatedClockPeriod", f"{design.estimated:.3f}"),
        ]),
        ("SummaryOfOverallLatency", [
            *_latencies(module, design), *throughput, ("PipelineInitiationInterval", str(module.interval)),
            ("PipelineType", _kind(module, design.style)),
        ]),
    ]  # fmt: skip
    parts: list[Node] = [("Name", module.name)]
    if module.loops:
        parts.append(("Loops", [(loop.name, "") for loop in module.loops]))
        performance.append(_loop_latency(design, module))
    parts += [("PerformanceEstimates", performance), ("AreaEstimates", [("Resources", resources)])]
    if design.style.binds:
        parts.append(("BindNodes", list(_bindings(design, module))))
    return ("Module", parts)


def _bindings(design: Synthesis, module: Module) -> Iterable[Node]:
    def node(**found: object) -> Node:
        if not design.style.sizes:
            found.pop("STORAGESIZE", None)
        usual = {"BUNDLEDNAME": "", "DSP": 0, "ID": "", "LOOP": "", "PRAGMA": "", "STORAGESUBTYPE": "", "URAM": 0}
        text = " ".join(f"{key}={quoteattr(str(value))}" for key, value in sorted((usual | found).items()))
        return (f"BindNode {text}", "")

    for fifo in module.fifos:
        yield node(
            BINDTYPE="storage" if design.style.sizes else "op", BRAM=fifo.bram,
            DISPNAME="bind_storage fifo", IMPL="memory" if fifo.bram else "srl", LATENCY=0, OPTYPE="fifo",
            RTLNAME=f"{fifo.name}_U", SOURCE=f"{design.source}:{fifo.line}",
            STORAGESIZE=f"{fifo.bits} {fifo.depth} 1", STORAGESUBTYPE="stream", STORAGEUSAGE="fifo channel",
            VARIABLE=fifo.name,
        )  # fmt: skip
    for memory in module.memories:
        paired = memory.blocks > 1
        yield node(
            BINDTYPE="storage", BRAM=memory.bram, DISPNAME="bind_storage ram_s2p", IMPL="auto", LATENCY=1,
            OPTYPE="ram_s2p", RTLNAME=f"{memory.name}_U", SOURCE=f"{design.source}:{memory.line}",
            STORAGESIZE=f"{memory.bits} {memory.words} {memory.blocks}", STORAGESUBTYPE="pipo" if paired else "",
            STORAGEUSAGE="ram_s2p channel" if paired else "ram_s2p array", VARIABLE=memory.name,
        )  # fmt: skip
    for loop in module.loops:
        for number, operator in enumerate(loop.operators):
            name = f"{operator.kind}_ln{operator.line}_{number}"
            yield node(
                BINDTYPE="op", BRAM=0, DISPNAME=f"bind_op {operator.kind}", IMPL="fabric", LATENCY=0, LOOP=loop.name,
                OPTYPE=operator.kind, RTLNAME=f"{name}_fu_{100 + number}_p2", VARIABLE=name,
                SOURCE=f"{design.source}:{operator.line}",
            )  # fmt: skip


def _fifo(name: str, depth: int) -> Node:
    return ("FIFOInst", [("Name", f"{name}_U"), ("ParentInst", ""), ("StaticDepth", str(depth))])


def _lines(node: Node, level: int, indented: bool) -> Iterable[str]:
    head, content = node
    pad = "    " * level if indented else ""
    tag = re.split(r"\s", head, maxsplit=1)[0]
    if isinstance(content, str):
        yield f"{pad}<{head}>{escape(content)}</{tag}>" if content else f"{pad}<{head}/>"
        return
    yield f"{pad}<{head}>"
    for child in content:
        yield from _lines(child, level + 1, indented)
    yield f"{pad}</{tag}>"
