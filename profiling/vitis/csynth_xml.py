"""csynth.xml of every generation: which elements it has decides what is read, never its version number."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.profiling.vitis.reading import unreadable
from penstock.profiling.vitis.records import (
    BoundOperation,
    CountSpan,
    Module,
    ReportedFifo,
    ReportedLoop,
    ReportedMemory,
    ReportedUsage,
    SynthesisReport,
)
from penstock.profiling.vitis.values import ReadingNotes, between, name_of, span, usage, whole
from penstock.profiling.vitis.xml_tree import XmlNode, read_xml

# Lists of ports and pragmas, most of the file in designs with many arguments; nothing here is read from them.
SKIPPED = frozenset({"InterfaceSummary", "Interfaces", "Args", "PragmaReport", "AutoPragmaReport", "ReportBurst"})

_LOOP_FIGURES = frozenset({"TripCount", "Latency", "IterationLatency", "PipelineII", "PipelineDepth", "PipelineType"})


def read_csynth_xml(path: Path) -> SynthesisReport:
    """Read csynth.xml or a module's `<name>_csynth.xml`, packed with gzip or not."""
    root, notes = read_xml(path, SKIPPED), ReadingNotes()
    performance, area = root.child("PerformanceEstimates"), root.child("AreaEstimates")
    if performance is None and area is None and root.child("ModuleInformation") is None:
        raise unreadable(path, f"no synthesis report: its root is <{root.tag}>", limit="estimates were expected")
    performance, area = performance or XmlNode("none", {}), area or XmlNode("none", {})
    assigned = root.child("UserAssignments") or XmlNode("none", {})
    top = name_of(assigned.word("TopModelName"))
    if top is None:
        notes.add("top: not in the report")
    overall = performance.child("SummaryOfOverallLatency") or XmlNode("none", {})
    modules = tuple(_modules(root, notes))
    return SynthesisReport(
        source=path.name,
        top=top,
        version=name_of(root.word("ReportVersion", "Version")),
        part=name_of(assigned.word("Part")),
        family=name_of(assigned.word("ProductFamily")),
        flow=name_of(assigned.word("FlowTarget")),
        clock_target_ns=notes.decimal(assigned.word("TargetClockPeriod"), "clock target"),
        clock_uncertainty_ns=notes.decimal(assigned.word("ClockUncertainty"), "clock uncertainty"),
        clock_estimated_ns=notes.decimal(
            performance.word("SummaryOfTimingAnalysis", "EstimatedClockPeriod"), "estimated clock"
        ),
        kind=name_of(performance.word("PipelineType")),
        latency=_latency(overall, "latency", notes),
        latency_average=whole(overall.word("Average-caseLatency")),
        interval=_interval(overall, "interval", notes),
        used=_usage(area.child("Resources"), "used", notes),
        available=_usage(area.child("AvailableResources"), "available", notes),
        loops=tuple(_all_loops(root, top, modules, notes)),
        modules=modules,
        instances=(),
        fifos=tuple(_fifos(root)),
        memories=tuple(_memories(root)),
        operators=tuple(_operators(root)),
        notes=notes.lines(),
        depth=_span(overall.child("PipelineDepth"), "", None),
    )


def _latency(node: XmlNode, what: str, notes: ReadingNotes) -> CountSpan | None:
    low = notes.whole(node.word("Best-caseLatency"), f"{what}, least")
    high = notes.whole(node.word("Worst-caseLatency"), f"{what}, most")
    return notes.between(low, high, what)


def _interval(node: XmlNode, what: str, notes: ReadingNotes) -> CountSpan | None:
    low, high = node.word("Interval-min"), node.word("Interval-max")
    if low is not None or high is not None:
        return notes.between(notes.whole(low, f"{what}, least"), notes.whole(high, f"{what}, most"), what)
    for tag in ("PipelineInitiationInterval", "DataflowPipelineThroughput"):
        if (found := node.child(tag)) is not None:
            return _span(found, what, notes)
    notes.add(f"{what}: not in the report")
    return None


def _span(node: XmlNode | None, what: str, notes: ReadingNotes | None) -> CountSpan | None:
    """A figure as text ("37", "17 ~ 1929") or as an element <range> of <min> and <max>."""
    if node is None:
        if notes is not None:
            notes.add(f"{what}: not in the report")
        return None
    if (ends := node.child("range")) is not None:
        return between(whole(ends.word("min")), whole(ends.word("max")))
    return notes.span(node.text, what) if notes is not None else span(node.text)


def _usage(node: XmlNode | None, what: str, notes: ReadingNotes, prefix: str = "") -> ReportedUsage:
    found = {} if node is None else {
        child.tag.removeprefix(prefix): child.text for child in node.children if child.tag.startswith(prefix)
    }  # fmt: skip
    result = usage(found)
    if result.missing:
        notes.add(f"{what}: no figure for {', '.join(result.missing)}")
    return result


def _modules(root: XmlNode, notes: ReadingNotes) -> Iterator[Module]:
    for node in _module_nodes(root):
        name = node.word("Name") or "?"
        overall = node.at("PerformanceEstimates", "SummaryOfOverallLatency") or XmlNode("none", {})
        resources = node.at("AreaEstimates", "Resources")
        clock = node.word("PerformanceEstimates", "SummaryOfTimingAnalysis", "EstimatedClockPeriod")
        kind = overall.word("PipelineType") or node.word("PerformanceEstimates", "PipelineType")
        yield Module(
            name, notes.decimal(clock, f"estimated clock of {name}"), _latency(overall, f"latency of {name}", notes),
            _interval(overall, f"interval of {name}", notes), name_of(kind),
            _usage(resources, f"used by {name}", notes), _usage(resources, f"available to {name}", notes, "AVAIL_"),
            _span(overall.child("PipelineDepth"), "", None),
        )  # fmt: skip


