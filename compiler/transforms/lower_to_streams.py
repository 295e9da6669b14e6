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
    StringAttr,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap

from compiler.analysis.converter import LoopOf, plan_converter
from compiler.analysis.loops import itensor_loops
from compiler.analysis.parts import range_loops
from compiler.design import Design
from compiler.dialects import itensor, nest, stream
from compiler.dialects.affine import linear_sum
from compiler.dialects.itensor import ITensorType, unpack
from compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from compiler.dialects.stream import BlocksType, StreamType
from compiler.dialects.types import tensor_type
from compiler.transforms.build_compute_nest import build_compute_nest
from compiler.transforms.names import c_name


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
    """Channels first, then tasks in program order. `outer` maps a kernel's arguments to what they are in @main."""

    design: Design
    top_name: str
    function: func.FuncOp
    channels: list[Operation] = field(default_factory=list[Operation])
    tasks: list[Operation] = field(default_factory=list[Operation])
    names: dict[Operation, str] = field(default_factory=dict[Operation, str])
    fifo: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    outer: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    memories: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])
    top: Block = field(default_factory=Block)
    top_names: list[str] = field(default_factory=list[str])
    top_kinds: list[str] = field(default_factory=list[str])
    group: int = 0

    def run(self) -> ModuleOp:
        kernels = [op for op in self.function.body.block.ops if isinstance(op, itensor.KernelOp)]
        self._name_tasks(kernels)
        for argument in self.function.body.block.args:
            if self._attribute(argument, "penstock.kind") == "input":  # a port each, read or not
                name = self._attribute(argument, "penstock.name")
                self.memories[argument] = self._memory(name, "input", argument.type)
        terminator = self.function.body.block.last_op
        assert terminator is not None
        self.outputs = [self._memory(f"output_{i}", "output", v.type) for i, v in enumerate(terminator.operands)]
        for number, kernel in enumerate(kernels):
            self.group = number
            self.outer |= dict(zip(kernel.body.block.args, kernel.sources, strict=True))
            for op in kernel.body.block.ops:
                for value in op.results:
                    if isinstance(value.type, ITensorType):
                        self.fifo[value] = self._channel(value)
            for op in kernel.body.block.ops:
                self._lower(op)
        self.top.add_ops([*self.channels, *self.tasks])
        names, kinds = (ArrayAttr([StringAttr(s) for s in texts]) for texts in (self.top_names, self.top_kinds))
        return ModuleOp([stream.TopOp(self.top_name, names, kinds, Region(self.top))])

    def _lower(self, op: Operation) -> None:
        match op:
            case itensor.LoadOp():
                self._load(op)
            case itensor.StoreOp():
                self._store(op)
            case itensor.ForkOp():
                self._fork(op)
            case itensor.ConverterOp():
                self._convert(op)
            case itensor.ChunkOp():
                self._chunk(op)
            case itensor.ConcatOp():
                self._concat(op)
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

    def _channel(self, value: SSAValue) -> SSAValue:
        """One FIFO a value; it is named after its two ends so that a person finds it in every report."""
        assert isinstance(value.type, ITensorType)
        assert isinstance(value.owner, Operation)
        use = next(iter(value.uses))
        name = f"{self.names[value.owner]}__{self.names[use.operation]}"
        siblings = [o for o in use.operation.operands if o.owner is value.owner]
        name += f"_{siblings.index(value)}" if len(siblings) > 1 else ""
        depth = self.design.fifo_depths.get(name, self.design.default_depth)
        op = stream.StreamOp(name, StreamType.of(VectorType(value.type.dtype, value.type.element_shape), depth))
        op.result.name_hint = name
        self.channels.append(op)
        return op.result

    def _memory(self, name: str, kind: str, tensor: Attribute) -> SSAValue:
        shaped = tensor_type(tensor)
        self.top_names.append(name)
        self.top_kinds.append(kind)
        argument = self.top.insert_arg(MemRefType(shaped.element_type, list(shaped.get_shape())), len(self.top.args))
        argument.name_hint = c_name(name)
        return argument

    def _load(self, op: itensor.LoadOp) -> None:
        assert isinstance(op.result.type, ITensorType)
        source = self.outer[op.source]
        memory = self.memories.get(source)
        if memory is None:  # a streamed parameter: a port for each task that reads it
            memory = self._memory(self._attribute(source, "penstock.name"), "parameter", source.type)
        layer = self._attribute(source, "penstock.name") if isinstance(source, BlockArgument) else op.sym_name.data
        body, (loops, offset) = Block(), _walk(itensor_loops(op.result.type), op.result.type)
        value = nest.LoadOp(memory, offset, ALWAYS, _token(op.result.type))
        body.add_ops([value, nest.WriteOp(value.result, self.fifo[op.result], ALWAYS)])
        self._task(self.names[op], layer, [nest.NestOp("load", loops, Region(body))])

    def _store(self, op: itensor.StoreOp) -> None:
        """Into an output of the accelerator, or into external memory for a later kernel."""
        assert isinstance(op.source.type, ITensorType)
        result = self._leaving(op)
        use = next(iter(result.uses))
        if isinstance(use.operation, func.ReturnOp):
            name, memory = f"output_{use.index}", self.outputs[use.index]
        else:
            name = op.sym_name.data
            kept = f"{name.removeprefix('spill.')}.memory"
            memory = self.memories[result] = self._memory(kept, "buffer", op.result.type)
        body, (loops, offset) = Block(), _walk(itensor_loops(op.source.type), op.source.type)
        value = nest.ReadOp(self.fifo[op.source], ALWAYS)
        body.add_ops([value, nest.StoreOp(value.result, memory, offset, ALWAYS)])
        self._task(self.names[op], name, [nest.NestOp("store", loops, Region(body))])

    def _leaving(self, op: itensor.StoreOp) -> SSAValue:
        """The kernel's result that a store yields."""
        use = next(iter(op.result.uses))
        kernel = use.operation.parent_op()
        assert isinstance(kernel, itensor.KernelOp)
        return kernel.outputs[use.index]

    def _fork(self, op: itensor.ForkOp) -> None:
        assert isinstance(op.source.type, ITensorType)
        body = Block()
        value = nest.ReadOp(self.fifo[op.source], ALWAYS)
        body.add_ops([value, *(nest.WriteOp(value.result, self.fifo[copy], ALWAYS) for copy in op.copies)])
        loops = [Loop("token", op.source.type.token_count)]
        self._task(self.names[op], op.sym_name.data, [nest.NestOp("fork", loops, Region(body))])

    def _chunk(self, op: itensor.ChunkOp) -> None:
        """Every token passes once and goes to the parts whose range it lies in."""
        source = op.source.type
        assert isinstance(source, ITensorType)
        loops, along = range_loops(source, op.dim.data)
        body, value = Block(), nest.ReadOp(self.fifo[op.source], ALWAYS)
        body.add_op(value)
        for start, part in zip(unpack(op.starts), op.parts, strict=True):
            assert isinstance(part.type, ITensorType)
            guard = _range_guard(loops, along, start, part.type.data_shape()[op.dim.data])
            body.add_op(nest.WriteOp(value.result, self.fifo[part], guard))
        named = [Loop(f"w{i}", trip) for i, (trip, _, _) in enumerate(loops)]
        self._task(self.names[op], op.sym_name.data, [nest.NestOp("chunk", named, Region(body))])

    def _concat(self, op: itensor.ConcatOp) -> None:
        """Every token of the whole comes from the source in whose range it lies."""
        whole = op.result.type
        assert isinstance(whole, ITensorType)
        loops, along = range_loops(whole, op.dim.data)
        body, chosen = Block(), None
        for start, source in zip(op.starts, op.sources, strict=True):
            assert isinstance(source.type, ITensorType)
            guard = _range_guard(loops, along, start, source.type.data_shape()[op.dim.data])
            token = nest.ReadOp(self.fifo[source], guard)
            body.add_op(token)
            if chosen is None:
                chosen = token.result
            else:
                select = nest.SelectOp(token.result, chosen, guard)
                body.add_op(select)
                chosen = select.result
        assert chosen is not None
        body.add_op(nest.WriteOp(chosen, self.fifo[op.result], ALWAYS))
        named = [Loop(f"w{i}", trip) for i, (trip, _, _) in enumerate(loops)]
        self._task(self.names[op], op.sym_name.data, [nest.NestOp("concat", named, Region(body))])

    def _convert(self, op: itensor.ConverterOp) -> None:
        source, target = op.source.type, op.result.type
        assert isinstance(source, ITensorType)
        assert isinstance(target, ITensorType)
        plan = plan_converter(source, target)
        block = stream.BlocksOp(
            f"{op.sym_name.data}.block", BlocksType.of(MemRefType(source.dtype, list(plan.block)), 2)
        )
        block.result.name_hint = c_name(block.sym_name.data)
        self.channels.append(block)

        write, (loops, address) = Block(), _walk([*plan.shared, *plan.source], source, skip=len(plan.shared))
        value = nest.ReadOp(self.fifo[op.source], ALWAYS)
        write.add_ops([value, nest.StoreOp(value.result, block.result, address, ALWAYS)])
        writer = nest.NestOp("write", loops, Region(write), block_loops=len(plan.shared))
        self._task(f"{self.names[op]}_write", op.sym_name.data, [writer])

        read, (loops, address) = Block(), _walk([*plan.shared, *plan.target], target, skip=len(plan.shared))
        token = nest.LoadOp(block.result, address, ALWAYS, _token(target))
        read.add_ops([token, nest.WriteOp(token.result, self.fifo[op.result], ALWAYS)])
        reader = nest.NestOp("read", loops, Region(read), block_loops=len(plan.shared))
        self._task(f"{self.names[op]}_read", op.sym_name.data, [reader])

    def _compute(self, op: itensor.TaskOp) -> None:
        roms = {
            index: self._attribute(self.outer[value], "penstock.name")
            for index, value in enumerate(op.operands_)
            if isinstance(value, BlockArgument)
        }
        streams = {index: self.fifo[v] for index, v in enumerate(op.operands_) if index not in roms}
        memories, compute = build_compute_nest(op, streams, roms, self.fifo[op.result])
        self._task(self.names[op], op.sym_name.data, [*memories, compute])

    def _task(self, name: str, layer: str, ops: list[Operation]) -> None:
        self.tasks.append(stream.TaskOp(c_name(name), layer, Region(Block(ops)), self.group))

    def _attribute(self, argument: SSAValue, key: str) -> str:
        assert isinstance(argument, BlockArgument)
        assert self.function.arg_attrs is not None
        value = self.function.arg_attrs.data[argument.index].data[key]
        assert isinstance(value, StringAttr)
        return value.data


