"""Builds one kernel: every operation of a group as a task, with converters, forks, loads and stores between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Attribute, Block, BlockArgument, Operation, OpResult, Region, SSAValue

from compiler.analysis.graph import Concat, Graph, Node, Slice, TensorOp
from compiler.analysis.loops import LoopPlan
from compiler.analysis.parts import divisible, joined, part_of, row_major
from compiler.design import Design
from compiler.dialects import itensor
from compiler.dialects.itensor import ITensorType, ScheduleAttr
from compiler.dialects.types import tensor_type
from compiler.errors import PenstockError


def plan_of(operation: TensorOp, design: Design) -> LoopPlan:
    """The loops of one operation under a design."""
    kernel = design.kernels[operation.layer]
    return LoopPlan.of(
        operation.layer, operation.trips, operation.iterators, kernel.tile, kernel.unroll, kernel.order
    )  # fmt: skip


@dataclass(frozen=True)
class Export:
    """A value that leaves a kernel for external memory, and the name of the task that stores it."""

    value: SSAValue
    name: str


@dataclass
class KernelBuilder:
    """Builds one kernel's block in program order; `streams` holds what every reader of a value gets.

    `imports` are the tensors that come from external memory: arguments of @main, results of earlier kernels.
    """

    design: Design
    graph: Graph
    nodes: Sequence[Node]
    imports: Sequence[SSAValue]
    exports: Sequence[Export]
    suffix: str = ""
    """Tells the loads of this kernel from those of others that read the same tensor."""
    block: Block = field(default_factory=Block)
    inside: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    readers: dict[SSAValue, list[ITensorType]] = field(
        default_factory=lambda: defaultdict[SSAValue, list[ITensorType]](list)
    )
    streams: dict[tuple[SSAValue, ITensorType], list[SSAValue]] = field(
        default_factory=dict[tuple[SSAValue, ITensorType], list[SSAValue]]
    )
    made: dict[SSAValue, ITensorType] = field(default_factory=dict[SSAValue, ITensorType])
    names: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])

    def build(self) -> Block:
        for value in self.imports:
            argument = self.block.insert_arg(value.type, len(self.block.args))
            argument.name_hint = value.name_hint
            self.inside[value] = argument
        self._choose_orders()
        for export in self.exports:
            self.readers[export.value].append(self._exported(export.value))
        for value in self.imports:
            if self.readers[value]:
                self._load(value)
        for node in self.nodes:
            match node:
                case TensorOp():
                    self._task(node)
                case Slice():
                    self._chunk(node)
                case Concat():
                    self._concat(node)
        self.block.add_op(itensor.YieldOp([self._store(export) for export in self.exports]))
        return self.block

    def _choose_orders(self) -> None:
        """In program order: the order that each value is made in, and the orders that its readers want."""
        for operation in self.nodes:
            if not isinstance(operation, TensorOp):
                continue
            plan = plan_of(operation, self.design)
            self.made[operation.result] = plan.itensor(operation.result_map, _dtype(operation.result))
            for value, indexing_map in zip(operation.op.inputs, operation.operand_maps, strict=True):
                if not self.graph.is_param(value):
                    wanted = plan.itensor(indexing_map, _dtype(value))
                    self.readers[value].append(wanted)
                    if value in self.inside:  # a tensor in memory comes in the order of its first reader
                        self.made.setdefault(value, wanted)
        for node in self.nodes:
            match node:
                case Slice():
                    slices = self._slices(node)
                    wanted = divisible(self._order(node.source), node.dim, [(s.start, s.size) for s in slices])
                    self.made[node.result] = part_of(wanted, node.dim, node.size)
                    if slices[0] is node:
                        self.readers[node.source].append(wanted)
                case Concat():
                    whole = joined(self._order(node.sources[0]), node.dim, node.parts)
                    self.made[node.result] = whole
                    for source, (_, size) in zip(node.sources, node.parts, strict=True):
                        self._order(source)
                        self.readers[source].append(part_of(whole, node.dim, size))
                case TensorOp():
                    pass

    def _order(self, value: SSAValue) -> ITensorType:
        """The order that a value is made in; an input that no operation reads comes as it lies in memory."""
        if value not in self.made:
            self.made[value] = row_major(tensor_type(value).get_shape(), _dtype(value))
        return self.made[value]

    def _slices(self, node: Slice) -> list[Slice]:
        """All parts of one tensor along one dim: they are cut out by one task."""
        same = [n for n in self.nodes if isinstance(n, Slice) and n.source is node.source]
        return [n for n in same if n.dim == node.dim]

    def _exported(self, value: SSAValue) -> ITensorType:
        """A tensor leaves in the order that it is made in."""
        if value in self.made and not self.graph.is_param(value):
            return self.made[value]
        raise PenstockError(
            code="unsupported-op", what="a result that no operation of the accelerator computes", where="@main",
            hint="return only values that the model computes from its inputs",
        )  # fmt: skip

    def _load(self, value: SSAValue) -> None:
        name = self.names[value] = self._name(value) + self.suffix
        load = itensor.LoadOp(f"load.{name}", self.inside[value], self._order(value))
        self._emit(load)
        self._distribute(name, value, load.result)

    def _task(self, operation: TensorOp) -> None:
        plan, kernel = plan_of(operation, self.design), self.design.kernels[operation.layer]
        operands: list[SSAValue] = []
        for position, (value, indexing_map) in enumerate(zip(operation.op.inputs, operation.operand_maps, strict=True)):
            if not self.graph.is_param(value):
                operands.append(self.streams[value, plan.itensor(indexing_map, _dtype(value))].pop())
            elif kernel.weights == "rom":
                operands.append(self.inside[value])
            else:
                kind = plan.itensor(indexing_map, _dtype(value), reread=True)
                name = f"load.{operation.layer}.{position}"
                operands.append(self._emit(itensor.LoadOp(name, self.inside[value], kind)).results[0])
        result = plan.itensor(operation.result_map, _dtype(operation.result))
        task = itensor.TaskOp(
            operation.layer, operands, result,
            schedule=ScheduleAttr.of(plan.tile, plan.unroll, plan.order), trips=plan.trips,
            indexing_maps=[*operation.operand_maps, operation.result_map],
            iterator_types=operation.iterators, init=operation.init, body=_task_body(operation),
        )  # fmt: skip
        self._emit(task)
        self.names[operation.result] = operation.layer
        if self.readers[operation.result]:
            self._distribute(operation.layer, operation.result, task.result)
        else:
            raise PenstockError(code="not-canonical", what="its result is never used", where=operation.layer)

    def _chunk(self, node: Slice) -> None:
        slices = self._slices(node)
        if slices[0] is not node:
            return
        wanted = divisible(self._order(node.source), node.dim, [(s.start, s.size) for s in slices])
        used = [s for s in slices if self.readers[s.result]]
        name = f"chunk.{self._name(node.source)}.{node.dim}"
        chunk = itensor.ChunkOp(
            name, self.streams[node.source, wanted].pop(), node.dim, [s.start for s in used],
            [part_of(wanted, s.dim, s.size) for s in used],
        )  # fmt: skip
        self._emit(chunk)
        for number, (part, result) in enumerate(zip(used, chunk.parts, strict=True)):
            self.names[part.result] = f"{name}.part{number}"
            self._distribute(self.names[part.result], part.result, result)

    def _concat(self, node: Concat) -> None:
        whole = self.made[node.result]
        sources = [
            self.streams[source, part_of(whole, node.dim, size)].pop()
            for source, (_, size) in zip(node.sources, node.parts, strict=True)
        ]
        name = self.names[node.result] = f"concat.{self._name(node.sources[0])}"
        self._distribute(name, node.result, self._emit(itensor.ConcatOp(name, sources, node.dim, whole)).results[0])

    def _name(self, value: SSAValue) -> str:
        """What a person calls a value: its layer, its input, or the task that rearranged it."""
        if isinstance(value, BlockArgument):
            return self.graph.name(value)
        if value not in self.names:  # it was made in another kernel
            layers = (n.layer for n in self.graph.operations if n.result is value)
            return next(layers, "tensor")
        return self.names[value]

    def _distribute(self, name: str, value: SSAValue, stream: SSAValue) -> None:
        """Give every reader of `value` a stream of the type that it wants; equal conversions are shared."""
        assert isinstance(stream.type, ITensorType)
        wanted = self.readers[value]
        kinds = list(dict.fromkeys(wanted))
        plain = wanted.count(stream.type)
        converted = [kind for kind in kinds if kind != stream.type]
        copies = self._fork(f"fork.{name}", stream, plain + len(converted))
        self.streams[value, stream.type] = copies[:plain]
        for index, (kind, copy) in enumerate(zip(converted, copies[plain:], strict=True)):
            suffix = f".{index}" if len(converted) > 1 else ""
            converter = itensor.ConverterOp(f"convert.{name}{suffix}", copy, kind)
            self._emit(converter)
            self.streams[value, kind] = self._fork(
                f"fork.{name}.converted{suffix}", converter.result, wanted.count(kind)
            )

    def _fork(self, name: str, stream: SSAValue, count: int) -> list[SSAValue]:
        if count == 1:
            return [stream]
        return list(self._emit(itensor.ForkOp(name, stream, count)).results)

    def _store(self, export: Export) -> SSAValue:
        source = self.streams[export.value, self._exported(export.value)].pop()
        return self._emit(itensor.StoreOp(export.name, source, tensor_type(export.value))).results[0]

    def _emit(self, op: Operation) -> Operation:
        self.block.add_op(op)
        return op


def _task_body(operation: TensorOp) -> Region:
    """The scalar body, with captured constants brought in; an unused `outs` argument is dropped."""
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
        for operand in op.operands:
            if operand not in mapping:
                mapping[operand] = _capture(operation.layer, operand, block)
        if isinstance(op, linalg.YieldOp):
            block.add_op(itensor.YieldOp([mapping[v] for v in op.operands]))
        else:
            block.add_op(op.clone(mapping))
    return Region(block)


def _capture(layer: str, value: SSAValue, block: Block) -> SSAValue:
    if not isinstance(value, OpResult) or not isinstance(value.op, arith.ConstantOp):
        raise PenstockError(
            code="unsupported-op", what="a body that uses a value from outside which is not a constant", where=layer,
        )  # fmt: skip
    constant = value.op.clone()
    block.add_op(constant)
    return constant.result


def _dtype(value: SSAValue) -> Attribute:
    return tensor_type(value).element_type
