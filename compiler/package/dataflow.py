"""Where boxes and pipes stand in the picture of a design: kernels from left to right, long chains in bands."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from penstock.compiler.package.report import ChannelInfo, Report
from penstock.compiler.package.scatter import short_count

BOX_WIDTH, HELPER_HEIGHT = 158, 34
NAME_HEIGHT, LINE_HEIGHT = 40, 17
GAP_X, GAP_Y, BAND_GAP, ARC_GAP = 92, 26, 46, 34
COLUMNS = 4
MARGIN = 14
PORT_GAP = 18
LANE_GAP = 7
HOST_IN, HOST_OUT = "host ▸", "▸ host"


@dataclass(frozen=True)
class Box:
    """One kernel, one end of the host's link, or a helper that moves data: a fork, a converter."""

    name: str
    lines: tuple[str, ...]
    kind: str
    x: float
    y: float
    height: float
    column: int
    band: int
    width: float = BOX_WIDTH

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Pipe:
    """One channel: a path whose thickness grows with the width of its token."""

    path: str
    thickness: float
    kind: str
    label: str
    title: str
    label_x: float
    label_y: float
    anchor: str


@dataclass(frozen=True)
class Dataflow:
    width: float
    height: float
    boxes: tuple[Box, ...]
    pipes: tuple[Pipe, ...]


@dataclass(frozen=True)
class _Edge:
    channel: ChannelInfo
    source: str
    target: str


def dataflow(report: Report) -> Dataflow:
    """Kernels in columns by their distance from the input; long chains continue in a band below."""
    named = [_Edge(c, c.source or HOST_IN, c.target or HOST_OUT) for c in report.design.channels]
    memory, edges = _apart([edge for edge in named if edge.source != edge.target], report)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(k.name for k in report.design.kernels)
    graph.add_edges_from((edge.source, edge.target) for edge in edges)
    layers = _layers(graph)
    boxes, bands, height = _place(layers, edges, _details(report, memory))
    ports = _Ports(boxes, bands, edges)
    columns = min(COLUMNS, max(1, len(layers)))
    width = 2 * MARGIN + columns * BOX_WIDTH + (columns - 1) * GAP_X + 24
    return Dataflow(width, height, tuple(boxes.values()), tuple(ports.pipe(edge) for edge in edges))


def _apart(edges: Sequence[_Edge], report: Report) -> tuple[list[_Edge], list[_Edge]]:
    """Channels that only bring parameters from external memory, and the others.

    The former become a line in the box of what they feed: drawn, they would hide the flow.
    """
    kernels = {k.name for k in report.design.kernels}
    fed = {edge.target for edge in edges}
    memory = [e for e in edges if e.source not in kernels | fed | {HOST_IN}]
    return memory, [e for e in edges if all(e is not m for m in memory)]


def _layers(graph: nx.DiGraph[str]) -> list[list[str]]:
    """Longest-path layers. A cycle (there should be none) is drawn as one row in the order of the design."""
    if not nx.is_directed_acyclic_graph(graph):
        return [[name] for name in graph.nodes]
    layers = [[name for name in layer if name != HOST_OUT] for layer in nx.topological_generations(graph)]
    last = [[HOST_OUT]] if HOST_OUT in graph else []
    return [*(layer for layer in layers if layer), *last]


