"""Where things stand in the report's pictures: the dataflow of kernels, and the trials of an exploration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from compiler.backend.host.report import ChannelInfo, Exploration, Report, TrialInfo

BOX_WIDTH, BOX_HEIGHT = 158, 74
GAP_X, GAP_Y, BAND_GAP = 92, 26, 46
COLUMNS = 4
MARGIN = 10
HOST_IN, HOST_OUT = "host ▸", "▸ host"

PLOT_WIDTH, PLOT_HEIGHT = 560, 330
FRONT_ROWS = 10
PLOT_LEFT, PLOT_RIGHT, PLOT_TOP, PLOT_BOTTOM = 64, 18, 14, 46


@dataclass(frozen=True)
class Box:
    """One kernel, one end of the host's link, or a helper that moves data: a fork, a converter, a memory's load."""

    name: str
    lines: tuple[str, ...]
    kind: str
    x: float
    y: float
    width: float = BOX_WIDTH
    height: float = BOX_HEIGHT


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


@dataclass(frozen=True)
class Dataflow:
    width: float
    height: float
    boxes: tuple[Box, ...]
    pipes: tuple[Pipe, ...]


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Point:
    x: float
    y: float
    trial: TrialInfo


@dataclass(frozen=True)
class Scatter:
    """Trials by latency (logarithmic) and by the largest share of any resource (logarithmic)."""

    points: tuple[Point, ...]
    front: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    limit_y: float | None


def dataflow(report: Report) -> Dataflow:
    """Kernels in columns by their distance from the input; long chains continue in a band below."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(k.name for k in report.design.kernels)
    ends = [(c, c.source or HOST_IN, c.target or HOST_OUT) for c in report.design.channels]
    ends = [(c, source, target) for c, source, target in ends if source != target]
    graph.add_edges_from((source, target) for _, source, target in ends)
    layers = _layers(graph)
    details = _details(report)
    places: dict[str, Box] = {}
    top = float(MARGIN)
    for start in range(0, len(layers), COLUMNS):
        band = layers[start : start + COLUMNS]
        rows = max(len(layer) for layer in band)
        height = rows * BOX_HEIGHT + (rows - 1) * GAP_Y
        for column, layer in enumerate(band):
            used = len(layer) * BOX_HEIGHT + (len(layer) - 1) * GAP_Y
            for row, name in enumerate(layer):
                x = MARGIN + column * (BOX_WIDTH + GAP_X)
                y = top + (height - used) / 2 + row * (BOX_HEIGHT + GAP_Y)
                places[name] = Box(name, details.get(name, ()), _kind(name, details), x, y)
        top += height + BAND_GAP
    seen: dict[tuple[str, str], int] = {}
    pipes: list[Pipe] = []
    for channel, source, target in ends:
        nth = seen[source, target] = seen.get((source, target), -1) + 1
        pipes.append(_pipe(channel, places[source], places[target], nth))
    columns = min(COLUMNS, max(1, len(layers)))
    width = 2 * MARGIN + columns * BOX_WIDTH + (columns - 1) * GAP_X
    return Dataflow(width + 24, top - BAND_GAP + MARGIN, tuple(places.values()), tuple(pipes))


def scatter(exploration: Exploration) -> Scatter | None:
    """None where fewer than two trials have both figures: two axes would say nothing."""
    shown = [t for t in exploration.trials if t.latency_cycles and t.resource_share]
    if len(shown) < 2:
        return None
    x_axis = _Axis.of([float(t.latency_cycles or 1) for t in shown], PLOT_LEFT, PLOT_WIDTH - PLOT_RIGHT)
    y_axis = _Axis.of([float(t.resource_share or 1) for t in shown], PLOT_HEIGHT - PLOT_BOTTOM, PLOT_TOP)
    points = [Point(x_axis.at(t.latency_cycles or 1), y_axis.at(t.resource_share or 1), t) for t in shown]
    front = sorted((p for p in points if p.trial.on_front), key=lambda p: p.x)
    return Scatter(
        points=tuple(points),
        front=_staircase(front),
        x_ticks=tuple(Tick(x_axis.at(v), _count(v)) for v in x_axis.ticks()),
        y_ticks=tuple(Tick(y_axis.at(v), f"{v * 100:g} %") for v in y_axis.ticks()),
        limit_y=y_axis.at(1.0) if y_axis.low < 1.0 < y_axis.high else None,
    )


