"""Scheduled networks of many designs of one model, fast: every distinct piece is lowered and scheduled once.

A task's nests depend on its own schedule and stream types only, a converter's on its two types, and so on. So the
parts of every design (`flows.py`) are looked up among the pieces seen before; a new piece is lowered alone, between a
load and a store.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
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

from compiler.analysis.graph import read_graph
from compiler.design import Design
from compiler.dialects import itensor, nest, stream
from compiler.dialects.itensor import ITensorType
from compiler.dialects.itensor_types import expect_itensor
from compiler.dialects.stream import StreamType
from compiler.errors import PenstockError
from compiler.platforms import Platform
from compiler.program import Program
from compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_nest
from compiler.transforms.build_compute_nest import build_compute_nest
from compiler.transforms.lower_to_streams import LowerToStreams
from compiler.transforms.names import c_name
from compiler.transforms.pad_dims import Dims, pad_module
from dse.flow import Part
from dse.flows import Flows
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
        self._dims = Dims(read_graph(program.module))
        self._flows: dict[Hashable, Flows] = {}
        self._pieces: dict[Hashable, _Piece] = {}

    @property
    def pieces(self) -> int:
        """How many distinct pieces have been lowered so far."""
        return len(self._pieces)

    def flows(self, design: Design) -> Flows:
        """Of the program as the design pads it."""
        sizes = self._dims.padded(design)
        key = tuple(sorted(sizes.items()))
        if key not in self._flows:
            graph = read_graph(pad_module(self._dims, sizes)) if sizes else self._dims.graph
            self._flows[key] = Flows(graph, self.platform)
        return self._flows[key]

    def network(self, design: Design) -> Network:
        """The same network as lowering the whole design and scheduling it gives."""
        channels: dict[str, Channel] = {}
        tasks: list[Task] = []
        for group, parts in enumerate(self.flows(design).of(design)):
            for part in parts:
                for made in part.outputs:
                    for last in made.last():
                        assert last.reader is not None
                        name = last.reader.channel(last)
                        depth = design.fifo_depths.get(name, design.default_depth)
                        channels[name] = Channel(name, "stream", depth, last.order.bits)
                tasks += self._tasks(part, channels, group)
        return Network(in_order(tasks), channels)

    def _tasks(self, part: Part, channels: dict[str, Channel], group: int) -> list[Task]:
        leaving = [last for made in part.outputs for last in made.last()]
        readers = tuple([len(list(made.last())) for made in part.outputs])
        piece = self._pieces.get((part.facts, readers))
        if piece is None:
            lower = self._compute_alone if part.is_task else self._lower_alone
            try:
                piece = self._pieces[part.facts, readers] = lower(part, readers)
            except PenstockError as error:
                # the piece has a name of its own; people know the layer's
                raise PenstockError(
                    code=error.code, what=error.what, where=part.name, limit=error.limit, hint=error.hint
                ) from error
        name = part.name
        for suffix, block in piece.blocks:
            channels[name + suffix] = replace(block, name=name + suffix)
        renamed = {f"{_ALONE}{suffix}": name + suffix for suffix, _ in piece.blocks}
        renamed |= {_input_channel(i): part.channel(stream) for i, stream in enumerate(part.inputs)}
        for index, last in enumerate(leaving):
            assert last.reader is not None
            renamed[_output_channel(index)] = last.reader.channel(last)
        return [Task(c_name(name + t.suffix), name, t.nests, renamed, group) for t in piece.tasks]

    def _compute_alone(self, part: Part, readers: tuple[int, ...]) -> _Piece:
        """The one nest of a compute task, built by the lowering's own builder between FIFOs of its own."""
        op = part.build(Block(arg_types=part.operands).args)
        assert isinstance(op, itensor.TaskOp)
        streams: dict[int, SSAValue] = {}
        roms: dict[int, str] = {}
        for index, kind in enumerate(part.operands):
            if isinstance(kind, ITensorType):
                streams[index] = _fifo(_input_channel(len(streams)), kind)
            else:
                roms[index] = f"memory{index}"
        assert isinstance(op.result.type, ITensorType)
        outputs = [_fifo(_output_channel(i), op.result.type) for i in range(sum(readers))]
        _, built = build_compute_nest(op, streams, roms, outputs)
        return _Piece((_PieceTask("", (self._schedule(built, _ALONE),)),), ())

    def _lower_alone(self, part: Part, readers: tuple[int, ...]) -> _Piece:
        """Lower one operation between loads and stores, and keep what it became itself."""
        lowered = LowerToStreams(Design(self.platform.name, 1.0, {})).apply(_isolate(part, readers))
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


def _input_channel(index: int) -> str:
    return f"load_in{index}__{_ALONE}"


def _output_channel(index: int) -> str:
    return f"{_ALONE}__store_{index}"


def _fifo(name: str, kind: ITensorType) -> SSAValue:
    return stream.StreamOp(name, StreamType.of(VectorType(kind.dtype, list(kind.element_shape)), 1)).result


def _isolate(part: Part, readers: tuple[int, ...]) -> ModuleOp:
    """A module with the operation alone: its streams come from loads and go to stores."""
    arguments: list[Attribute] = []
    names: list[str] = []
    block = Block()
    streams = 0

    def argument(kind: Attribute, name: str) -> BlockArgument:
        arguments.append(kind)
        names.append(name)
        return block.insert_arg(kind, len(block.args))

    operands: list[SSAValue] = []
    for index, kind in enumerate(part.operands):
        if isinstance(kind, ITensorType):
            load = itensor.LoadOp(f"load.in{streams}", argument(_tensor(kind), f"in{streams}"), kind)
            block.add_op(load)
            operands.append(load.result)
            streams += 1
        else:
            operands.append(argument(kind, f"memory{index}"))
    op = part.build(operands)
    op.properties["sym_name"] = StringAttr(_ALONE)
    block.add_op(op)
    results = _stored(op, readers, block)
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


def _stored(op: Operation, readers: tuple[int, ...], block: Block) -> list[SSAValue]:
    """A store for every reader of what the operation makes."""
    results: list[SSAValue] = []
    streamed = [value for value in op.results if isinstance(value.type, ITensorType)]
    results += [value for value in op.results if not isinstance(value.type, ITensorType)]
    for value, count in zip(streamed, readers, strict=True):
        copies: list[SSAValue] = [value]
        if count > 1:
            fork = itensor.ForkOp("fork", value, count)
            block.add_op(fork)
            copies = list(fork.copies)
        for one in copies:
            store = itensor.StoreOp(f"store.{len(results)}", one, _tensor(expect_itensor(value)))
            block.add_op(store)
            results.append(store.result)
    return results


def _tensor(kind: ITensorType) -> TensorType[Any]:
    dtype: Any = kind.dtype
    return TensorType(dtype, list(kind.data_shape()))
