"""In which order each value is made and read: the itensor types on both sides of every edge of the graph.

An operation's own types follow from its schedule. A slice follows the order of what it cuts, a concatenation
the order of its first part, a tensor in external memory the order of its first reader in the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from xdsl.ir import Attribute, SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp
from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.analysis.parts import divisible, joined, part_of, row_major
from penstock.compiler.design import Design
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.types import tensor_type


def loops_of(operation: TensorOp, design: Design) -> LoopPlan:
    """The loops of one operation under a design."""
    kernel = design.kernels[operation.layer]
    return LoopPlan.of(
        operation.layer, operation.trips, operation.iterators, kernel.tile, kernel.unroll, kernel.order
    )  # fmt: skip


@dataclass
class ValueOrders:
    """The orders of one group's values. `nodes` are the group's, in program order."""

    design: Design
    graph: Graph
    nodes: Sequence[Node]
    made: dict[SSAValue, ITensorType] = field(default_factory=dict[SSAValue, ITensorType])

    def __post_init__(self) -> None:
        own = {node.result for node in self.nodes}
        for operation in self.nodes:
            if isinstance(operation, TensorOp):
                plan = loops_of(operation, self.design)
                self.made[operation.result] = plan.itensor(operation.result_map, dtype_of(operation.result))
                for value, indexing_map in zip(operation.op.inputs, operation.operand_maps, strict=True):
                    if value not in own and value not in self.made and not self.graph.is_param(value):
                        self.made[value] = plan.itensor(indexing_map, dtype_of(value))
        for node in self.nodes:
            match node:
                case Slice():
                    self.made[node.result] = part_of(self.cut(node), node.dim, node.size)
                case Concat():
                    self.made[node.result] = joined(self.of(node.sources[0]), node.dim, node.parts)
                case Reshape():
                    self.made[node.result] = self.reshaped(node)[1]
                case TensorOp():
                    pass

    def of(self, value: SSAValue) -> ITensorType:
        """The order that a value is made in; one that no operation reads comes as it lies in memory."""
        if value not in self.made:
            self.made[value] = row_major(tensor_type(value).get_shape(), dtype_of(value))
        return self.made[value]

    def cut(self, node: Slice) -> ITensorType:
        """The order in which the source of a slice passes, so that all its parts can be cut out."""
        return divisible(self.of(node.source), node.dim, [(s.start, s.size) for s in self.siblings(node)])

    def siblings(self, node: Slice) -> list[Slice]:
        """All parts of one tensor along one dim: they are cut out by one task."""
        same = [n for n in self.nodes if isinstance(n, Slice) and n.source is node.source]
        return [n for n in same if n.dim == node.dim]

    def reshaped(self, node: Reshape) -> tuple[ITensorType, ITensorType]:
        """Row-major on both sides, in runs that neither shape breaks, as long as the source's slices."""
        shapes = [tensor_type(value).get_shape() for value in (node.source, node.result)]
        made = self.of(node.source).element_shape
        run = gcd(*(shape[-1] if shape else 1 for shape in shapes), made[-1] if made else 1)
        source, result = (
            row_major(shape, dtype_of(node.source), [*[1] * (len(shape) - 1), run] if shape else None)
            for shape in shapes
        )
        return source, result

    def part(self, node: Concat, size: int) -> ITensorType:
        """The order in which a source of a concatenation is wanted."""
        return part_of(self.made[node.result], node.dim, size)


def dtype_of(value: SSAValue) -> Attribute:
    return tensor_type(value).element_type
