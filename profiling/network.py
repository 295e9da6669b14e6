"""A design as a network of scheduled tasks and channels: all that timing and area need to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from xdsl.dialects.builtin import VectorType

from penstock.compiler.analysis.banks import Access, access_of, accesses_of
from penstock.compiler.dialects import nest, stream
from penstock.compiler.platforms import Resources, total
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.schedule import (
    MemoryShape,
    NestSchedule,
    OperatorLibrary,
    build_memory,
    fifo_area,
    schedule_nest,
)
from penstock.compiler.writers_first import writers_first
from penstock.profiling.protocol import ProfilingError


@dataclass(frozen=True)
class Task:
    """A process: its nests run one after the other.

    `channels` maps the nests' port names to the network's, where they differ. Tasks of one `group` run at the
    same time, groups one after the other.
    """

    name: str
    layer: str
    nests: tuple[NestSchedule, ...]
    channels: Mapping[str, str] = field(default_factory=dict[str, str])
    group: int = 0

    def channel(self, port: str) -> str:
        return self.channels.get(port, port)

    @property
    def takes(self) -> list[str]:
        """The channels that it reads, once for every port."""
        return [self.channels.get(port, port) for nest in self.nests for port in nest.takes]

    @property
    def gives(self) -> list[str]:
        """The channels that it writes, once for every port."""
        return [self.channels.get(port, port) for nest in self.nests for port in nest.gives]

    @property
    def busy(self) -> int:
        """Cycles of one run if it never waits."""
        return sum(n.latency for n in self.nests) + 2 * (len(self.nests) - 1)

    @property
    def area(self) -> Resources:
        """Logic of every nest, and every memory once, though several nests may share it."""
        memories = {m.name: m.area for n in self.nests for m in n.memories}
        return total([n.logic for n in self.nests]) + total(list(memories.values()))


@dataclass(frozen=True)
class TaskChannel:
    """A FIFO of `depth` tokens of `bits`, or `depth` blocks of `words` words of `bits`, each stored as `memory`."""

    name: str
    kind: str
    depth: int
    bits: int
    words: int = 1
    lanes: int = 1
    """Elements of a token, which may be sent in pieces but never in parts of an element."""
    memory: MemoryShape | None = None

    @property
    def shape(self) -> MemoryShape:
        """How one block is stored: where nothing is known of its accesses, as one memory."""
        return self.memory or MemoryShape(self.words, self.bits)

    def area(self, library: OperatorLibrary) -> Resources:
        if self.kind == "stream":
            return fifo_area(library, self.depth, self.bits, self.lanes)
        return build_memory(library, self.name, self.shape, copies=self.depth).area


@dataclass(frozen=True)
class TaskNetwork:
    """Tasks in an order in which every writer precedes its readers but for circles, and the channels between them."""

    tasks: tuple[Task, ...]
    channels: Mapping[str, TaskChannel]

    @property
    def groups(self) -> tuple[TaskNetwork, ...]:
        """The kernels of the design, which run one after the other, each with its own tasks and channels."""
        return self._groups or (self,)

    @cached_property
    def _groups(self) -> tuple[TaskNetwork, ...]:
        """Empty where there is just one: a network that held itself would outlive its use."""
        numbers = sorted({task.group for task in self.tasks})
        if len(numbers) == 1:
            return ()
        ends = self.ends()
        found: list[TaskNetwork] = []
        for number in numbers:
            tasks = tuple([t for t in self.tasks if t.group == number])
            names = {t.name for t in tasks}
            found.append(TaskNetwork(tasks, {n: c for n, c in self.channels.items() if ends[n][0] in names}))
        return tuple(found)

    def with_depths(self, depths: Mapping[str, int]) -> TaskNetwork:
        """The same network with other FIFO depths."""
        of = depths.get
        changed = {n: c if of(n, c.depth) == c.depth else replace(c, depth=depths[n]) for n, c in self.channels.items()}
        return replace(self, channels=changed)

    @cached_property
    def has_circles(self) -> bool:
        """Whether tokens of some task come back to it."""
        return any(len(group) > 1 for group in writers_first(_sources(self.tasks)))

    def ends(self) -> Mapping[str, tuple[str, str]]:
        """(writing task, reading task) of every channel."""
        return self._ends

    @cached_property
    def _ends(self) -> dict[str, tuple[str, str]]:
        writer: dict[str, str] = {}
        reader: dict[str, str] = {}
        for task in self.tasks:
            writer |= dict.fromkeys(task.gives, task.name)
            reader |= dict.fromkeys(task.takes, task.name)
        return {name: (writer[name], reader[name]) for name in self.channels}


def network_of(top: stream.TopOp, library: OperatorLibrary) -> TaskNetwork:
    """Schedule every nest of a stream-level design."""
    channels: dict[str, TaskChannel] = {}
    tasks: list[Task] = []
    for op in top.body.block.ops:
        match op:
            case stream.StreamOp():
                name, token, depth = op.sym_name.data, op.result.type.token, op.result.type.depth.data
                channels[name] = TaskChannel(name, "stream", depth, _token_bits(token), lanes=prod(token.get_shape()))
            case stream.BlocksOp():
                channels[op.sym_name.data] = channel_of(op)
            case stream.TaskOp():
                nests = [schedule_nest(n, library) for n in op.body.block.ops if isinstance(n, nest.NestOp)]
                tasks.append(Task(op.sym_name.data, op.layer.data, tuple(nests), group=op.group.data))
            case _:
                pass
    if not tasks:
        raise ProfilingError(
            "bad-request",
            what="the design has no tasks",
            where=top.sym_name.data,
            hint="profile a lowered design",
        )
    return TaskNetwork(in_order(tasks), channels)


def in_order(tasks: list[Task]) -> tuple[Task, ...]:
    """Writers before readers; tasks that feed each other in a circle stand together."""
    named = {task.name: task for task in tasks}
    return tuple([named[name] for group in writers_first(_sources(tasks)) for name in group])


def _sources(tasks: Sequence[Task]) -> dict[str, set[str]]:
    """The tasks that each reads from."""
    writes = {channel: task.name for task in tasks for channel in task.gives}
    return {task.name: {writes.get(c, task.name) for c in task.takes} - {task.name} for task in tasks}


def channel_of(op: stream.BlocksOp) -> TaskChannel:
    block = op.result.type.block
    accesses = [access_of(a) for a in accesses_of(op.result)]
    return block_of(op.sym_name.data, block.get_shape(), type_bits(block), accesses, op.result.type.count.data)


def block_of(name: str, shape: Sequence[int], element_bits: int, accesses: Sequence[Access], count: int) -> TaskChannel:
    """A block channel, by how its ends meet a block."""
    memory, _ = MemoryShape.of(shape, element_bits, accesses)
    width = memory.moved_bits // element_bits
    return TaskChannel(name, "block", count, memory.moved_bits, -(-prod(shape) // width), memory=memory)


def _token_bits(token: VectorType[Any]) -> int:
    return prod(token.get_shape()) * type_bits(token)
