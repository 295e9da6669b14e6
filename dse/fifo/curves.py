"""Token curves: when every token is written and read in a run in which no FIFO is full, as the simulator says it.

Processes wait for each other's tokens and for free blocks, of which there are no more than there are; external memory
has its words at once. What that costs is known to the simulations that every sizing ends with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.compiler.jit import Ints
from penstock.compiler.simulator import Network, Rules, Simulator
from penstock.profiling.channel_times import most_held

_AT_ONCE = 1e12  # bits of a memory a cycle


@dataclass(frozen=True)
class Edge:
    """One channel between two processes: cycles in which its tokens are written and read.

    A block counts as one token: written when it is handed on, read when it is given back.
    """

    name: str
    source: str
    target: str
    written: Ints
    read: Ints
    rigid: bool = False
    """Both ends wait for each other, as those of blocks do: neither may be moved without the other."""

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
        return max(1, most_held(np.arange(len(self.written)), self.written, self.read + delay))


@dataclass(frozen=True)
class Curves:
    """All times of one run without full FIFOs; `ends` is the first cycle after each process."""

    edges: tuple[Edge, ...]
    ends: Mapping[str, int]

    @property
    def latency(self) -> int:
        return max(self.ends.values())


def curves_of(network: Network, rules: Rules) -> Curves:
    """The curves of every channel, for a network without cycles."""
    simulator = Simulator(_unhindered(network), rules)
    plan = simulator.plan
    _check_order(plan.processes, [(plan.processes[link.writer], plan.processes[link.reader]) for link in plan.links])
    run = simulator.free_run(blocks=True)
    edges = [
        # a pipo is handed over outside the phases: from the end of its writer to the start of its reader
        Edge(t.channel.name, t.writer, t.reader, t.filled + rules.start_gap - 1, np.array([run.starts[t.reader]]))
        if t.channel.kind == "pipo"
        else Edge(t.channel.name, t.writer, t.reader, t.filled, t.freed, rigid=t.channel.kind == "block")
        for t in run.tokens
    ]
    return Curves(tuple(edges), run.ends)


def _unhindered(network: Network) -> Network:
    """The same network, with memories that never make wait."""
    memories = tuple([replace(memory, bits_per_cycle=_AT_ONCE, latency=0) for memory in network.memories])
    return replace(network, memories=memories)


def _check_order(processes: Iterable[str], pairs: Iterable[tuple[str, str]]) -> None:
    """Writers come before readers; in a cycle they cannot."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(processes)
    graph.add_edges_from(pairs)
    if not nx.is_directed_acyclic_graph(graph):
        cycle: list[str] = sorted(max(nx.strongly_connected_components(graph), key=len))
        raise PenstockError(
            code="cyclic-network", what="these processes feed each other in a cycle", where=", ".join(cycle),
            limit="start times need an order from inputs to outputs",
            hint="its FIFOs are sized by simulation alone",
        )  # fmt: skip
