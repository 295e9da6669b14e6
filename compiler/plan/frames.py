"""Which nodes of the graph stand together in a kernel, and which tensors enter and leave it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir import BlockArgument, SSAValue

from penstock.compiler.analysis.graph import Graph, Node, Slice, TensorOp
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.plan.checks import check_results


@dataclass(frozen=True, eq=False)
class Frame:
    """What a kernel has whatever the schedules of its layers are."""

    number: int
    nodes: Sequence[Node]
    members: Sequence[Node]
    """The nodes that become parts."""
    siblings: Mapping[SSAValue, Sequence[Slice]]
    """Of the result of a slice: all slices that are one part with it."""
    imports: Sequence[SSAValue]
    """Tensors from elsewhere: arguments in their order, then what earlier kernels made."""
    returned: Sequence[tuple[int, SSAValue]]
    crossing: Sequence[SSAValue]
    """What later kernels read."""

    @cached_property
    def exports(self) -> list[SSAValue]:
        return [*(value for _, value in self.returned), *self.crossing]

    @cached_property
    def rearranges(self) -> bool:
        return not all(isinstance(node, TensorOp) for node in self.nodes)


class Frames:
    """The frames of one graph's designs: those of equal groups are found once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._found: dict[Hashable, list[Frame]] = {}
        self._readers: dict[SSAValue, list[Node]] = {}

    def of(self, design: Design) -> list[Frame]:
        """In the order in which kernels run."""
        key = tuple(sorted(design.groups.items()))
        if key not in self._found:
            groups = assign_groups(design, self.graph)
            check_results(self.graph)
            self._found[key] = [self._frame(groups, number) for number in sorted(set(groups.values()))]
        return self._found[key]

    def _reads(self, value: SSAValue) -> Sequence[Node]:
        """The nodes that read a value."""
        if not self._readers:
            read = (n for n in self.graph.nodes if not isinstance(n, Slice) or n.result.first_use is not None)
            for node in read:
                for source in node.inputs:
                    self._readers.setdefault(source, []).append(node)
        return self._readers.get(value, ())

    def _frame(self, groups: Mapping[SSAValue, int], number: int) -> Frame:
        nodes = [n for n in self.graph.nodes if groups[n.result] == number]
        slices = [n for n in nodes if isinstance(n, Slice)]
        siblings = {
            n.result: [s for s in slices if s.source is n.source and s.dim == n.dim and s.result.first_use is not None]
            for n in slices
        }
        # all slices of a tensor along one dim are one part, where the first of them stands that somebody reads
        members = [n for n in nodes if not isinstance(n, Slice) or siblings[n.result][:1] == [n]]
        own: dict[SSAValue, None] = {}
        for node in members:
            parts = siblings[node.result] if isinstance(node, Slice) else [node]
            own |= dict.fromkeys(part.result for part in parts)
        read = dict.fromkeys(v for node in members for v in node.inputs if v not in own)
        return Frame(
            number=number,
            nodes=nodes,
            members=members,
            siblings=siblings,
            imports=[
                *(v for v in self.graph.arguments if v in read),
                *(v for v in read if not isinstance(v, BlockArgument)),
            ],
            returned=[(i, v) for i, v in enumerate(self.graph.returned) if v in own],
            crossing=[v for v in own if any(groups[n.result] != number for n in self._reads(v))],
        )


def assign_groups(design: Design, graph: Graph) -> dict[SSAValue, int]:
    """The group that makes each value. Groups run one after the other, so no value may flow backwards."""
    groups: dict[SSAValue, int] = {}
    for operation in graph.operations:
        groups[operation.result] = design.groups.get(operation.layer, 0)
    for node in graph.nodes:  # slices and concatenations at the earliest, then with their first reader
        if not isinstance(node, TensorOp):
            groups[node.result] = max((groups[s] for s in node.inputs if s in groups), default=0)
    for node in reversed(graph.nodes):
        if not isinstance(node, TensorOp):
            readers = [groups[n.result] for n in graph.nodes if node.result in n.inputs]
            groups[node.result] = min(readers, default=groups[node.result])
    for node in graph.nodes:
        for source in node.inputs:
            if groups.get(source, 0) > groups[node.result]:
                layer = node.layer if isinstance(node, TensorOp) else "slice or concatenation"
                late, early = groups[source], groups[node.result]
                raise PenstockError(
                    code="bad-design", what=f"group {early} reads what group {late} makes later",
                    where=layer, limit="groups run in the order of their numbers",
                    hint="give it the number of the group that makes its inputs, or a higher one",
                )  # fmt: skip
    return groups