def _range_guard(loops: list[LoopOf], along: int, start: int, size: int) -> GuardAttr:
    """The trips of loop `along` that lie in a range of its dim; terms that always hold are left out."""
    trip, step, _ = loops[along]
    first, last = start // step, (start + size) // step - 1
    if first == last and trip > 1:
        return GuardAttr((Term(along, "eq", first),))
    terms = [Term(along, "ge", first)] if first > 0 else []
    terms += [Term(along, "le", last)] if last < trip - 1 else []
    return GuardAttr(tuple(terms))


def _walk(loops: list[LoopOf], kind: ITensorType, skip: int = 0) -> tuple[list[Loop], AffineMap]:
    """Loops of a type, and where the token lies; the first `skip` loops do not move it (they change blocks)."""
    if len(loops) == skip:
        loops = [*loops, (1, 1, None)]  # a block of one token still has a loop inside it
    named = [Loop(f"s{i}" if i < skip else f"w{i}", trip) for i, (trip, _, _) in enumerate(loops)]
    coordinates = [
        linear_sum([(i, step) for i, (_, step, target) in enumerate(loops) if target == dim and i >= skip])
        for dim in range(len(kind.element_shape))
    ]
    return named, AffineMap(len(loops), 0, tuple(coordinates))


def _token(kind: ITensorType) -> VectorType:
    return VectorType(kind.dtype, kind.element_shape)
