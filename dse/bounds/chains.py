"""How long before a kernel may begin, and how long after its last iteration the run still goes on, at the least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph, Node, TensorOp
from penstock.dse.bounds.operators import LeastBody


@dataclass(frozen=True)
class Chains:
    """In cycles, by kernel. A result needs all terms of its sums, and a pipeline its stages, whatever the lanes."""

    before: Mapping[str, int]
    """Until the first of its operands that another kernel makes can be there."""
    first: Mapping[str, int]
    """Until its first result can be there."""
    after: Mapping[str, int]
    """From its last iteration to the end of the run."""
    longest: int


def chains_of(graph: Graph, bodies: Mapping[str, LeastBody]) -> Chains:
    nodes: dict[SSAValue, Node] = {node.result: node for node in graph.nodes}
    before: dict[str, int] = {}
    first: dict[str, int] = {}
    for op in graph.operations:
        makers = [maker for value in op.inputs for maker in _makers(value, nodes)]
        before[op.layer] = max((first[maker.layer] for maker in makers), default=0)
        first[op.layer] = before[op.layer] + bodies[op.layer].whole_sum
    rest: dict[str, int] = {}
    for op in reversed(graph.operations):
        rest[op.layer] = max(_after(op, graph, bodies, rest), default=0)
    after = {layer: bodies[layer].one_term + cycles for layer, cycles in rest.items()}
    return Chains(before, first, after, max((first[layer] + rest[layer] for layer in first), default=0))


def after_value(value: SSAValue, graph: Graph, bodies: Mapping[str, LeastBody], after: Mapping[str, int]) -> int:
    """From when the last element of a tensor is there to the end of the run."""
    found = [
        bodies[reader.layer].from_operand[place] + after[reader.layer] - bodies[reader.layer].one_term
        for reader in graph.operations for place, operand in enumerate(reader.inputs) if operand is value
    ]  # fmt: skip
    return max(found, default=0)


def _after(op: TensorOp, graph: Graph, bodies: Mapping[str, LeastBody], rest: Mapping[str, int]) -> Iterator[int]:
    """What every kernel that reads all of a result still does when the last of it has come."""
    for reader in graph.operations:
        for place, operand in enumerate(reader.inputs):
            if operand is op.result:
                yield bodies[reader.layer].from_operand[place] + rest[reader.layer]


def _makers(value: SSAValue, nodes: Mapping[SSAValue, Node]) -> Iterator[TensorOp]:
    node = nodes.get(value)
    if isinstance(node, TensorOp):
        yield node
    elif node is not None:
        for source in node.inputs:
            yield from _makers(source, nodes)
