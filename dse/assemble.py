"""Scheduled networks of many designs of one model, fast: every distinct piece is lowered and scheduled once.

A task's nests depend on its own schedule and stream types only, a converter's on its two types, and so on. So
the itensor level is built afresh for every design by the real pass, and its operations are looked up among the
pieces seen before; a new piece is lowered alone, between a load and a store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    StringAttr,
    TensorType,
    VectorType,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from compiler.analysis.channels import FREE, channel_name, destinations
from compiler.design import Design
from compiler.dialects import itensor, nest, stream
from compiler.dialects.itensor import ITensorType
from compiler.dialects.itensor_types import expect_itensor
from compiler.dialects.stream import StreamType
from compiler.errors import PenstockError
from compiler.pipeline.stages import itensor_passes, last_stage
from compiler.platforms import Platform
from compiler.program import Program
from compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_nest
from compiler.transforms.build_compute_nest import build_compute_nest
from compiler.transforms.lower_to_streams import LowerToStreams
from compiler.transforms.names import c_name
from profiling.network import Channel, Network, Task, channel_of, in_order


@dataclass(frozen=True)
class _PieceTask:
    suffix: str
    nests: tuple[NestSchedule, ...]


@dataclass(frozen=True)
class _Piece:
    """What one operation of the itensor level becomes: its tasks, and the block channels inside it."""

    tasks: tuple[_PieceTask, ...]
    blocks: tuple[tuple[str, Channel], ...]


class Assembler:
    """Networks of one program's designs on one platform at one clock."""

    def __init__(self, program: Program, platform: Platform, clock_mhz: float) -> None:
        self.program, self.platform = program, platform
        self.library: OperatorLibrary = load_library(platform.operators, platform.check_clock(clock_mhz))
        self._pieces: dict[object, _Piece] = {}

    @property
    def pieces(self) -> int:
        """How many distinct pieces have been lowered so far."""
        return len(self._pieces)

    def network(self, design: Design) -> Network:
        """The same network as lowering the whole design and scheduling it gives."""
        module = last_stage(self.program.module, itensor_passes(design), verify=False)
        kernels = [op for op in module.walk() if isinstance(op, itensor.KernelOp)]
        channels: dict[str, Channel] = {}
        tasks: list[Task] = []
        for group, kernel in enumerate(kernels):
            for op in kernel.body.block.ops:
                if isinstance(op, (itensor.YieldOp, *FREE)):
                    continue
                for last in _leaving(op):
                    name = channel_name(last, _c_sym)
                    depth = design.fifo_depths.get(name, design.default_depth)
                    channels[name] = Channel(name, "stream", depth, _token_bits(expect_itensor(last)))
                tasks += [replace(task, group=group) for task in self._tasks(op, channels)]
        return Network(in_order(tasks), channels)

    def _tasks(self, op: Operation, channels: dict[str, Channel]) -> list[Task]:
        key = _key(op)
        piece = self._pieces.get(key)
        if piece is None:
            lower = self._compute_alone if isinstance(op, itensor.TaskOp) else self._lower_alone
            try:
                piece = self._pieces[key] = lower(op)
            except PenstockError as error:
                # the piece has a name of its own; people know the layer's
                raise PenstockError(
                    code=error.code, what=error.what, where=_sym(op), limit=error.limit, hint=error.hint
                ) from error
        name, layer = _sym(op), _sym(op)
        for suffix, block in piece.blocks:
            channels[name + suffix] = replace(block, name=name + suffix)
        renamed = {f"{_ALONE}{suffix}": name + suffix for suffix, _ in piece.blocks}
        streamed = [o for o in op.operands if isinstance(o.type, ITensorType)]
        renamed |= {_input_channel(op, i): channel_name(o, _c_sym) for i, o in enumerate(streamed)}
        renamed |= {_output_channel(i): channel_name(last, _c_sym) for i, last in enumerate(_leaving(op))}
        return [Task(c_name(name + t.suffix), layer, t.nests, renamed) for t in piece.tasks]

    def _compute_alone(self, op: Operation) -> _Piece:
        """The one nest of a compute task, built by the lowering's own builder between FIFOs of its own."""
        assert isinstance(op, itensor.TaskOp)
        streams: dict[int, SSAValue] = {}
        roms: dict[int, str] = {}
        for index, operand in enumerate(op.operands_):
            if isinstance(operand.type, ITensorType):
                streams[index] = _fifo(_input_channel(op, len(streams)), operand.type)
            else:
                roms[index] = f"memory{index}"
        assert isinstance(op.result.type, ITensorType)
        outputs = [_fifo(_output_channel(i), op.result.type) for i in range(len(_leaving(op)))]
        _, built = build_compute_nest(op, streams, roms, outputs)
        return _Piece((_PieceTask("", (self._schedule(built, _ALONE),)),), ())

    def _lower_alone(self, op: Operation) -> _Piece:
        """Lower one operation between loads and stores, and keep what it became itself."""
        lowered = LowerToStreams(Design(self.platform.name, 1.0, {})).apply(_isolate(op))
        top = next(o for o in lowered.ops if isinstance(o, stream.TopOp))
        tasks: list[_PieceTask] = []
        blocks: list[tuple[str, Channel]] = []
        own = c_name(_ALONE)
        for inner in top.body.block.ops:
            if isinstance(inner, stream.BlocksOp):
                blocks.append((inner.sym_name.data.removeprefix(_ALONE), channel_of(inner)))
            if isinstance(inner, stream.TaskOp) and inner.sym_name.data.startswith(own):
                nests = [o for o in inner.body.block.ops if isinstance(o, nest.NestOp)]
                schedules = tuple(self._schedule(n, own) for n in nests)
                suffix = inner.sym_name.data.removeprefix(own).replace("_", ".", 1)
                tasks.append(_PieceTask(suffix, schedules))
        return _Piece(tuple(tasks), tuple(blocks))

    def _schedule(self, op: nest.NestOp, own: str) -> NestSchedule:
        schedule = schedule_nest(op, self.library)
        return replace(schedule, name=schedule.name.removeprefix(f"{own}.").removeprefix(own))


