"""Scheduled networks of many designs of one model, fast: every distinct piece is built and scheduled once.

A task's nests depend on its own schedule and stream types only, a converter's on its two types, and so on. So the
parts of every design, which `compiler/plan` knows, are looked up among the pieces seen before; the nests of a new one
are built alone, between FIFOs of its own. They are scheduled as the facts that they are: no operation is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.nests import Place, PlaceKind
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.plan.computations import KnownComputations
from penstock.compiler.plan.converter_nests import BLOCKS, Process
from penstock.compiler.plan.names import block_name, channel_name, result_name, shared_port_name
from penstock.compiler.plan.nests import build_part, fifo, memory, roms
from penstock.compiler.plan.parts import Computing, Does, Loading, Part, Storing, channel_inside
from penstock.compiler.plan.planner import Planner
from penstock.compiler.platforms import Platform
from penstock.compiler.program import Program
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule import NestSchedule, OperatorLibrary, load_library, schedule_facts
from penstock.compiler.schedule.flatten import BodyMemory
from penstock.compiler.transforms.pad_dims import Dims
from penstock.profiling.network import Task, TaskChannel, TaskNetwork, block_of, in_order

_PIECE = "piece"
"""What a part is called while it is looked at alone."""
_AT_HAND = 6
"""Designs: a search asks for what it looks at more than once."""


@dataclass(frozen=True)
class _PieceTask:
    suffix: str
    nests: tuple[NestSchedule, ...]
    stripe: int | None


@dataclass(frozen=True)
class _Piece:
    """What a part becomes: its tasks, and the block channel and the FIFOs inside it."""

    tasks: tuple[_PieceTask, ...]
    block: TaskChannel | None
    fifos: tuple[TaskChannel, ...]


@dataclass(frozen=True)
class _PortNest:
    """A nest of a task that loads share: when its turn comes, and its channels' names."""

    turn: int
    schedule: NestSchedule
    renamed: Mapping[str, str]


