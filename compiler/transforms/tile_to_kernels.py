"""Turns canonical linalg into dataflow kernels of scheduled tasks that stream into each other.

Every tensor operation becomes a task whose itensor types follow from its schedule. The design puts operations
into groups: a group is one kernel, inside it tensors are streams; between groups they go through external memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, BlockArgument, Region, SSAValue

from compiler.analysis.graph import Graph, Node, Slice, TensorOp, read_graph
from compiler.design import Design
from compiler.dialects import itensor
from compiler.errors import PenstockError
from compiler.transforms.build_kernel import Export, KernelBuilder


@dataclass(frozen=True)
class TileToKernels:
    """The pass. `design` has a kernel entry for every layer."""

    design: Design

    def apply(self, module: ModuleOp) -> ModuleOp:
        graph = read_graph(module)
        _check_layers(self.design, graph)
        groups = _assign_groups(self.design, graph)
        return _Assembler(self.design, graph, groups).build()


def _check_layers(design: Design, graph: Graph) -> None:
    wanted, given = set(graph.by_layer), set(design.kernels)
    if missing := sorted(wanted - given):
        raise PenstockError(
            code="bad-design", what="the design says nothing about this layer", where=missing[0],
            limit=f"{len(given)} of {len(wanted)} layers are described",
            hint="start from a design that `penstock compile` wrote for this model",
        )  # fmt: skip
    if unknown := sorted((given | set(design.groups)) - wanted):
        raise PenstockError(
            code="bad-design", what="the design describes a layer that the model does not have", where=unknown[0],
            limit="layers: " + ", ".join(sorted(wanted)), hint="is this the design of another model or quantisation?",
        )  # fmt: skip


def _assign_groups(design: Design, graph: Graph) -> dict[SSAValue, int]:
    """The group that makes each value. Groups run one after the other, so no value may flow backwards."""
    groups: dict[SSAValue, int] = {}
    for operation in graph.operations:
        groups[operation.result] = design.groups.get(operation.layer, 0)
    for node in reversed(graph.nodes):  # slices and concatenations go with their first reader
        if not isinstance(node, TensorOp):
            readers = [groups[n.result] for n in graph.nodes if node.result in _sources(n)]
            makers = [groups[s] for s in _sources(node) if s in groups]
            groups[node.result] = min(readers, default=max(makers, default=0))
    for node in graph.nodes:
        for source in _sources(node):
            if groups.get(source, 0) > groups[node.result]:
                layer = node.layer if isinstance(node, TensorOp) else "slice or concatenation"
                late, early = groups[source], groups[node.result]
                raise PenstockError(
                    code="bad-design", what=f"group {early} reads what group {late} makes later",
                    where=layer, limit="groups run in the order of their numbers",
                    hint="give it the number of the group that makes its inputs, or a higher one",
                )  # fmt: skip
    return groups


def _sources(node: Node) -> tuple[SSAValue, ...]:
    if isinstance(node, TensorOp):
        return tuple(node.op.inputs)
    return (node.source,) if isinstance(node, Slice) else node.sources


@dataclass
class _Assembler:
    """Puts the kernels of all groups into @main, and the tensors that pass between them."""

    design: Design
    graph: Graph
    groups: dict[SSAValue, int]

    def build(self) -> ModuleOp:
        old = self.graph.function
        block = Block(arg_types=[a.type for a in old.body.block.args])
        values: dict[tuple[SSAValue, int | None], SSAValue] = {}
        returned: dict[int, SSAValue] = {}
        for new, argument in zip(block.args, old.body.block.args, strict=True):
            new.name_hint = argument.name_hint
            values[argument, None] = new
        for group in sorted(set(self.groups.values()) or {0}):
            nodes = [n for n in self.graph.nodes if self.groups[n.result] == group]
            imports = self._imports(nodes, group)
            suffix = "" if group == min(self.groups.values(), default=0) else f".group{group}"
            results = self._results(group)
            crossings = self._crossings(group)
            exports = [Export(self.graph.returned[i], f"store.{i}") for i in results]
            exports += [Export(v, f"spill.{self._name(v)}.to.group{reader}") for v, reader in crossings]
            body = KernelBuilder(self.design, self.graph, nodes, imports, exports, suffix).build()
            sources = [values[v, None] if isinstance(v, BlockArgument) else values[v, group] for v in imports]
            kinds = [export.value.type for export in exports]
            kernel = itensor.KernelOp(f"group{group}", sources, kinds, Region(body))
            block.add_op(kernel)
            returned |= dict(zip(results, kernel.outputs, strict=False))
            for (value, reader), result in zip(crossings, kernel.outputs[len(results) :], strict=True):
                values[value, reader] = result
        outputs = [returned[i] for i in range(len(self.graph.returned))]
        block.add_op(func.ReturnOp(*outputs))
        kind = FunctionType.from_lists([a.type for a in block.args], [v.type for v in outputs])
        return ModuleOp([func.FuncOp("main", kind, Region(block), arg_attrs=old.arg_attrs)])

    def _imports(self, nodes: list[Node], group: int) -> list[SSAValue]:
        """What the group reads and does not make, arguments first."""
        read = {source for node in nodes for source in _sources(node)}
        read |= {self.graph.returned[i] for i in self._results(group)}
        arguments = [a for a in self.graph.arguments if a in read]
        made_before = [n.result for n in self.graph.nodes if n.result in read and self.groups[n.result] != group]
        return [*arguments, *made_before]

    def _results(self, group: int) -> list[int]:
        """Which results of @main leave from this group; what nobody computes is refused where it would be stored."""
        first = min(self.groups.values(), default=0)
        return [i for i, value in enumerate(self.graph.returned) if self.groups.get(value, first) == group]

    def _name(self, value: SSAValue) -> str:
        made_by: dict[SSAValue, str] = {op.result: op.layer for op in self.graph.operations}
        return made_by.get(value, "tensor")

    def _crossings(self, group: int) -> list[tuple[SSAValue, int]]:
        """Values of this group that later groups read, once for each of them."""
        found: dict[tuple[SSAValue, int], None] = {}
        for node in self.graph.nodes:
            for source in _sources(node):
                if self.groups.get(source) == group and self.groups[node.result] != group:
                    found[source, self.groups[node.result]] = None
        return list(found)