def _place(
    layers: Sequence[Sequence[str]], edges: Sequence[_Edge], details: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Box], list[tuple[float, float]], float]:
    """Every box, top and bottom of every band, and the height of the picture.

    A band with skipping channels has room for them below it.
    """
    full = NAME_HEIGHT + LINE_HEIGHT * max([2, *(len(lines) for lines in details.values())])
    at = {name: position for position, layer in enumerate(layers) for name in layer}
    arcs = {at[e.source] // COLUMNS for e in edges if _skips(at[e.source], at[e.target])}
    boxes: dict[str, Box] = {}
    bands: list[tuple[float, float]] = []
    top = float(MARGIN)
    for band in range(math.ceil(len(layers) / COLUMNS)):
        members = layers[band * COLUMNS : (band + 1) * COLUMNS]
        rows = max(len(layer) for layer in members)
        height = rows * full + (rows - 1) * GAP_Y
        bands.append((top, top + height))
        for column, layer in enumerate(members):
            used = len(layer) * full + (len(layer) - 1) * GAP_Y
            for row, name in enumerate(layer):
                kind = _kind(name, details)
                own = HELPER_HEIGHT if kind == "helper" else full
                y = top + (height - used) / 2 + row * (full + GAP_Y) + (full - own) / 2
                x = MARGIN + column * (BOX_WIDTH + GAP_X)
                boxes[name] = Box(name, details.get(name, ()), kind, x, y, own, column, band)
        top += height + BAND_GAP + (ARC_GAP if band in arcs else 0)
    return boxes, bands, top - BAND_GAP + MARGIN


def _skips(source: int, target: int) -> bool:
    """Whether a channel passes over a column of its own band, and so has to go around what stands there."""
    return source // COLUMNS == target // COLUMNS and target - source > 1


class _Ports:
    """Spreads the channels of a box over its height, and draws them."""

    def __init__(self, boxes: Mapping[str, Box], bands: Sequence[tuple[float, float]], edges: Sequence[_Edge]) -> None:
        self.boxes, self.bands = boxes, bands
        self.wraps: dict[int, int] = {}
        self.straight = [e for e in edges if not self._arcs(e)]
        self.out = {name: [e for e in self.straight if e.source == name] for name in boxes}
        self.into = {name: [e for e in self.straight if e.target == name] for name in boxes}
        for found in self.out.values():
            found.sort(key=lambda e: (boxes[e.target].band, boxes[e.target].y))
        for found in self.into.values():
            found.sort(key=lambda e: (boxes[e.source].band, boxes[e.source].y))

    def pipe(self, edge: _Edge) -> Pipe:
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        channel = edge.channel
        thickness = 1.5 + 0.75 * math.log2(1 + (channel.width_bits or 8) / 8)
        if self._arcs(edge):
            path, x, y, anchor = _arc(source, target, self.bands[source.band][1] + ARC_GAP - 8)
        else:
            y1 = source.middle + _offset(self.out[edge.source], edge)
            y2 = target.middle + _offset(self.into[edge.target], edge)
            if target.band == source.band and target.column > source.column:
                fans_out = len(self.out[edge.source]) >= len(self.into[edge.target])
                path, x, y, anchor = _curve(source.x + source.width, y1, target.x, y2, fans_out)
            else:
                nth = self.wraps[target.band] = self.wraps.get(target.band, -1) + 1
                lane = self.bands[target.band][0] - BAND_GAP / 2 + 6 - LANE_GAP * nth
                path, x, y, anchor = _wrap(source.x + source.width, y1, lane, target.x, y2, nth)
        width = f"{channel.width_bits} bit" if channel.width_bits is not None else ""
        depth = f"× {channel.depth}" if channel.depth is not None else ""
        label = " ".join(part for part in (width, depth) if part)
        title = f"{channel.name}: {channel.kind} of {channel.token}"
        return Pipe(path, round(thickness, 2), channel.kind, label, title, x, y - 5 - thickness / 2, anchor)

    def _arcs(self, edge: _Edge) -> bool:
        source, target = self.boxes[edge.source], self.boxes[edge.target]
        return source.band == target.band and target.column - source.column > 1


def _offset(siblings: Sequence[_Edge], edge: _Edge) -> float:
    position = next(i for i, e in enumerate(siblings) if e is edge)
    return (position - (len(siblings) - 1) / 2) * PORT_GAP


def _curve(x1: float, y1: float, x2: float, y2: float, fans_out: bool) -> tuple[str, float, float, str]:
    """To the next column. The label of a bent pipe stands at the end where pipes are apart."""
    bend = (x2 - x1) / 2
    path = f"M{x1:g} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    if abs(y1 - y2) < 1:
        return path, (x1 + x2) / 2, y1, "middle"
    x, y, other = (x2 - 10, y2, y1) if fans_out else (x1 + 6, y1, y2)
    return path, x, y if y < other else y + 26, "end" if fans_out else "start"


def _arc(source: Box, target: Box, lane: float) -> tuple[str, float, float, str]:
    """Around the boxes in between: out of the bottom of one, into the bottom of the other."""
    x1, x2 = source.x + source.width * 0.8, target.x + target.width * 0.2
    path = (
        f"M{x1:g} {source.y + source.height:g} V{lane - 14:g} q0 14 14 14 "
        f"H{x2 - 14:g} q14 0 14 -14 V{target.y + target.height:g}"
    )
    return path, (x1 + x2) / 2, lane, "middle"


def _wrap(x1: float, y1: float, lane: float, x2: float, y2: float, nth: int) -> tuple[str, float, float, str]:
    """On to a band below: out to the right, along the gap above that band, in from the left."""
    out = 10 - 2 * min(nth, 3)
    path = f"M{x1:g} {y1:g} h{out:g} q8 0 8 8 V{lane - 8:g} q0 8 -8 8 H{x2:g} q-6 0 -6 8 V{y2 - 6:g} q0 6 6 6"
    return path, (x1 + x2) / 2 + 90 * nth, lane, "middle"


def _details(report: Report, memory: Sequence[_Edge]) -> dict[str, tuple[str, ...]]:
    """What a box says below its name: the work, the lanes, and the pipeline's figures where known."""
    details: dict[str, tuple[str, ...]] = {}
    for kernel in report.design.kernels:
        nests = [t for t in report.timing.kernels if t.kernel == kernel.name]
        intervals = [t.ii for t in nests if t.ii is not None]
        latencies = [t.latency_cycles for t in nests if t.latency_cycles is not None]
        lanes = math.prod(kernel.unroll)
        figures = [f"{lanes} lane{'s' * (lanes != 1)}"]
        if intervals:
            figures.append(f"II {max(intervals)}")
        if latencies:
            figures.append(f"{short_count(max(latencies))} cyc")
        streamed = [e.channel.width_bits or 0 for e in memory if e.target == kernel.name]
        extra = (f"memory ▸ {short_count(sum(streamed))} bit",) if streamed else ()
        details[kernel.name] = (kernel.operation, " · ".join(figures), *extra)
    inputs = (", ".join(f"{p.dtype}{list(p.shape)}" for p in report.model.inputs),)
    outputs = (", ".join(f"{p.dtype}{list(p.shape)}" for p in report.model.outputs),)
    return {**details, HOST_IN: inputs, HOST_OUT: outputs}


def _kind(name: str, details: Mapping[str, tuple[str, ...]]) -> str:
    if name in (HOST_IN, HOST_OUT):
        return "host"
    return "kernel" if name in details else "helper"
