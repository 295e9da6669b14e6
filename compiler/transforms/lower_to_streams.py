"""Lowers the itensor kernel to channels and processes: itensors become FIFOs, tasks become nests.

A compute task is one nest where loading, computing and storing overlap; a converter is a writer and a
reader on a block channel; loads and stores are nests against external memory.
"""

from __future__ import annotations

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
        kernel = next(op for op in function.body.block.ops if isinstance(op, itensor.KernelOp))
        arguments = range(len(function.body.block.args))
        names = [_argument_attribute(function, index, "penstock.name") for index in arguments]
        kinds = [_argument_attribute(function, index, "penstock.kind") for index in arguments]
        return _Lowering(self.design, self.top_name, kernel, names, kinds).run()


@dataclass
class _Lowering:
    design: Design
    top_name: str
    kernel: itensor.KernelOp
    argument_names: list[str]
    argument_kinds: list[str]
    channels: list[Operation] = field(default_factory=list[Operation])
    tasks: list[Operation] = field(default_factory=list[Operation])
    fifo: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    inputs: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    top: Block = field(default_factory=Block)
    top_names: list[str] = field(default_factory=list[str])
    top_kinds: list[str] = field(default_factory=list[str])

    def run(self) -> ModuleOp:
        for argument in self.kernel.body.block.args:
            if self.argument_kinds[argument.index] == "input":  # a port each, read or not: the host counts on it
                self.inputs[argument] = self._memory(self.argument_names[argument.index], "input", argument.type)
        for op in self.kernel.body.block.ops:
            for value in op.results:
                if isinstance(value.type, ITensorType):
                    self.fifo[value] = self._channel(value)
        for op in self.kernel.body.block.ops:
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
        self.top.add_ops([*self.channels, *self.tasks])
        names, kinds = (ArrayAttr([StringAttr(s) for s in texts]) for texts in (self.top_names, self.top_kinds))
        return ModuleOp([stream.TopOp(self.top_name, names, kinds, Region(self.top))])

    def _channel(self, value: SSAValue) -> SSAValue:
        """One FIFO a value; it is named after its two ends so that a person finds it in every report."""
        assert isinstance(value.type, ITensorType)
        use = next(iter(value.uses))
        name = f"{_task_name(value.owner)}__{_task_name(use.operation)}"
        if not isinstance(use.operation, itensor.StoreOp | itensor.ForkOp | itensor.ConverterOp | itensor.ChunkOp):
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
        assert isinstance(op.source, BlockArgument)
        assert isinstance(op.result.type, ITensorType)
        name = self.argument_names[op.source.index]
        memory = self.inputs.get(op.source) or self._memory(name, "parameter", op.source.type)
        body, (loops, offset) = Block(), _walk(itensor_loops(op.result.type), op.result.type)
        value = nest.LoadOp(memory, offset, ALWAYS, _token(op.result.type))
        body.add_ops([value, nest.WriteOp(value.result, self.fifo[op.result], ALWAYS)])
        self._task(op.sym_name.data, name, [nest.NestOp("load", loops, Region(body))])

    def _store(self, op: itensor.StoreOp) -> None:
        assert isinstance(op.source.type, ITensorType)
        name = f"output_{op.sym_name.data.removeprefix('store.')}"
        memory = self._memory(name, "output", op.result.type)
        body, (loops, offset) = Block(), _walk(itensor_loops(op.source.type), op.source.type)
        value = nest.ReadOp(self.fifo[op.source], ALWAYS)
        body.add_ops([value, nest.StoreOp(value.result, memory, offset, ALWAYS)])
        self._task(op.sym_name.data, name, [nest.NestOp("store", loops, Region(body))])

    def _fork(self, op: itensor.ForkOp) -> None:
        assert isinstance(op.source.type, ITensorType)
        body = Block()
        value = nest.ReadOp(self.fifo[op.source], ALWAYS)
        body.add_ops([value, *(nest.WriteOp(value.result, self.fifo[copy], ALWAYS) for copy in op.copies)])
        loops = [Loop("token", op.source.type.token_count)]
        self._task(op.sym_name.data, op.sym_name.data, [nest.NestOp("fork", loops, Region(body))])

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
        self._task(op.sym_name.data, op.sym_name.data, [nest.NestOp("chunk", named, Region(body))])

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
        self._task(op.sym_name.data, op.sym_name.data, [nest.NestOp("concat", named, Region(body))])

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
        self._task(f"{op.sym_name.data}.write", op.sym_name.data, [writer])

        read, (loops, address) = Block(), _walk([*plan.shared, *plan.target], target, skip=len(plan.shared))
        token = nest.LoadOp(block.result, address, ALWAYS, _token(target))
        read.add_ops([token, nest.WriteOp(token.result, self.fifo[op.result], ALWAYS)])
        reader = nest.NestOp("read", loops, Region(read), block_loops=len(plan.shared))
        self._task(f"{op.sym_name.data}.read", op.sym_name.data, [reader])

    def _compute(self, op: itensor.TaskOp) -> None:
        roms: dict[int, str] = {
            index: self.argument_names[value.index]
            for index, value in enumerate(op.operands_)
            if isinstance(value, BlockArgument)
        }
        streams = {index: self.fifo[v] for index, v in enumerate(op.operands_) if index not in roms}
        memories, compute = build_compute_nest(op, streams, roms, self.fifo[op.result])
        self._task(op.sym_name.data, op.sym_name.data, [*memories, compute])

    def _task(self, name: str, layer: str, ops: list[Operation]) -> None:
        self.tasks.append(stream.TaskOp(c_name(name), layer, Region(Block(ops))))


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


def _task_name(owner: Operation | Block) -> str:
    assert isinstance(owner, Operation)
    name = owner.properties["sym_name"]
    assert isinstance(name, StringAttr)
    return c_name(name.data)


def _argument_attribute(function: func.FuncOp, index: int, key: str) -> str:
    assert function.arg_attrs is not None
    name = function.arg_attrs.data[index].data[key]
    assert isinstance(name, StringAttr)
    return name.data