class Assembler:
    """Networks of one program's designs on one platform at one clock."""

    def __init__(self, program: Program, platform: Platform, clock_mhz: float, dims: Dims | None = None) -> None:
        self.program, self.platform = program, platform
        self.library: OperatorLibrary = load_library(platform.operators, platform.check_clock(clock_mhz))
        self._dims = dims or Dims(read_graph(program.module))
        self._planners: dict[Hashable, Planner] = {}
        self._known = KnownComputations()
        self._memory: PlaceKind = "array" if platform.has_array_arguments else "external"
        self._pieces: dict[Hashable, _Piece] = {}
        self._bodies: BodyMemory = {}
        self._port_nests: dict[Hashable, tuple[tuple[NestSchedule, ...], object]] = {}
        self._latest = deque[tuple[Design, TaskNetwork]](maxlen=_AT_HAND)

    def declared_depths(self, _: Design) -> dict[str, int]:
        """A model's channels are all the tool's to size."""
        return {}

    @property
    def pieces(self) -> int:
        """How many distinct pieces have been lowered so far."""
        return len(self._pieces)

    def planner(self, design: Design) -> Planner:
        """Of the program as the design pads it."""
        sizes = self._dims.padded(design)
        key = tuple(sorted(sizes.items()))
        if key not in self._planners:
            self._planners[key] = Planner(self._dims.padded_graph(sizes), self.platform, self._known)
        return self._planners[key]

    def network(self, design: Design) -> TaskNetwork:
        """The same network as lowering the whole design and scheduling it gives; at hand for the latest few designs."""
        without = replace(design, fifo_depths={}, dies={}, memories={}, allocated_for="")
        found = next((network for one, network in tuple(self._latest) if one == without), None)
        if found is None:
            found = self._network(without)
            self._latest.appendleft((without, found))
        return found.with_depths(design.fifo_depths) if design.fifo_depths else found

    def _network(self, design: Design) -> TaskNetwork:
        channels: dict[str, TaskChannel] = {}
        tasks: list[Task] = []
        for group, kernel in enumerate(self.planner(design).plan(design).kernels):
            loading: dict[str, list[_PortNest]] = {}
            for part in kernel.parts:
                if not part.free:
                    tasks += self._tasks(part, design, channels, group, loading)
            tasks += [self._port_task(port, nests, group) for port, nests in loading.items()]
        return TaskNetwork(in_order(tasks), channels)

    def _tasks(
        self,
        part: Part,
        design: Design,
        channels: dict[str, TaskChannel],
        group: int,
        loading: dict[str, list[_PortNest]],
    ) -> list[Task]:
        """The tasks of a part; what it pushes into and hands over inside goes to `channels`.

        What it loads through ports that others load through too goes to `loading`, by port.
        """
        ends = [list(made.ends()) for made in part.outputs]
        readers = tuple([len(one) for one in ends])
        piece = self._pieces.get((part.does, readers))
        if piece is None:
            try:
                piece = self._pieces[part.does, readers] = self._piece(part, readers)
            except PenstockError as error:
                # the piece has a name of its own; people know the layer's
                raise PenstockError(
                    code=error.code, what=error.what, where=part.name, limit=error.limit, hint=error.hint
                ) from error
        renamed = {_input_channel(i): stream.channel for i, stream in enumerate(part.inputs)}
        for index, end in enumerate(end for one in ends for end in one):
            name = renamed[_output_channel(index)] = end.channel
            order = end.order
            lanes = prod(order.kind.element_shape)
            channels[name] = TaskChannel(name, "stream", design.default_depth, order.bits, lanes=lanes)
        if piece.block is not None:
            name = renamed[piece.block.name] = block_name(part.name)
            channels[name] = replace(piece.block, name=name, depth=BLOCKS)
        for inner in piece.fifos:
            name = renamed[inner.name] = channel_inside(part.label, inner.name)
            channels[name] = replace(inner, name=name, depth=design.default_depth)
        tasks: list[Task] = []
        for one in piece.tasks:
            own = renamed
            if one.stripe is not None and piece.fifos:  # all banks have the schedule of the first
                own = {piece.fifos[0].name: renamed[piece.fifos[one.stripe].name]}
            if one.stripe is not None and part.ports:
                nest = _PortNest(part.turn, one.nests[0], own)
                loading.setdefault(part.ports[one.stripe], []).append(nest)
            else:
                tasks.append(Task(part.label + one.suffix, part.name, one.nests, own, group))
        return tasks

    def _port_task(self, port: str, nests: list[_PortNest], group: int) -> Task:
        """One nest after the other. Ports that load alike have the same objects: their times are found once."""
        nests = sorted(nests, key=lambda nest: nest.turn)
        schedules = tuple([nest.schedule for nest in nests])
        key = tuple(map(id, schedules))
        if key not in self._port_nests:
            numbered = tuple([_numbered(schedule, place) for place, schedule in enumerate(schedules)])
            self._port_nests[key] = (numbered, schedules)  # which are kept, so that their identities stay theirs
        renamed = {_of_nest(place, local): name for place, n in enumerate(nests) for local, name in n.renamed.items()}
        return Task(port, shared_port_name(port), self._port_nests[key][0], renamed, group)

    def _piece(self, part: Part, readers: Sequence[int]) -> _Piece:
        """The nests of a part between FIFOs of its own, scheduled."""
        inputs = [fifo(_input_channel(i), stream.order) for i, stream in enumerate(part.inputs)]
        outputs: list[list[Place]] = []
        count = 0
        for order, number in zip(part.does.makes, readers, strict=True):
            outputs.append([fifo(_output_channel(i), order) for i in range(count, count + number)])
            count += number
        built = build_part(_PIECE, part.does, inputs, outputs, self._memories(part.does))
        first = next((self._schedule(p) for p in built.processes if p.stripe == 0), None)
        tasks = [
            _PieceTask(p.suffix, (self._schedule(p) if p.stripe is None or first is None else first,), p.stripe)
            for p in built.processes
        ]
        sizes = [(f.name, prod(f.shape), type_bits(f.dtype)) for f in built.fifos]
        fifos = [TaskChannel(name, "stream", 2, lanes * bits, lanes=lanes) for name, lanes, bits in sizes]
        return _Piece(tuple(tasks), None if built.block is None else _block(built.block), tuple(fifos))

    def _memories(self, does: Does) -> list[Place]:
        """Where the tensors of a part lie."""
        match does:
            case Loading(transfer):
                return [memory(f"memory{i}", self._memory, kind) for i, kind in enumerate(transfer.tensors)]
            case Storing(transfer):
                return [memory(result_name(0), self._memory, transfer.tensor)]
            case Computing():
                return roms(does)
            case _:
                return []

    def _schedule(self, process: Process) -> NestSchedule:
        schedule = schedule_facts(process.nest, self.library, self._bodies)
        return replace(schedule, name=f"{process.suffix}.{schedule.name}") if process.suffix else schedule


def _numbered(schedule: NestSchedule, place: int) -> NestSchedule:
    """With names of its own for its channels and its memory, by its place in a task."""
    ports = tuple([replace(port, channel=_of_nest(place, port.channel)) for port in schedule.ports])
    return replace(schedule, name=_of_nest(place, schedule.name), ports=ports)


def _of_nest(place: int, name: str) -> str:
    return f"{place}.{name}"


def _input_channel(index: int) -> str:
    return channel_name(f"load_in{index}", _PIECE)


def _output_channel(index: int) -> str:
    return channel_name(_PIECE, f"store_{index}")


def _block(block: Place) -> TaskChannel:
    return block_of(block.name, block.shape, type_bits(block.dtype), block.elsewhere, BLOCKS)
