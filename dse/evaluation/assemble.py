"""Scheduled networks of many designs of one model, fast: every distinct piece is built and scheduled once.

A task's nests depend on its own schedule and stream types only, a converter's on its two types, and so on. So the
parts of every design (`flows.py`) are looked up among the pieces seen before; the nests of a new one are built alone,
between FIFOs of its own, by the builders that lowering has. They are scheduled as the facts that they are: no operation
is made.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.nests import Load, Place, StoreFact
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Platform
from penstock.compiler.program import Program
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_facts
from penstock.compiler.schedule.flatten import BodyMemory
from penstock.compiler.transforms.build_converter_nests import BLOCKS, Conversion, Process
from penstock.compiler.transforms.names import c_name
from penstock.compiler.transforms.pad_dims import Dims, pad_module
from penstock.dse.flow import PIECE, Order, Part
from penstock.dse.flows import Flows
from penstock.profiling.network import Task, TaskChannel, TaskNetwork, in_order


@dataclass(frozen=True)
class _PieceTask:
    suffix: str
    nests: tuple[NestSchedule, ...]


@dataclass(frozen=True)
class _Piece:
    """What one operation of the itensor level becomes: its tasks, and the block channels inside it."""

    tasks: tuple[_PieceTask, ...]
    blocks: tuple[tuple[str, TaskChannel], ...]


class Assembler:
    """Networks of one program's designs on one platform at one clock."""

    def __init__(self, program: Program, platform: Platform, clock_mhz: float) -> None:
        self.program, self.platform = program, platform
        self.library: OperatorLibrary = load_library(platform.operators, platform.check_clock(clock_mhz))
        self._dims = Dims(read_graph(program.module))
        self._flows: dict[Hashable, Flows] = {}
        self._pieces: dict[Hashable, _Piece] = {}
        self._bodies: BodyMemory = {}

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

    def network(self, design: Design) -> TaskNetwork:
        """The same network as lowering the whole design and scheduling it gives."""
        channels: dict[str, TaskChannel] = {}
        tasks: list[Task] = []
        for group, parts in enumerate(self.flows(design).of(design)):
            for part in parts:
                for made in part.outputs:
                    for last in made.last():
                        assert last.reader is not None
                        name = last.reader.channel(last)
                        depth = design.fifo_depths.get(name, design.default_depth)
                        channels[name] = TaskChannel(name, "stream", depth, last.order.bits)
                tasks += self._tasks(part, channels, group)
        return TaskNetwork(in_order(tasks), channels)

    def _tasks(self, part: Part, channels: dict[str, TaskChannel], group: int) -> list[Task]:
        leaving = [last for made in part.outputs for last in made.last()]
        readers = tuple([len(list(made.last())) for made in part.outputs])
        piece = self._pieces.get((part.facts, readers))
        if piece is None:
            try:
                piece = self._pieces[part.facts, readers] = self._piece(part)
            except PenstockError as error:
                # the piece has a name of its own; people know the layer's
                raise PenstockError(
                    code=error.code, what=error.what, where=part.name, limit=error.limit, hint=error.hint
                ) from error
        name = part.name
        for suffix, block in piece.blocks:
            channels[name + suffix] = replace(block, name=name + suffix)
        renamed = {f"{PIECE}{suffix}": name + suffix for suffix, _ in piece.blocks}
        renamed |= {_input_channel(i): part.channel(stream) for i, stream in enumerate(part.inputs)}
        for index, last in enumerate(leaving):
            assert last.reader is not None
            renamed[_output_channel(index)] = last.reader.channel(last)
        return [Task(c_name(name + t.suffix), name, t.nests, renamed, group) for t in piece.tasks]

    def _piece(self, part: Part) -> _Piece:
        """The nests of a part between FIFOs of its own, built by the lowering's own builders, and scheduled."""
        inputs = [_fifo(_input_channel(i), stream.order) for i, stream in enumerate(part.inputs)]
        outputs: list[list[Place]] = []
        count = 0
        for made in part.outputs:
            leaving = range(count, count := count + len(list(made.last())))
            outputs.append([_fifo(_output_channel(i), made.order) for i in leaving])
        built = part.build(inputs, outputs)
        tasks = [_PieceTask(p.suffix.replace("_", ".", 1), (self._schedule(p),)) for p in built.processes]
        blocks = () if built.block is None else ((built.block.name.removeprefix(PIECE), _block(built.block, built)),)
        return _Piece(tuple(tasks), blocks)

    def _schedule(self, process: Process) -> NestSchedule:
        schedule = schedule_facts(process.nest, self.library, self._bodies)
        return replace(schedule, name=f"{process.suffix}.{schedule.name}") if process.suffix else schedule


def _input_channel(index: int) -> str:
    return f"load_in{index}__{PIECE}"


def _output_channel(index: int) -> str:
    return f"{PIECE}__store_{index}"


def _fifo(name: str, order: Order) -> Place:
    return Place(name, "stream", order.kind.element_shape, order.kind.dtype)


def _block(block: Place, built: Conversion) -> TaskChannel:
    """A block is one memory, as wide as its widest access."""
    statements = [s for process in built.processes for s in process.nest.statements]
    slices = [s.result for s in statements if isinstance(s, Load) and s.place is block]
    slices += [s.value for s in statements if isinstance(s, StoreFact) and s.place is block]
    width, dtype = max(value.lanes for value in slices), _scalar(block)
    return TaskChannel(block.name, "block", BLOCKS, width * int(dtype.bitwidth), -(-prod(block.shape) // width))


def _scalar(block: Place) -> Any:
    return block.dtype
