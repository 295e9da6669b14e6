"""The design of a run: its dataflow, its time in the simulation, its area, and one kernel in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.web import text
from penstock.web.dataflow_view import (
    HELPERS,
    RESOURCES,
    FlowEdge,
    FlowGraph,
    FlowNode,
    neighbours,
    stalls_of,
    view_dataflow,
)
from penstock.web.memory_map import MemoryMap, view_memory_map
from penstock.web.text import Document
from penstock.web.treemap import TreemapArea, lay_out

MOST_ROWS = 400
LARGE = 60
"""Layers."""
MOST_ELEMENTS = 256
_FREE = "free"


@dataclass(frozen=True)
class ResourceRow:
    """A resource: what is used of what a design may use, and of what there is."""

    name: str
    used: str
    limit: str
    of_limit: str
    of_device: str
    percent: float
    over: bool


@dataclass(frozen=True)
class TreeCell:
    area: TreemapArea
    title: str
    label: str
    style: str
    kernel: str


@dataclass(frozen=True)
class TimeBar:
    """A task's time in the simulation of one input, in percent of the whole: until its first token, from there to its
    end, and how much of that it works."""

    task: str
    kernel: str
    start: float
    first: float
    width: float
    works: float
    title: str
    waits: str
    critical: bool
    computes: bool


@dataclass(frozen=True)
class ModelLine:
    """A line of the user's model, or the node that stands for one."""

    where: str
    said: str
    text: str


@dataclass(frozen=True)
class KernelView:
    """One layer: its loops, why it takes what it takes, its channels, its area, its code."""

    node: FlowNode
    facts: tuple[tuple[str, str], ...]
    tasks: tuple[Document, ...]
    stalls: tuple[Document, ...]
    reads: tuple[FlowEdge, ...]
    writes: tuple[FlowEdge, ...]
    area: tuple[tuple[str, str], ...]
    evidence: str
    code: tuple[tuple[str, str], ...]
    lines: tuple[ModelLine, ...]
    lines_of: str
    """The layer that they are of, where this one only moves what that makes."""

    @property
    def has_core(self) -> bool:
        return any(language == "SystemVerilog" for language, _ in self.code)


@dataclass(frozen=True)
class DesignView:
    flow: FlowGraph
    resources: tuple[ResourceRow, ...]
    resource_evidence: str
    tree: tuple[TreeCell, ...]
    tree_of: str
    bars: tuple[TimeBar, ...]
    cycles: int
    timing: Document
    left_out: int
    memory_map: MemoryMap | None
    notes: tuple[str, ...]
    mapping: tuple[str, ...]
    elements: tuple[Document, ...]
    """Of a task program whose instances share some."""
    placement: Document | None
    """Where they stand on a grid."""

    @property
    def is_large(self) -> bool:
        """Its long tables are laid out when they come into sight."""
        return len(self.flow.nodes) > LARGE

    @property
    def shown_elements(self) -> tuple[Document, ...]:
        return self.elements[:MOST_ELEMENTS]

    @property
    def places(self) -> list[list[str]]:
        """Rows of the grid, with the element at each place."""
        if self.placement is None:
            return []
        at = {(one["row"], one["column"]): one["name"] for one in self.elements}
        columns = range(self.placement["columns"])
        return [[at.get((row, column), "") for column in columns] for row in range(self.placement["rows"])]

    @property
    def instances(self) -> int:
        return sum(len(one["instances"]) for one in self.elements)


def view_design(report: Document, resource: str) -> DesignView:
    use = report["resources"]
    shares = {name: use[name]["share"] for name in RESOURCES if use[name]["share"] is not None}
    tree_of = resource if resource in RESOURCES else max(shares, key=lambda name: shares[name], default="lut")
    flow = view_dataflow(report)
    bars, cycles = _timeline(report, flow)
    return DesignView(
        flow=flow,
        resources=tuple(_resource(name, use[name]) for name in RESOURCES),
        resource_evidence=use["evidence"] or "",
        tree=_tree(use, tree_of, flow),
        tree_of=tree_of,
        bars=tuple(bars[:MOST_ROWS]),
        cycles=cycles,
        timing=report["timing"],
        left_out=max(0, len(bars) - MOST_ROWS),
        memory_map=view_memory_map(report, flow),
        notes=tuple(note for note in (report["timing"]["note"], use["note"]) if note),
        mapping=tuple(report["design"].get("mapping", ())),
        elements=tuple(report["design"].get("elements", ())),
        placement=report["design"].get("placement"),
    )


