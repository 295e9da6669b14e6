"""Writes the plan of a design as operations: @main with a kernel a group, each a dataflow of loads, tasks and stores.

Nothing is decided here: `compiler/plan` says which parts there are, what they are called, in which order their streams
come and how tensors lie in external memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from penstock.compiler.analysis.graph import Graph, read_graph
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor
from penstock.compiler.dialects.counts import LENGTHS
from penstock.compiler.dialects.itensor import LayoutAttr, ScheduleAttr
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.plan.computations import task_body
from penstock.compiler.plan.names import kernel_name
from penstock.compiler.plan.parts import (
    Chunking,
    Computing,
    Concatenating,
    Converting,
    Forking,
    Loading,
    Order,
    Part,
    Reshaping,
    Sliding,
    Storing,
    Stream,
    Transfer,
)
from penstock.compiler.plan.planner import Kernel, Plan, Planner
from penstock.compiler.plan.value_orders import loops_of
from penstock.compiler.platforms import load_platform
from penstock.compiler.transforms.passes import Level, ModulePass


@dataclass(frozen=True)
class WriteKernels(ModulePass):
    """The pass. `design` has a kernel entry for every layer."""

    name: ClassVar[str] = "write-kernels"
    takes: ClassVar[Level] = "linalg"

    design: Design

    def apply(self, module: ModuleOp) -> ModuleOp:
        graph = read_graph(module)
        plan = Planner(graph, load_platform(self.design.platform)).plan(self.design)
        return _Writer(self.design, graph, plan).module()


class _Writer:
    """`values` are the tensors of the new @main, by those of the graph."""

    def __init__(self, design: Design, graph: Graph, plan: Plan) -> None:
        self.design = design
        self.graph = graph
        self.plan = plan
        self.values: dict[SSAValue, SSAValue] = {}
        self.types: dict[SSAValue, Attribute] = {}
        for kernel in plan.kernels:
            for part in kernel.parts:
                if isinstance(part.does, Loading | Storing):
                    self.types[part.tensors[0]] = part.does.transfer.tensor

    def module(self) -> ModuleOp:
        block, old = Block(), self.graph.function
        for argument in old.body.block.args:
            new = self.values[argument] = block.insert_arg(self._type(argument), argument.index)
            new.name_hint = argument.name_hint
        returned: dict[int, SSAValue] = {}
        for kernel in self.plan.kernels:
            op = self._kernel(kernel)
            block.add_op(op)
            self.values |= dict(zip(kernel.frame.exports, op.outputs, strict=True))
            returned |= {i: made for (i, _), made in zip(kernel.frame.returned, op.outputs, strict=False)}
        outputs = [returned[index] for index in range(len(self.graph.returned))]
        block.add_op(func.ReturnOp(*outputs))
        kind = FunctionType.from_lists([a.type for a in block.args], [v.type for v in outputs])
        assert old.arg_attrs is not None
        arguments = self._with_layouts(list(old.arg_attrs), old.body.block.args)
        results = old.res_attrs  # nothing to say prints, and so parses, otherwise than an empty list
        if any(self.plan.layouts.get(v) for v in self.graph.returned):
            results = self._with_layouts(list(results or [DictionaryAttr({})] * len(outputs)), self.graph.returned)
        function = func.FuncOp("main", kind, Region(block), arg_attrs=arguments, res_attrs=results)
        if (lengths := old.attributes.get(LENGTHS)) is not None:
            function.attributes[LENGTHS] = lengths
        return ModuleOp([function])

    def _type(self, value: SSAValue) -> Attribute:
        return self.types.get(value, value.type)

    def _with_layouts(self, given: Sequence[DictionaryAttr], values: Sequence[SSAValue]) -> ArrayAttr[DictionaryAttr]:
        layouts = [self.plan.layouts.get(value) for value in values]
        return ArrayAttr(_with_layout(one, layout) for one, layout in zip(given, layouts, strict=True))

    def _kernel(self, kernel: Kernel) -> itensor.KernelOp:
        frame = kernel.frame
        sources = [self.values[value] for value in frame.imports]
        block = Block(arg_types=[source.type for source in sources])
        for argument, source in zip(block.args, sources, strict=True):
            argument.name_hint = source.name_hint
        writer = _KernelWriter(self, block, dict(zip(frame.imports, block.args, strict=True)), {})
        stores: list[SSAValue] = []
        for part in kernel.parts:
            op = writer.write(part)
            if isinstance(part.does, Storing):
                stores.append(op.results[0])
        block.add_op(itensor.YieldOp(stores))
        types = [self._type(value) for value in frame.exports]
        return itensor.KernelOp(kernel_name(frame.number), sources, types, Region(block), frame.number)

    def task(self, part: Part, does: Computing, operands: Sequence[SSAValue]) -> itensor.TaskOp:
        operation, plan = self.graph.by_layer[part.name], loops_of(self.graph.by_layer[part.name], self.design)
        bindings = DictionaryAttr({inner: StringAttr(choice) for inner, choice in does.bindings})
        return itensor.TaskOp(
            part.name, operands, does.result.kind, schedule=ScheduleAttr.of(plan.tile, plan.unroll, plan.order),
            trips=plan.trips, indexing_maps=does.computation.maps, iterator_types=operation.iterators,
            init=operation.init, body=task_body(operation), bindings=bindings if does.bindings else None,
            interval=does.interval,
        )  # fmt: skip


@dataclass(frozen=True)
class _KernelWriter:
    """Writes parts into the block of a kernel. `tensors` are its arguments, by the tensors of the graph."""

    whole: _Writer
    block: Block
    tensors: dict[SSAValue, SSAValue]
    streams: dict[Stream, SSAValue]

    def write(self, part: Part) -> Operation:
        op = self._operation(part, [self.streams[stream] for stream in part.inputs])
        self.block.add_op(op)
        self.streams.update(zip(part.outputs, op.results, strict=False))
        return op

    def _operation(self, part: Part, streams: list[SSAValue]) -> Operation:
        match part.does:
            case Loading(transfer):
                source, words = self.tensors[part.tensors[0]], _words(transfer)
                return itensor.LoadOp(part.name, source, transfer.stream.kind, transfer.layout, words)
            case Storing(transfer):
                return itensor.StoreOp(part.name, streams[0], transfer.tensor, transfer.layout, _words(transfer))
            case Converting(_, target):
                return itensor.ConverterOp(part.name, streams[0], target.kind)
            case Forking(copies):
                return itensor.ForkOp(part.name, streams[0], len(copies))
            case Reshaping(target):
                return itensor.ReassociateOp(part.name, streams[0], target.kind)
            case Sliding(by, fill, _, target):
                return SlideOp(streams[0], by, fill, target.kind, part.name)
            case Chunking(dim, starts, _, makes):
                return itensor.ChunkOp(part.name, streams[0], dim, starts, [_kind(order) for order in makes])
            case Concatenating(dim, _, whole):
                return itensor.ConcatOp(part.name, streams, dim, whole.kind)
            case Computing() as does:
                passing, kept = iter(streams), iter(part.tensors)
                operands = [self.tensors[next(kept)] if o is None else next(passing) for o in does.operands]
                return self.whole.task(part, does, operands)


def _words(transfer: Transfer) -> itensor.ITensorType | None:
    return transfer.through and transfer.through.kind


def _kind(order: Order) -> itensor.ITensorType:
    return order.kind


def _with_layout(given: DictionaryAttr, layout: LayoutAttr | None) -> DictionaryAttr:
    return DictionaryAttr({**given.data, "penstock.layout": layout}) if layout is not None else given
