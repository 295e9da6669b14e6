"""What the curves become when processes wait for each other's tokens, FIFOs being as deep as need be.

How long a process has waited at any moment is the largest lateness of the tokens it has read so far, a cumulative
maximum: one pass over the processes in order gives all times. Backpressure from blocks is left out; the simulator,
which every sizing ends with, knows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx
import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.dse.fifo.curves import Curve, KernelCurve, Times


@dataclass(frozen=True)
class ChannelTrace:
    """One channel between two processes: cycles in which its tokens are written and read."""

    name: str
    source: str
    target: str
    written: Times
    read: Times

    @property
    def slack(self) -> int:
        """By how much the writer could be later before the reader would wait longer."""
        return int((self.read - self.written).min()) - 1

    @property
    def rate(self) -> float:
        """Tokens a cycle, from the first write to the last."""
        return len(self.written) / max(1, int(self.written[-1] - self.written[0]) + 1)

    def held(self, delay: int = 0) -> int:
        """Slots taken at most, if the reader were later by `delay`. A slot is free again the cycle after its read."""
        freed = np.searchsorted(self.read + delay, self.written, side="left")
        return max(1, int((np.arange(1, len(self.written) + 1) - freed).max()))


@dataclass(frozen=True)
class Trace:
    """All times of one run without full FIFOs; `ends` is the first cycle after each process."""

    edges: tuple[ChannelTrace, ...]
    ends: Mapping[str, int]

    @property
    def latency(self) -> int:
        return max(self.ends.values())


def trace(kernels: Mapping[str, KernelCurve]) -> Trace:
    """Let every process run as soon as its tokens are there."""
    writer = {name: k.name for k in kernels.values() for name in k.writes}
    reader = {name: k.name for k in kernels.values() for name in k.reads}
    names = [n for n in writer if n in reader]
    written: dict[str, Times] = {}
    read: dict[str, Times] = {}
    ends: dict[str, int] = {}
    for name in order_of(kernels, [(writer[n], reader[n]) for n in names]):
        kernel = kernels[name]
        inputs = [(n, c) for n, c in kernel.reads.items() if n in written]
        at = np.concatenate([c.times for _, c in inputs]) if inputs else np.zeros(0, np.int64)
        late = np.concatenate([written[n] + 1 - c.times for n, c in inputs]) if inputs else at
        order = np.argsort(at, kind="stable")
        at, waited = at[order], np.maximum(np.maximum.accumulate(late[order]), 0)
        waited = np.concatenate((np.zeros(1, np.int64), waited))
        for channel, curve in inputs:
            read[channel] = _delayed(curve, at, waited)
        for channel, curve in kernel.writes.items():
            written[channel] = _delayed(curve, at, waited)
        ends[name] = kernel.busy + int(waited[-1])
    edges = [ChannelTrace(n, writer[n], reader[n], written[n], read[n]) for n in names]
    return Trace(tuple(edges), ends)


def _delayed(curve: Curve, at: Times, waited: Times) -> Times:
    return curve.times + waited[np.searchsorted(at, curve.seen, side="right")]


def order_of(kernels: Mapping[str, object], pairs: list[tuple[str, str]]) -> list[str]:
    """Writers before readers; a cycle has no such order."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(kernels)
    graph.add_edges_from(pairs)
    if not nx.is_directed_acyclic_graph(graph):
        cycle: list[str] = sorted(max(nx.strongly_connected_components(graph), key=len))
        raise PenstockError(
            code="cyclic-network", what="these processes feed each other in a cycle", where=", ".join(cycle),
            limit="start times need an order from inputs to outputs",
            hint="its FIFOs are sized by simulation alone",
        )  # fmt: skip
    return list(nx.topological_sort(graph))
