"""Turns every operation of canonical linalg into a dataflow kernel of its own: load, scheduled task, store.

Its itensor types follow from its schedule in the design. All tensors lie in external memory still; fusing the kernels
of a group turns the ones inside it into streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import DictionaryAttr, FunctionType, IndexType, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, read_graph
from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.analysis.orders import GroupOrders, dtype_of, plan_of
from penstock.compiler.analysis.parts import part_of
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.itensor import ScheduleAttr
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import check_bindings, load_library

_BELOW = 6
"""The predicate `ult` of a comparison."""


@dataclass(frozen=True)
class TileToKernels:
    """The pass. `design` has a kernel entry for every layer."""

    design: Design

    def apply(self, module: ModuleOp) -> ModuleOp:
        graph = read_graph(module)
        check_layers(self.design, graph)
        for operation in graph.operations:
            check_bindings_of(operation, self.design)
        return _Assembler(self.design, graph, assign_groups(self.design, graph)).build()


def check_layers(design: Design, graph: Graph) -> None:
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


def check_bindings_of(operation: TensorOp, design: Design) -> None:
    """An operator may be built of what the library has for it, if the operation computes with it at all."""
    if bindings := design.kernels[operation.layer].bindings:
        library = load_library(load_platform(design.platform).operators, design.clock_mhz)
        inner = (op for op in operation.op.body.block.ops if op.results and not isinstance(op, arith.ConstantOp))
        check_bindings(library, operation.layer, bindings, {op.name for op in inner})


def assign_groups(design: Design, graph: Graph) -> dict[SSAValue, int]:
    """The group that makes each value. Groups run one after the other, so no value may flow backwards."""
    groups: dict[SSAValue, int] = {}
    for operation in graph.operations:
        groups[operation.result] = design.groups.get(operation.layer, 0)
    for node in graph.nodes:  # slices and concatenations at the earliest, then with their first reader
        if not isinstance(node, TensorOp):
            groups[node.result] = max((groups[s] for s in sources(node) if s in groups), default=0)
    for node in reversed(graph.nodes):
        if not isinstance(node, TensorOp):
            readers = [groups[n.result] for n in graph.nodes if node.result in sources(n)]
            groups[node.result] = min(readers, default=groups[node.result])
    for node in graph.nodes:
        for source in sources(node):
            if groups.get(source, 0) > groups[node.result]:
                layer = node.layer if isinstance(node, TensorOp) else "slice or concatenation"
                late, early = groups[source], groups[node.result]
                raise PenstockError(
                    code="bad-design", what=f"group {early} reads what group {late} makes later",
                    where=layer, limit="groups run in the order of their numbers",
                    hint="give it the number of the group that makes its inputs, or a higher one",
                )  # fmt: skip
    return groups


def check_results(graph: Graph) -> None:
    """Every operation's result is read, and what the model returns is computed."""
    read = {source for node in graph.nodes for source in sources(node)} | set(graph.returned)
    for value in graph.returned:
        if isinstance(value, BlockArgument):
            raise PenstockError(
                code="unsupported-op", what="a result that no operation of the accelerator computes", where="@main",
                hint="return only values that the model computes from its inputs",
            )  # fmt: skip
    for operation in graph.operations:
        if operation.result not in read:
            raise PenstockError(code="not-canonical", what="its result is never used", where=operation.layer)


def sources(node: Node) -> tuple[SSAValue, ...]:
    """The tensors that a node reads."""
    if isinstance(node, TensorOp):
        return node.inputs
    return node.sources if isinstance(node, Concat) else (node.source,)


