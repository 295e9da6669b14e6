"""Which kernels take straight what others make, and along which of their loops the width of such tokens is told.

A token has the lanes of who makes it along each dim, and is taken in with the lanes of who takes it: where these
differ, it becomes another on the way, which takes time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.analysis.graph import Graph
from penstock.dse.bounds.needs import read_straight


@dataclass(frozen=True)
class TakenStraight:
    """By kernel: who makes what it takes straight, with its own loop for each dim of that; and the loops whose lanes
    are told, of both."""

    graph: Graph
    straight: Mapping[str, Mapping[str, Sequence[int]]]
    told: Mapping[str, Sequence[int]]

    @staticmethod
    def of(graph: Graph, *, told: bool) -> TakenStraight:
        """Where widths are not `told`, of no loop."""
        straight = {op.layer: read_straight(op, graph) for op in graph.operations}
        loops: dict[str, dict[int, None]] = {op.layer: {} for op in graph.operations}
        for op in graph.operations if told else ():
            for maker, dims in straight[op.layer].items():
                for made, taken in zip(_made(graph, maker), dims, strict=True):
                    if op.trips[taken] > 1:
                        loops[maker][made] = loops[op.layer][taken] = None
        return TakenStraight(graph, straight, {layer: tuple(own) for layer, own in loops.items()})

    @staticmethod
    def untold(graph: Graph) -> TakenStraight:
        """Nothing is said of any."""
        return TakenStraight(
            graph, {op.layer: {} for op in graph.operations}, {op.layer: () for op in graph.operations}
        )

    def columns(self, layer: str, first: int) -> Mapping[int, int]:
        """By loop the first of its two columns, where a kernel's begin here."""
        return {loop: first + 2 * n for n, loop in enumerate(self.told[layer])}

    def between(self, maker: str, reader: str, columns: Mapping[str, Mapping[int, int]]) -> Sequence[tuple[int, int]]:
        """For each dim of what passes, the columns of the maker's loop and of the reader's."""
        loops = zip(_made(self.graph, maker), self.straight[reader][maker], strict=True)
        return [(columns[maker][made], columns[reader][taken]) for made, taken in loops if made in columns[maker]]


def _made(graph: Graph, layer: str) -> Sequence[int]:
    """The loops of a kernel by dim of its result."""
    return [d for d in graph.by_layer[layer].result_dims if d is not None]
