"""What every design moves between the chip and external memory in one run."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Reshape, TensorOp
from penstock.compiler.dialects.types import tensor_bits


def least_traffic_bits(graph: Graph, *, with_weights: bool = False) -> int:
    """Results, and inputs that are read whole; weights where they do not stay on the chip."""
    return sum(tensor_bits(value) for value, _ in external_tensors(graph, with_weights=with_weights))


def external_tensors(graph: Graph, *, with_weights: bool = False) -> Iterator[tuple[SSAValue, bool]]:
    """Every tensor that passes whole, and whether it comes in; weights where they do not lie on the chip."""
    read = _read_whole(graph)
    for value in graph.arguments:
        if value in read and (with_weights or not graph.is_param(value)):
            yield value, True
    yield from ((value, False) for value in dict.fromkeys(graph.returned))


def _read_whole(graph: Graph) -> set[SSAValue]:
    """What kernels read, and what that is joined from, as a cache and a new row are. Of what is cut, a part may do."""
    found: set[SSAValue] = set()
    for node in reversed(graph.nodes):  # readers come before what they read
        if isinstance(node, TensorOp) or (isinstance(node, Concat | Reshape) and node.result in found):
            found.update(node.inputs)
    return found