@dataclass
class _Assembler:
    """Puts one kernel a node into @main. `values` are the tensors in the new @main, by those in the old one."""

    design: Design
    graph: Graph
    groups: dict[SSAValue, int]
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    block: Block = field(default_factory=Block)

    def build(self) -> ModuleOp:
        old = self.graph.function
        for argument in old.body.block.args:
            new = self.values[argument] = self.block.insert_arg(argument.type, argument.index)
            new.name_hint = argument.name_hint
            self.names[argument] = self.graph.name(argument)
        check_results(self.graph)
        orders = {
            group: GroupOrders(self.design, self.graph, [n for n in self.graph.nodes if self.groups[n.result] == group])
            for group in set(self.groups.values())
        }
        for node in self.graph.nodes:
            group = self.groups[node.result]
            match node:
                case TensorOp():
                    self._operation(node, group)
                case Slice():
                    self._slice(node, group, orders[group])
                case Concat():
                    self._concat(node, group, orders[group])
                case Reshape():
                    self._reshape(node, group, orders[group])
        outputs = [self.values[v] for v in self.graph.returned]
        self.block.add_op(func.ReturnOp(*outputs))
        kind = FunctionType.from_lists([a.type for a in self.block.args], [v.type for v in outputs])
        return ModuleOp([func.FuncOp("main", kind, Region(self.block), arg_attrs=old.arg_attrs)])

    def _operation(self, operation: TensorOp, group: int) -> None:
        kernel, plan = self.design.kernels[operation.layer], plan_of(operation, self.design)
        body = _KernelBody(list(dict.fromkeys(operation.op.inputs)))
        operands: list[SSAValue] = []
        for position, (value, indexing_map) in enumerate(zip(operation.op.inputs, operation.operand_maps, strict=True)):
            inside, is_param = body.inside[value], self.graph.is_param(value)
            if is_param and kernel.weights == "rom":
                operands.append(inside)
                continue
            name = f"load.{operation.layer}.{position}" if is_param else f"load.{self.names[value]}"
            kind = plan.itensor(indexing_map, dtype_of(value), reread=is_param)
            operands.append(body.add(itensor.LoadOp(name, inside, kind)))
        task = build_task(operation, kernel, plan, operands)
        self._finish(operation.layer, group, body, {operation.result: (operation.layer, body.add(task))})

    def _slice(self, node: Slice, group: int, orders: GroupOrders) -> None:
        """All slices of one tensor along one dim are one kernel, where the first of them stands."""
        siblings = [s for s in orders.siblings(node) if s.result.uses.get_length()]
        if not siblings or siblings[0] is not node:
            return
        whole, name = orders.cut(node), f"chunk.{self.names[node.source]}.{node.dim}"
        body = _KernelBody([node.source])
        load = body.add(itensor.LoadOp(f"load.{self.names[node.source]}", body.inside[node.source], whole))
        chunk = itensor.ChunkOp(
            name, load, node.dim, [s.start for s in siblings], [part_of(whole, s.dim, s.size) for s in siblings]
        )
        body.add(chunk)
        made: dict[SSAValue, tuple[str, SSAValue]] = {
            s.result: (f"{name}.part{i}", chunk.parts[i]) for i, s in enumerate(siblings)
        }
        self._finish(name, group, body, made)

    def _concat(self, node: Concat, group: int, orders: GroupOrders) -> None:
        body = _KernelBody(list(dict.fromkeys(node.sources)))
        loads = [
            body.add(itensor.LoadOp(f"load.{self.names[source]}", body.inside[source], orders.part(node, size)))
            for source, (_, size) in zip(node.sources, node.parts, strict=True)
        ]
        name = f"concat.{self.names[node.sources[0]]}"
        result = body.add(itensor.ConcatOp(name, loads, node.dim, orders.of(node.result)))
        self._finish(name, group, body, {node.result: (name, result)})

    def _reshape(self, node: Reshape, group: int, orders: GroupOrders) -> None:
        source, result = orders.reshaped(node)
        label = self.names[node.source]
        body = _KernelBody([node.source])
        load = body.add(itensor.LoadOp(f"load.{label}", body.inside[node.source], source))
        shape = "x".join(str(n) for n in tensor_type(node.result).get_shape())
        name = f"{label}.as.{shape}"
        stream = body.add(itensor.ReassociateOp(name, load, result))
        self._finish(name, group, body, {node.result: (name, stream)})

    def _finish(self, name: str, group: int, body: _KernelBody, made: dict[SSAValue, tuple[str, SSAValue]]) -> None:
        """Store what the kernel made, and put it into @main."""
        stores = [
            body.add(itensor.StoreOp(f"store.{label}", stream, tensor_type(value)))
            for value, (label, stream) in made.items()
        ]
        body.block.add_op(itensor.YieldOp(stores))
        read = [self.values[v] for v in body.imports]
        kernel = itensor.KernelOp(name, read, [v.type for v in made], Region(body.block), group)
        self.block.add_op(kernel)
        self.values |= dict(zip(made, kernel.outputs, strict=True))
        self.names |= {value: label for value, (label, _) in made.items()}


