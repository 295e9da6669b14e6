"""How long before a kernel can begin, and how long after its last iteration the run still goes on, at the least.

What is written in one cycle is read in a later one. Inputs come through loads, and what is made last is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, TensorOp, Windows
from penstock.compiler.dialects.types import tensor_type
from penstock.dse.bounds.operators import LeastBody

_STORED = 1
"""What is made is read once more, by a store or by another kernel."""


@dataclass(frozen=True)
class Chains:
    """In cycles, by kernel. A result needs all terms of its sums, and a pipeline its stages, whatever the lanes."""

    before: Mapping[str, int]
    """Until the first of its operands can be there."""
    first: Mapping[str, int]
    """Until its first result can be there."""
    after: Mapping[str, int]
    """From the end of its last iteration to the end of the run."""
    longest: int


def chains_of(graph: Graph, bodies: Mapping[str, LeastBody], loading: Callable[[SSAValue], int]) -> Chains:
    """`loading` says how many cycles pass before the first element of an input can be read."""
    nodes: dict[SSAValue, Node] = {node.result: node for node in graph.nodes}
    before: dict[str, int] = {}
    first: dict[str, int] = {}

    def there(value: SSAValue) -> int:
        """When the first element of a value can be read."""
        node = nodes.get(value)
        match node:
            case None:
                return 0 if graph.is_param(value) else loading(value)
            case TensorOp():
                return first[node.layer] + 1
            case Concat():  # it may be any of them
                return min(there(source) for source in node.sources)
            case Windows() if node.by.pads(tensor_type(node.source).get_shape()[node.by.dim]):
                return 0
            case _:
                return there(node.source)

    for op in graph.operations:
        before[op.layer] = max((there(value) for value in op.inputs), default=0)
        first[op.layer] = before[op.layer] + bodies[op.layer].whole_sum
    after: dict[str, int] = {}
    for op in reversed(graph.operations):
        readers = [reader.layer for reader in graph.operations if op.result in reader.inputs]
        # all that a kernel reads comes to it before its last iteration has ended
        after[op.layer] = bodies[op.layer].one_term + max([_STORED, *(1 + after[layer] for layer in readers)])
    longest = max(
        (first[layer] + 1 + after[layer] - bodies[layer].one_term for layer in first), default=0
    )  # fmt: skip
    return Chains(before, first, after, longest)


def after_value(value: SSAValue, graph: Graph, after: Mapping[str, int]) -> int:
    """From when the last element of a tensor is read to the end of the run."""
    return max((after[reader.layer] for reader in graph.operations if value in reader.inputs), default=0)