def front_rows(exploration: Exploration) -> tuple[TrialInfo, ...]:
    """The Pareto front, fastest first; an even choice of a long one, with its ends and the chosen trial."""
    front = [t for t in exploration.trials if t.on_front and t.latency_cycles is not None]
    front.sort(key=lambda t: t.latency_cycles or 0)
    if len(front) <= FRONT_ROWS:
        return tuple(front)
    kept = {round(i * (len(front) - 1) / (FRONT_ROWS - 1)) for i in range(FRONT_ROWS)}
    return tuple(t for i, t in enumerate(front) if i in kept or t.chosen)


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis from `low` to `high`, drawn between two pixel positions."""

    low: float
    high: float
    start: float
    stop: float

    @staticmethod
    def of(values: Sequence[float], start: float, stop: float) -> _Axis:
        low, high = min(values) / 1.15, max(values) * 1.15
        return _Axis(low, high, start, stop)

    def at(self, value: float) -> float:
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self) -> list[float]:
        """1, 2, 5 in every decade; only powers of ten where that would be crowded."""
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [float(f"{s}e{d}") for d in decades for s in steps]
            inside = [t for t in ticks if self.low <= t <= self.high]
            if len(inside) <= 7:
                return inside or [self.low, self.high]
        return [self.low, self.high]


def _layers(graph: nx.DiGraph[str]) -> list[list[str]]:
    """Longest-path layers. A cycle (there should be none) is drawn as one row in the order of the design."""
    if not nx.is_directed_acyclic_graph(graph):
        return [[name] for name in graph.nodes]
    layers = [list(layer) for layer in nx.topological_generations(graph)]
    if layers and HOST_OUT in graph:
        layers = [[name for name in layer if name != HOST_OUT] for layer in layers]
        layers = [*(layer for layer in layers if layer), [HOST_OUT]]
    return layers


def _details(report: Report) -> dict[str, tuple[str, ...]]:
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
            figures.append(f"{_count(max(latencies))} cyc")
        details[kernel.name] = (kernel.operation, " · ".join(figures))
    inputs = (", ".join(f"{p.dtype}{list(p.shape)}" for p in report.model.inputs),)
    outputs = (", ".join(f"{p.dtype}{list(p.shape)}" for p in report.model.outputs),)
    return {**details, HOST_IN: inputs, HOST_OUT: outputs}


def _kind(name: str, details: Mapping[str, tuple[str, ...]]) -> str:
    if name in (HOST_IN, HOST_OUT):
        return "host"
    return "kernel" if name in details else "helper"


def _pipe(channel: ChannelInfo, source: Box, target: Box, nth: int) -> Pipe:
    """`nth` tells channels between the same two boxes apart."""
    x1, y1 = source.x + source.width, source.y + source.height / 2 + 14 * nth
    x2, y2 = target.x, target.y + target.height / 2 + 14 * nth
    if x2 > x1:
        bend = (x2 - x1) / 2
        path = f"M{x1:g} {y1:g} C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
        middle = ((x1 + x2) / 2, (y1 + y2) / 2)
    else:  # on to the next band: out to the right, below everything of this band, in from the left
        between = target.y - BAND_GAP / 2
        path = f"M{x1:g} {y1:g} h10 q8 0 8 8 V{between - 8:g} q0 8 -8 8 H{x2 - 0:g} q-6 0 -6 8 V{y2 - 6:g} q0 6 6 6"
        middle = ((x1 + x2) / 2, between)
    width = f"{channel.width_bits} bit" if channel.width_bits is not None else ""
    depth = f"× {channel.depth}" if channel.depth is not None else ""
    thickness = 1.5 + 0.75 * math.log2(1 + (channel.width_bits or 8) / 8)
    title = f"{channel.name}: {channel.kind} of {channel.token}"
    label = " ".join(part for part in (width, depth) if part)
    return Pipe(path, round(thickness, 2), channel.kind, label, title, middle[0], middle[1] - 6 - thickness / 2)


def _staircase(points: Sequence[Point]) -> str:
    """The border of what the front dominates."""
    if not points:
        return ""
    path = f"M{points[0].x:g} {points[0].y:g}"
    for point in points[1:]:
        path += f" H{point.x:g} V{point.y:g}"
    return path


def _count(value: float) -> str:
    """A number short enough for a tick or a box."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            scale = 1e3 if unit == "k" else size
            return f"{value / scale:.3g}{unit}"
    return f"{value:g}"