def _module_nodes(root: XmlNode) -> list[XmlNode]:
    information = root.child("ModuleInformation")
    return [] if information is None else [node for node in information.children if node.tag == "Module"]


def _all_loops(
    root: XmlNode, top: str | None, modules: tuple[Module, ...], notes: ReadingNotes
) -> Iterator[ReportedLoop]:
    """The loops of all modules; the top's own list repeats what its module says, where it has one."""
    performance = root.child("PerformanceEstimates")
    if performance is not None and all(module.name != top for module in modules):
        yield from _module_loops(performance, top or "?", notes)
    for node in _module_nodes(root):
        if (performance := node.child("PerformanceEstimates")) is not None:
            yield from _module_loops(performance, node.word("Name") or "?", notes)


def _module_loops(performance: XmlNode, module: str, notes: ReadingNotes) -> Iterator[ReportedLoop]:
    for summary in performance.children:
        if summary.tag == "SummaryOfLoopLatency":
            for node in summary.children:
                yield from _loops(node, module, (), notes)


def _loops(node: XmlNode, module: str, parents: tuple[str, ...], notes: ReadingNotes) -> Iterator[ReportedLoop]:
    name = node.word("Name") or node.attributes.get("name") or node.tag
    where = f"{module}, loop {name}"
    ii, depth = node.child("PipelineII"), node.child("PipelineDepth")
    kind = name_of(node.word("PipelineType"))
    yield ReportedLoop(
        name=name,
        module=module,
        parents=parents,
        trip=_span(node.child("TripCount"), f"trip count of {where}", notes),
        latency=_span(node.child("Latency"), f"latency of {where}", notes),
        ii=_span(ii, f"II of {where}", None if ii is None else notes),
        target_ii=whole(node.word("TargetII")),
        depth=_span(depth, f"depth of {where}", None if depth is None else notes),
        iteration_latency=_span(node.child("IterationLatency"), "", None),
        pipelined=(ii is not None) if kind is None else kind.lower() not in ("no", "none", "dataflow"),
        kind=kind,
    )
    for child in node.children:
        if any(grandchild.tag in _LOOP_FIGURES for grandchild in child.children):
            yield from _loops(child, module, (*parents, name), notes)


def _bound(root: XmlNode, kind: str) -> Iterator[tuple[str | None, XmlNode]]:
    for module in _module_nodes(root):
        for node in module.every("BindNode"):
            if node.attributes.get("BINDTYPE") == kind:
                yield module.word("Name"), node


def _bound_usage(node: XmlNode) -> ReportedUsage:
    return usage({name: node.attributes.get(name) for name in ("BRAM", "URAM", "DSP")})


def _storage(node: XmlNode) -> tuple[int | None, int | None, int | None]:
    """Bits, words and the third figure of STORAGESIZE: banks, or blocks of a ping-pong buffer."""
    words = node.attributes.get("STORAGESIZE", "").split()
    sizes = [whole(word) for word in words[:3]]
    bits, depth, third = (*sizes, None, None, None)[:3]
    return bits, depth, third


def _fifos(root: XmlNode) -> Iterator[ReportedFifo]:
    """FIFOs as they were bound, else their instances, which know the depths that 2021.2 to 2023.1 do not bind."""
    listed = tuple(_fifo_instances(root))
    depths = {fifo.name: fifo.depth for fifo in listed}
    seen = False
    for kind in ("storage", "op"):
        for module, node in _bound(root, kind):
            if node.attributes.get("OPTYPE") == "fifo":
                seen = True
                bits, depth, _ = _storage(node)
                name = node.attributes.get("RTLNAME") or node.attributes.get("VARIABLE") or "?"
                depth = depths.get(name) if depth is None else depth
                yield ReportedFifo(name, module, depth, bits, name_of(node.attributes.get("IMPL")), _bound_usage(node))
    if not seen:
        yield from listed


def _fifo_instances(root: XmlNode) -> Iterator[ReportedFifo]:
    information = root.child("FIFOInformation")
    for node in information.every("FIFOInst") if information is not None else ():
        parent = name_of(node.word("ParentInst"))
        yield ReportedFifo(
            node.word("Name") or "?", parent, whole(node.word("StaticDepth")), None, None, ReportedUsage()
        )


def _memories(root: XmlNode) -> Iterator[ReportedMemory]:
    for module, node in _bound(root, "storage"):
        kind = node.attributes.get("OPTYPE", "")
        if kind == "fifo":
            continue
        bits, words, third = _storage(node)
        paired = node.attributes.get("STORAGESUBTYPE") == "pipo"
        name = node.attributes.get("RTLNAME") or node.attributes.get("VARIABLE") or "?"
        yield ReportedMemory(
            name, module, name_of(kind), words, bits, None if paired else third, third if paired else 1,
            _bound_usage(node),
        )  # fmt: skip


def _operators(root: XmlNode) -> Iterator[BoundOperation]:
    for module, node in _bound(root, "op"):
        found = node.attributes
        if found.get("OPTYPE") == "fifo":
            continue
        yield BoundOperation(
            found.get("RTLNAME") or "?", module, found.get("OPTYPE") or "?", name_of(found.get("IMPL")),
            whole(found.get("LATENCY")), name_of(found.get("LOOP")), name_of(found.get("SOURCE")),
            _bound_usage(node),
        )  # fmt: skip