_ALONE = "piece"


def _leaving(op: Operation) -> list[SSAValue]:
    """What the readers of an operation's streams call them, one value a FIFO."""
    return [last for r in op.results if isinstance(r.type, ITensorType) for last in destinations(r)]


def _c_sym(op: Operation) -> str:
    return c_name(_sym(op))


def _input_channel(op: Operation, index: int) -> str:
    return f"load_in{index}__{_ALONE}" if not isinstance(op, itensor.LoadOp) else ""


def _output_channel(index: int) -> str:
    return f"{_ALONE}__store_{index}"


def _sym(op: Operation) -> str:
    name = op.properties["sym_name"]
    assert isinstance(name, StringAttr)
    return name.data


def _key(op: Operation) -> object:
    """Everything that an operation's nests depend on: kind, types, schedule, and for a task its own layer."""
    streamed = [r for r in op.results if isinstance(r.type, ITensorType)]
    readers = tuple(len(destinations(r)) for r in streamed)
    types = (tuple(o.type for o in op.operands), tuple(r.type for r in op.results), readers)
    if isinstance(op, itensor.TaskOp):
        return op.name, _sym(op), op.schedule, types
    return op.name, types


def _fifo(name: str, kind: ITensorType) -> SSAValue:
    return stream.StreamOp(name, StreamType.of(VectorType(kind.dtype, list(kind.element_shape)), 1)).result


def _token_bits(kind: ITensorType) -> int:
    dtype: Any = kind.dtype
    return prod(kind.element_shape) * int(dtype.bitwidth)


def _isolate(op: Operation) -> ModuleOp:
    """A module with the operation alone: its streams come from loads and go to stores."""
    arguments: list[Attribute] = []
    names: list[str] = []
    block = Block()

    def argument(kind: Attribute, name: str) -> BlockArgument:
        arguments.append(kind)
        names.append(name)
        return block.insert_arg(kind, len(block.args))

    copy = _copy(op, block, argument)
    results: list[SSAValue] = []
    for original, value in zip(op.results, copy.results, strict=True):
        if not isinstance(value.type, ITensorType):
            results.append(value)
            continue
        copies: list[SSAValue] = [value]
        if (count := len(destinations(original))) > 1:
            fork = itensor.ForkOp("fork", value, count)
            block.add_op(fork)
            copies = list(fork.copies)
        for one in copies:
            store = itensor.StoreOp(f"store.{len(results)}", one, _tensor(value.type))
            block.add_op(store)
            results.append(store.result)
    block.add_op(itensor.YieldOp(results))
    outer = Block(arg_types=arguments)
    kinds = [r.type for r in results]
    kernel = itensor.KernelOp("alone", list(outer.args), kinds, Region(block))
    outer.add_ops([kernel, func.ReturnOp(*kernel.outputs)])
    named = [
        DictionaryAttr({"penstock.name": StringAttr(name), "penstock.kind": StringAttr("param")}) for name in names
    ]
    function = func.FuncOp("main", FunctionType.from_lists(arguments, kinds), Region(outer), arg_attrs=ArrayAttr(named))
    return ModuleOp([function])


def _copy(op: Operation, block: Block, argument: Callable[[Attribute, str], BlockArgument]) -> Operation:
    mapping: dict[SSAValue, SSAValue] = {}
    streams = 0
    for index, operand in enumerate(op.operands):
        if operand in mapping:
            continue
        if isinstance(operand.type, ITensorType):
            source = argument(_tensor(operand.type), f"in{streams}")
            load = itensor.LoadOp(f"load.in{streams}", source, operand.type)
            block.add_op(load)
            mapping[operand] = load.result
            streams += 1
        else:
            mapping[operand] = argument(operand.type, f"memory{index}")
    copy = op.clone(mapping)
    copy.properties["sym_name"] = StringAttr(_ALONE)
    block.add_op(copy)
    return copy


def _tensor(kind: ITensorType) -> TensorType[Any]:
    dtype: Any = kind.dtype
    return TensorType(dtype, list(kind.data_shape()))