def view_kernel(report: Document, flow: FlowGraph, key: str, code: Mapping[str, str]) -> KernelView | None:
    """None where the design has no such layer."""
    node = flow.node(key)
    if node is None:
        return None
    reads, writes = neighbours(flow, key)
    decided = next((kernel for kernel in report["design"]["kernels"] if kernel["name"] == key), None)
    area = next((row for row in report["resources"]["kernels"] if row["kernel"] == key), None)
    lines, lines_of = _lines(report["design"].get("written", ()), key)
    return KernelView(
        node=node,
        facts=_facts(node, decided),
        tasks=tuple(task for task in report["timing"]["kernels"] if task["nest"] in node.tasks),
        stalls=tuple(stalls_of(report, node.tasks)),
        reads=tuple(reads),
        writes=tuple(writes),
        area=tuple((name.upper(), f"{area[name]:,}") for name in RESOURCES if area[name] is not None) if area else (),
        evidence=(area or {}).get("evidence") or "",
        code=tuple(code.items()),
        lines=lines,
        lines_of=lines_of,
    )


def _lines(written: Sequence[Document], key: str) -> tuple[tuple[ModelLine, ...], str]:
    """Of a layer, or of that whose tensor it moves: `convert.blocks.0.first` carries what `blocks.0.first` makes."""
    known = {one["kernel"] for one in written}
    parts = key.split(".")
    while key not in known and parts and parts[0] in HELPERS:
        parts = parts[1:]
    while parts and ".".join(parts) not in known:
        parts = parts[:-1]
    name = ".".join(parts)
    by_line: dict[tuple[str, str], dict[str, list[str]]] = {}
    for one in written:
        if one["kernel"] == name:
            where = f"{one['file']}:{one['line']}" if one["file"] else one["layer"] or "the top of the model"
            layer = one["layer"] if one["file"] else ""
            by_line.setdefault((where, one["text"]), {}).setdefault(layer, []).append(one["operation"])
    lines = tuple(ModelLine(where, _said(layers), text) for (where, text), layers in by_line.items())
    return lines, "" if name == key else name


def _said(layers: Mapping[str, Sequence[str]]) -> str:
    """What is done on a line, layer by layer."""
    parts = [", ".join(filter(None, done)) + (f" in {layer}" if layer else "") for layer, done in layers.items()]
    return "; ".join(part.strip() for part in parts)


def _facts(node: FlowNode, decided: Document | None) -> tuple[tuple[str, str], ...]:
    rows = [("part of the model", node.group), ("die", node.die)]
    if decided:
        lanes = 1
        for factor in decided["unroll"]:
            lanes *= factor
        sizes = {name: " × ".join(map(str, decided[name])) for name in ("trips", "tile", "unroll")}
        rows += [
            ("computes", decided["operation"]), ("iterations", sizes["trips"]), ("tile", sizes["tile"]),
            ("lanes", f"{lanes:,} ({sizes['unroll']})"), ("loop order", " → ".join(f"d{d}" for d in decided["order"])),
            ("weights", {"rom": "on the chip", "stream": "in external memory"}.get(decided["weights"], "none")),
        ]  # fmt: skip
    if node.busy is not None:
        rows.append(("busy, waiting", f"{node.busy:,} and {node.waited or 0:,} cycles"))
    return tuple((name, value) for name, value in rows if value)


def _resource(name: str, amount: Document) -> ResourceRow:
    used, limit, available, share = (amount[key] for key in ("used", "limit", "available", "share"))
    known = used is not None and available
    of_limit = used / limit if used is not None and limit else None
    return ResourceRow(
        name=name.upper(),
        used="–" if used is None else f"{used:,}",
        limit="–" if limit is None else f"{limit:,}",
        of_limit="–" if of_limit is None else text.percent(of_limit),
        of_device=text.percent(share if share is not None else used / available) if known else "–",
        percent=min(100.0, 100 * of_limit) if of_limit is not None else 0.0,
        over=of_limit is not None and of_limit > 1,
    )


