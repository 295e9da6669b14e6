"""The dataflow of a design as nodes and edges: a node a layer, an edge a channel, groups as in the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web.text import Document

HELPERS = ("load", "store", "spill", "pack", "unpack", "fork", "convert", "chunk", "concat")
"""What labels of parts begin with that only move a tensor, before its name: those of `compiler/plan/names.py`."""
RESOURCES = ("lut", "ff", "dsp", "bram18", "uram")
_MOVES, COMPUTES, _HOST = "moves", "computes", "host"


@dataclass(frozen=True)
class FlowNode:
    """A layer of the design, with all tasks that it is made of."""

    key: str
    group: str
    kind: str
    tasks: tuple[str, ...]
    die: str
    ii: int
    latency: int
    busy: int | None
    waited: int | None
    area: Mapping[str, int]
    critical: bool
    at: str = ""
    """Where a click on it leads; nothing: it is opened."""


@dataclass(frozen=True)
class FlowEdge:
    name: str
    source: str
    target: str
    kind: str
    width: int | None
    depth: int | None
    held: int | None
    """The most that was in it: as simulated, else as modelled."""
    evidence: str
    memory: str
    tokens: int | None

    @property
    def fill(self) -> float | None:
        if not self.depth or self.held is None:
            return None
        return min(1.0, self.held / self.depth)


@dataclass(frozen=True)
class FlowGraph:
    nodes: tuple[FlowNode, ...]
    edges: tuple[FlowEdge, ...]
    dies: tuple[str, ...]
    evidence: str
    """Of a layer's cycles; what is busy or waits is simulated, and a channel says where its fill comes from."""

    def node(self, key: str) -> FlowNode | None:
        return next((node for node in self.nodes if node.key == key), None)

    def as_json(self) -> str:
        """What the drawing needs, made safe to stand in a page."""
        nodes = [
            {"id": n.key, "group": n.group, "kind": n.kind, "die": self.dies.index(n.die) if n.die in self.dies else -1,
             "ii": n.ii, "latency": n.latency, "busy": n.busy, "waited": n.waited, "critical": n.critical,
             "dsp": n.area.get("dsp", 0), "lut": n.area.get("lut", 0), **({"at": n.at} if n.at else {})}
            for n in self.nodes
        ]  # fmt: skip
        edges = [
            {"name": e.name, "from": e.source, "to": e.target, "width": e.width, "depth": e.depth, "held": e.held,
             "fill": e.fill, "kind": e.kind}
            for e in self.edges
        ]  # fmt: skip
        made = json.dumps({"nodes": nodes, "edges": edges, "dies": self.dies}, separators=(",", ":"))
        return made.replace("<", "\\u003c").replace("&", "\\u0026")


def view_dataflow(report: Document) -> FlowGraph:
    """From a report. Tasks of one layer are one node; the host's side is a node for each input and output."""
    tasks = report["timing"]["kernels"]
    simulated = report["timing"]["simulated"] or {}
    times = {time["task"]: time for time in simulated.get("tasks", ())}
    critical = {step["task"] for step in simulated.get("critical_path", ())}
    dies = {task: die["name"] for die in (report["placement"] or {"dies": ()})["dies"] for task in die["tasks"]}
    area = {row["kernel"]: row for row in report["resources"]["kernels"]}
    computing = {kernel["name"] for kernel in report["design"]["kernels"]}
    by_label: dict[str, list[Document]] = {}
    for task in tasks:
        by_label.setdefault(task["kernel"], []).append(task)
    channels = report["design"]["channels"]
    names = {task["nest"]: task["kernel"] for task in tasks}
    edges = tuple(_edge(channel, names) for channel in channels)
    host = {edge.source for edge, c in zip(edges, channels, strict=True) if not c["source"]}
    host |= {edge.target for edge, c in zip(edges, channels, strict=True) if not c["target"]}
    for edge in edges:  # an end that no task bears the name of is drawn all the same
        by_label.setdefault(edge.source, [])
        by_label.setdefault(edge.target, [])
    nodes = tuple(
        FlowNode(
            key=label,
            group=group_of(label),
            kind=_HOST if label in host else COMPUTES if label in computing else _MOVES,
            tasks=tuple(task["nest"] for task in own),
            die=next((dies[task["nest"]] for task in own if task["nest"] in dies), ""),
            ii=max((task["ii"] or 0 for task in own), default=0),
            latency=max((task["latency_cycles"] or 0 for task in own), default=0),
            busy=_sum(times[t["nest"]]["busy_cycles"] for t in own if t["nest"] in times),
            waited=_sum(times[t["nest"]]["waited_cycles"] for t in own if t["nest"] in times),
            area={name: area.get(label, {}).get(name) or 0 for name in RESOURCES},
            critical=any(task["nest"] in critical for task in own),
        )
        for label, own in by_label.items()
    )
    found = dict.fromkeys(node.die for node in nodes if node.die)
    evidence = next((task["evidence"] for task in tasks), "modelled")
    return FlowGraph(nodes, edges, tuple(sorted(found)), evidence)


def group_of(label: str) -> str:
    """The part of the model that a layer belongs to: `blocks.0` of `convert.blocks.0.first.relu`."""
    parts = label.split(".")
    while len(parts) > 1 and parts[0] in HELPERS:
        parts = parts[1:]
    return ".".join(parts[:2]) if len(parts) > 2 and parts[1].isdigit() else parts[0]


def _edge(channel: Document, names: Mapping[str, str]) -> FlowEdge:
    held = channel["held"] if channel["held"] is not None else channel["high_water"]
    writer, reader = _ends(channel["name"], names)
    return FlowEdge(
        name=channel["name"],
        source=channel["source"] or writer or "host",
        target=channel["target"] or reader or "host",
        kind=channel["kind"],
        width=channel["width_bits"],
        depth=channel["depth"],
        held=held,
        evidence="simulated" if channel["held"] is not None else channel["evidence"] or "modelled",
        memory=channel["memory"],
        tokens=channel["tokens"],
    )


def _ends(name: str, names: Mapping[str, str]) -> tuple[str, str]:
    """The layers of `writer__reader`, since a report names the host's ends no further."""
    writer, _, reader = name.partition("__")
    while reader and writer not in names:
        more, found, rest = reader.partition("__")
        if not found:
            break
        writer, reader = f"{writer}__{more}", rest
    return names.get(writer, ""), names.get(reader, "")


def _sum(values: Iterable[int]) -> int | None:
    found = list(values)
    return sum(found) if found else None


def neighbours(flow: FlowGraph, key: str) -> tuple[list[FlowEdge], list[FlowEdge]]:
    """The channels that a layer reads, and those that it writes."""
    return [e for e in flow.edges if e.target == key], [e for e in flow.edges if e.source == key]


def stalls_of(report: Document, tasks: Sequence[str]) -> list[dict[str, Any]]:
    """What tasks waited for in the simulation, the longest first."""
    simulated = report["timing"]["simulated"] or {}
    return [dict(stall) for stall in simulated.get("stalls", ()) if stall["task"] in tasks]
