"""Lowers the itensor kernel to channels and processes: itensors become FIFOs, tasks become nests.

A compute task is one nest where loading, computing and storing overlap; a converter is a writer and a
reader on a block channel; loads and stores are nests against external memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from penstock.compiler.analysis.channels import FREE, channel_name, destinations
from penstock.compiler.analysis.nests import NestFacts, Place
from penstock.compiler.analysis.packing import layout_of
from penstock.compiler.analysis.tasks import Computation, is_reread, task_plan
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.dialects.bindings import bindings_of
from penstock.compiler.dialects.itensor import ITensorType, LayoutAttr, unpack
from penstock.compiler.dialects.itensor_types import expect_itensor
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.platforms import load_platform
from penstock.compiler.transforms.build_compute_nest import Source, build_compute_nest
from penstock.compiler.transforms.build_converter_nests import BLOCKS, Conversion, build_converter
from penstock.compiler.transforms.build_dma_nests import Transfer, build_load, build_store
from penstock.compiler.transforms.build_part_nests import Range, build_chunk, build_concat, build_join
from penstock.compiler.transforms.names import c_name
from penstock.compiler.transforms.write_nests import write_nests


@dataclass(frozen=True)
class LowerToStreams:
    """The pass. FIFO depths come from the design, by channel name."""

    design: Design
    top_name: str = "penstock_top"

    def apply(self, module: ModuleOp) -> ModuleOp:
        function = next(op for op in module.ops if isinstance(op, func.FuncOp))
        return _Lowering(self.design, self.top_name, function).run()


@dataclass
class _Lowering:
    """Channels first, then tasks in program order. `outer` maps a kernel's arguments to what they are in @main.

    `fifo` is what a reader pops, `targets` what the maker of a stream pushes into; nests are built as facts that name
    `places`, and written as operations then.
    """

    design: Design
    top_name: str
    function: func.FuncOp
    channels: list[Operation] = field(default_factory=list[Operation])
    tasks: list[Operation] = field(default_factory=list[Operation])
    names: dict[Operation, str] = field(default_factory=dict[Operation, str])
    fifo: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    targets: dict[SSAValue, list[Place]] = field(default_factory=dict[SSAValue, list[Place]])
    places: dict[Place, SSAValue] = field(default_factory=dict[Place, SSAValue])
    outer: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    memories: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])
    outputs: list[Place] = field(default_factory=list[Place])
    top: Block = field(default_factory=Block)
    top_names: list[str] = field(default_factory=list[str])
    top_kinds: list[str] = field(default_factory=list[str])
    top_layouts: list[LayoutAttr | None] = field(default_factory=list["LayoutAttr | None"])
    group: int = 0

    def run(self) -> ModuleOp:
        kernels = [op for op in self.function.body.block.ops if isinstance(op, itensor.KernelOp)]
        self._name_tasks(kernels)
        for argument in self.function.body.block.args:
            if self._attribute(argument, "penstock.kind") == "input":  # a port each, read or not
                name = self._attribute(argument, "penstock.name")
                layout = layout_of(self.function.arg_attrs, argument.index)
                self.memories[argument] = self._memory(name, "input", argument.type, layout)
        terminator = self.function.body.block.last_op
        assert terminator is not None
        self.outputs = [
            self._memory(f"output_{i}", "output", value.type, layout_of(self.function.res_attrs, i))
            for i, value in enumerate(terminator.operands)
        ]
        for number, kernel in enumerate(kernels):
            self.group = number
            self.outer |= dict(zip(kernel.body.block.args, kernel.sources, strict=True))
            for op in kernel.body.block.ops:
                for value in op.results:
                    if isinstance(value.type, ITensorType) and not isinstance(op, FREE):
                        self._channel(value)
            for op in kernel.body.block.ops:
                self._lower(op)
        self.top.add_ops([*self.channels, *self.tasks])
        names, kinds = (ArrayAttr([StringAttr(s) for s in texts]) for texts in (self.top_names, self.top_kinds))
        return ModuleOp([stream.TopOp(self.top_name, names, kinds, Region(self.top), self.top_layouts)])

    def _lower(self, op: Operation) -> None:
        match op:
            case itensor.LoadOp():
                self._load(op)
            case itensor.StoreOp():
                self._store(op)
            case itensor.ConverterOp():
                self._convert(op)
            case itensor.ChunkOp():
                self._chunk(op)
            case itensor.ConcatOp():
                self._concat(op)
            case itensor.JoinOp():
                fifos = [self.fifo[source] for source in op.sources]
                joined = build_join(expect_itensor(op.sources[0]), fifos, self.targets[op.result])
                self._task(self.names[op], op.sym_name.data, joined)
            case itensor.TaskOp():
                self._compute(op)
            case _:
                pass

    def _name_tasks(self, kernels: Sequence[itensor.KernelOp]) -> None:
        """A name for every task that is safe in C++ and its own, however alike the layers' names are."""
        taken: set[str] = set()
        for kernel in kernels:
            for op in kernel.body.block.ops:
                symbol = op.properties.get("sym_name")
                if isinstance(symbol, StringAttr):
                    base = name = c_name(symbol.data)
                    number = 2
                    while name in taken:
                        name, number = f"{base}_{number}", number + 1
                    taken.add(name)
                    self.names[op] = name

    def _channel(self, value: SSAValue) -> None:
        """A FIFO for each reader of a stream."""
        for last in destinations(value):
            name, kind = channel_name(last, self.names.__getitem__), expect_itensor(last)
            depth = self.design.fifo_depths.get(name, self.design.default_depth)
            op = stream.StreamOp(name, StreamType.of(VectorType(kind.dtype, kind.element_shape), depth))
            op.result.name_hint = name
            self.channels.append(op)
            fifo = self.fifo[last] = Place(name, "stream", kind.element_shape, kind.dtype)
            self.places[fifo] = op.result
            self.targets.setdefault(value, []).append(fifo)

    def _memory(self, name: str, kind: str, tensor: Attribute, layout: LayoutAttr | None) -> Place:
        shaped = tensor_type(tensor)
        self.top_names.append(name)
        self.top_kinds.append(kind)
        self.top_layouts.append(layout)
        arrays = load_platform(self.design.platform).has_array_arguments
        space = stream.ON_CHIP if arrays else NoneAttr()
        memory = MemRefType(shaped.element_type, list(shaped.get_shape()), memory_space=space)
        argument = self.top.insert_arg(memory, len(self.top.args))
        argument.name_hint = c_name(name)
        place = Place(name, "array" if arrays else "external", memory.get_shape(), memory.element_type)
        self.places[place] = argument
        return place

    def _load(self, op: itensor.LoadOp) -> None:
        source = self.outer[op.source]
        memory = self.memories.get(source)
        if memory is None:  # a streamed parameter: a port for each task that reads it
            memory = self._memory(self._attribute(source, "penstock.name"), "parameter", source.type, op.layout)
        layer = self._attribute(source, "penstock.name") if isinstance(source, BlockArgument) else op.sym_name.data
        self._processes(op, layer, build_load(Transfer.of(op), memory, self.targets[op.result]))

    def _store(self, op: itensor.StoreOp) -> None:
        """Into an output of the accelerator, or into external memory for a later kernel."""
        result = self._leaving(op)
        use = next(iter(result.uses))
        if isinstance(use.operation, func.ReturnOp):
            name, memory = f"output_{use.index}", self.outputs[use.index]
        else:
            name = op.sym_name.data
            kept = f"{name.removeprefix('spill.')}.memory"
            memory = self.memories[result] = self._memory(kept, "buffer", op.result.type, op.layout)
        self._processes(op, name, build_store(Transfer.of(op), memory, self.fifo[op.source]))

    def _leaving(self, op: itensor.StoreOp) -> SSAValue:
        """The kernel's result that a store yields."""
        use = next(iter(op.result.uses))
        kernel = use.operation.parent_op()
        assert isinstance(kernel, itensor.KernelOp)
        return kernel.outputs[use.index]

    def _convert(self, op: itensor.ConverterOp) -> None:
        kinds = expect_itensor(op.source), expect_itensor(op.result)
        name = op.sym_name.data
        self._processes(op, name, build_converter(name, kinds, self.fifo[op.source], self.targets[op.result]))

    def _chunk(self, op: itensor.ChunkOp) -> None:
        dim = op.dim.data
        parts = [
            Range(start, expect_itensor(part).data_shape()[dim], self.targets[part])
            for start, part in zip(unpack(op.starts), op.parts, strict=True)
        ]
        chunk = build_chunk(expect_itensor(op.source), dim, self.fifo[op.source], parts)
        self._task(self.names[op], op.sym_name.data, chunk)

    def _concat(self, op: itensor.ConcatOp) -> None:
        dim = op.dim.data
        parts = [
            Range(start, expect_itensor(source).data_shape()[dim], [self.fifo[source]])
            for start, source in zip(op.starts, op.sources, strict=True)
        ]
        concat = build_concat(expect_itensor(op.result), dim, parts, self.targets[op.result])
        self._task(self.names[op], op.sym_name.data, concat)

    def _compute(self, op: itensor.TaskOp) -> None:
        plan = task_plan(op)
        sources: list[Source] = []
        for index, value in enumerate(op.operands_):
            if isinstance(value, BlockArgument):
                kind, parameter = tensor_type(value), self._attribute(self.outer[value], "penstock.name")
                place = Place(f"rom_{index}", "rom", kind.get_shape(), kind.element_type, parameter)
                sources.append(Source(place))
            else:
                sources.append(Source(self.fifo[value], is_reread(expect_itensor(value), op.maps[index], plan)))
        bindings = bindings_of(op)
        compute = build_compute_nest(Computation.of_task(op), plan, sources, self.targets[op.result], bindings)
        self._task(self.names[op], op.sym_name.data, compute)

    def _processes(self, op: Operation, layer: str, built: Conversion) -> None:
        if built.block is not None:
            self._blocks(built.block)
        for process in built.processes:
            self._task(self.names[op] + process.suffix, layer, process.nest)

    def _blocks(self, block: Place) -> None:
        op = stream.BlocksOp(block.name, BlocksType.of(MemRefType(block.dtype, block.shape), BLOCKS))
        op.result.name_hint = c_name(block.name)
        self.channels.append(op)
        self.places[block] = op.result

    def _task(self, name: str, layer: str, facts: NestFacts) -> None:
        ops = write_nests([facts], self.places)
        self.tasks.append(stream.TaskOp(c_name(name), layer, Region(Block(ops)), self.group))

    def _attribute(self, argument: SSAValue, key: str) -> str:
        assert isinstance(argument, BlockArgument)
        assert self.function.arg_attrs is not None
        value = self.function.arg_attrs.data[argument.index].data[key]
        assert isinstance(value, StringAttr)
        return value.data