def _tree(use: Document, name: str, flow: FlowGraph) -> tuple[TreeCell, ...]:
    values = [(row["kernel"], float(row[name] or 0)) for row in use["kernels"]]
    limit, whole = use[name]["limit"] or 0, sum(value for _, value in values)
    if not whole:
        return ()
    kinds = {node.key: node.kind for node in flow.nodes}
    left = max(0.0, limit - whole)
    drawn = min(left, whole)  # of a device that is nearly empty the layers would not be seen
    said = "free, up to the limit" if drawn == left else f"free: {text.percent(left / limit)}, not to scale"
    cells: list[TreeCell] = []
    for area in lay_out([*values, (_FREE, drawn)]):
        free = area.key == _FREE
        value, shown = (left, said) if free else (area.value, area.key)
        share = f", {text.percent(value / limit)} of the limit" if limit else ""
        fits = area.width > 2 + 1.5 * len(shown) and area.height > 9
        cells.append(
            TreeCell(
                area, f"{area.key}: {value:,.0f} {name.upper()}{share}", shown if fits else "",
                "free" if free else kinds.get(area.key, "moves"), "" if free or area.key == "channels" else area.key,
            )
        )  # fmt: skip
    return tuple(cells)


def _timeline(report: Document, flow: FlowGraph) -> tuple[list[TimeBar], int]:
    """What computes first, then what moves data; each in the order of its first tokens."""
    simulated = report["timing"]["simulated"]
    if not simulated or not simulated["tasks"]:
        return [], 0
    kernels = {task["nest"]: task["kernel"] for task in report["timing"]["kernels"]}
    waits: dict[str, Document] = {}
    for stall in simulated["stalls"]:  # the longest first
        waits.setdefault(stall["task"], stall)
    ends = {edge.name: edge for edge in flow.edges}
    critical = {step["task"] for step in simulated["critical_path"]}
    computing = {node.key for node in flow.nodes if node.kind == "computes"}
    whole = max(task["end_cycle"] for task in simulated["tasks"]) or 1
    bars = [
        _bar(
            task, kernels.get(task["task"], ""), waits.get(task["task"]), ends, whole,
            critical=task["task"] in critical, computes=kernels.get(task["task"]) in computing,
        )
        for task in sorted(simulated["tasks"], key=lambda t: (t["first_token_cycle"], t["end_cycle"]))
    ]  # fmt: skip
    return sorted(bars, key=lambda bar: not bar.computes), whole


def _bar(
    task: Document, kernel: str, stall: Document | None, ends: Mapping[str, FlowEdge], whole: int, *,
    critical: bool, computes: bool,
) -> TimeBar:  # fmt: skip
    start, first, end = (task[key] for key in ("start_cycle", "first_token_cycle", "end_cycle"))
    busy, waited = task["busy_cycles"], task["waited_cycles"]
    title = f"{task['task']}: first token in cycle {first:,}, done in {end:,}; busy {busy:,}, waiting {waited:,} cycles"
    return TimeBar(
        task=task["task"],
        kernel=kernel,
        start=round(100 * start / whole, 3),
        first=round(100 * first / whole, 3),
        width=round(max(0.25, 100 * (end - first) / whole), 3),
        works=round(max(0.25, 100 * min(busy, end - first) / whole), 3),
        title=title,
        waits="" if stall is None else f"{stall['cycles']:,} cycles {_for(stall, ends)}",
        critical=critical,
        computes=computes,
    )


def _for(stall: Document, ends: Mapping[str, FlowEdge]) -> str:
    """Whom a task waits for: whoever fills an empty channel, or empties a full one."""
    edge = ends.get(stall["channel"])
    if edge is None:
        return f"({stall['cause']})"
    if stall["cause"] == "empty":
        return f"for {edge.source} (nothing came)"
    return f"for {edge.target} (its channel was full)"


def shown_rows(nodes: Sequence[FlowNode]) -> tuple[FlowNode, ...]:
    """For the table: what takes longest first."""
    return tuple(sorted(nodes, key=lambda node: -node.latency)[:MOST_ROWS])
