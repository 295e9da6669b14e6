"""How large the tensors between kernels are. Both sides of `memory_pct` speak of the same tensors, those that kernels
hand over: `profiling/handed_over.py` says which channels of a design hold them.
"""

from __future__ import annotations

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.dialects.types import tensor_bits


def between_kernels(graph: Graph) -> int:
    """Bits of all tensors that are made by a kernel and read by another: what unfused kernels would have to hold."""
    read = {value for node in graph.nodes for value in node.inputs}
    return sum(tensor_bits(op.result) for op in graph.operations if op.result in read)