class _KernelBody:
    """The block of one kernel: an argument for each tensor that it reads."""

    def __init__(self, imports: Sequence[SSAValue]) -> None:
        self.imports = imports
        self.block = Block(arg_types=[v.type for v in imports])
        self.inside: dict[SSAValue, SSAValue] = dict(zip(imports, self.block.args, strict=True))
        for value, argument in self.inside.items():
            argument.name_hint = value.name_hint

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def build_task(
    operation: TensorOp, kernel: KernelDesign, plan: LoopPlan, operands: Sequence[SSAValue]
) -> itensor.TaskOp:
    """The scheduled task of an operation; its operands are streams, or tensors that lie on the chip."""
    return itensor.TaskOp(
        operation.layer, operands, plan.itensor(operation.result_map, dtype_of(operation.result)),
        schedule=ScheduleAttr.of(plan.tile, plan.unroll, plan.order), trips=plan.trips,
        indexing_maps=[*operation.operand_maps, operation.result_map],
        iterator_types=operation.iterators, init=operation.init, body=task_body(operation),
        bindings=_bindings(kernel),
    )  # fmt: skip


def _bindings(kernel: KernelDesign) -> DictionaryAttr | None:
    chosen = {operation: StringAttr(choice) for operation, choice in sorted(kernel.bindings.items())}
    return DictionaryAttr(chosen) if chosen else None


def task_body(operation: TensorOp) -> Region:
    """The scalar body, with captured constants brought in; an unused `outs` argument is dropped.

    What compares a loop's index with its size becomes one operation; there are no indices below linalg.
    """
    source = operation.op.body.block
    count = len(operation.op.inputs) + (operation.init is not None)
    if operation.init is None and any(True for _ in source.args[-1].uses):
        raise PenstockError(
            code="unsupported-op", what="an elementwise operation that reads its output's old value",
            where=operation.layer, hint="pass that tensor as an input",
        )  # fmt: skip
    block = Block(arg_types=[a.type for a in source.args[:count]])
    mapping: dict[SSAValue, SSAValue] = dict(zip(source.args[:count], block.args, strict=True))
    for op in source.ops:
        if isinstance(op.results[0].type if op.results else None, IndexType):
            continue
        if (within := _within(operation.layer, op)) is not None:
            block.add_op(within)
            mapping[op.results[0]] = within.result
            continue
        for operand in op.operands:
            if operand not in mapping:
                mapping[operand] = _capture(operation.layer, operand, block)
        if isinstance(op, linalg.YieldOp):
            block.add_op(itensor.YieldOp([mapping[v] for v in op.operands]))
        else:
            block.add_op(op.clone(mapping))
    return Region(block)


def _within(layer: str, op: Operation) -> itensor.WithinOp | None:
    if not any(isinstance(operand.type, IndexType) for operand in op.operands):
        return None
    index, size = (operand.owner for operand in op.operands[:2])
    below = isinstance(op, arith.CmpiOp) and op.predicate.value.data == _BELOW
    if not below or not isinstance(index, linalg.IndexOp) or not isinstance(size, arith.ConstantOp):
        raise PenstockError(
            code="unsupported-op", what=f"{op.name} of a loop's index", where=layer,
            limit="an index is compared with how much of its loop is no padding, and nothing else",
        )  # fmt: skip
    bound = size.value
    assert isinstance(bound, IntegerAttr)
    return itensor.WithinOp(index.dim.value.data, bound.value.data)


def _capture(layer: str, value: SSAValue, block: Block) -> SSAValue:
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        raise PenstockError(
            code="unsupported-op", what="a body that uses a value from outside which is not a constant", where=layer,
        )  # fmt: skip
    constant = value.op.clone()
    block.add_op(constant)
    return constant.result
