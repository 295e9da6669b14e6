"""Lowers a task program to channels and processes. Equal instances share the facts that they are written from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, NoneAttr, StringAttr, VectorType
from xdsl.ir import Block, Operation, Region, SSAValue

from penstock.compiler.analysis.nests import Place
from penstock.compiler.design import Design
from penstock.compiler.dialects import stream
from penstock.compiler.dialects.injected import IN_WORDS, BodyLanguage, Injected
from penstock.compiler.dialects.itensor import LayoutAttr
from penstock.compiler.dialects.stream import StreamType
from penstock.compiler.errors import PenstockError
from penstock.compiler.layout import Layout
from penstock.compiler.names import c_name, hint_of
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.tasks.circles import circular_ports
from penstock.compiler.tasks.lowering.nests import TaskNests, build_nests, tensor_place
from penstock.compiler.tasks.lowering.scalars import shape_of, type_of
from penstock.compiler.tasks.mapping.apply import elements
from penstock.compiler.tasks.network import Instances, TaskInstance
from penstock.compiler.tasks.opened import network_of
from penstock.compiler.tasks.tree import Put, TaskBody, walk
from penstock.compiler.tasks.words import tensor_words
from penstock.compiler.transforms.passes import Level, ModulePass
from penstock.compiler.transforms.write_nests import write_nests
from penstock.compiler.writers_first import writers_first

TOP = "penstock_top"


@dataclass(frozen=True)
class LowerTasks(ModulePass):
    """The pass. FIFO depths come from the design, then from the program, then from the design's default."""

    name: ClassVar[str] = "lower-tasks"
    takes: ClassVar[Level] = "tasks"

    design: Design

    def apply(self, module: ModuleOp) -> ModuleOp:
        network = elements(network_of(module), self.design.mapping)
        return write_instances(network, network.instances, self.design)


def write_instances(network: Instances, instances: tuple[TaskInstance, ...], design: Design) -> ModuleOp:
    """Some instances of a program, with all channels that they meet, as a module of the stream level."""
    arrays = load_platform(design.platform).has_array_arguments
    writer = _Writer(network, design, arrays)
    return writer.module(instances)


def nests_of(network: Instances, *, arrays: bool) -> Iterator[tuple[TaskBody, TaskNests]]:
    """Every body of a program as nests."""
    words = tensor_words(network)
    streams = {name: one.kind for name, one in network.program.streams.items()}
    tensors = {name: one.kind for name, one in network.program.tensors.items()}
    circles = circular_ports(network)
    for body in network.bodies:
        circle = circles.get(body, frozenset())
        yield body, build_nests(network.source, body, words, streams, tensors, arrays=arrays, circle=circle)


def body_language(platform: Platform) -> BodyLanguage:
    """What bodies that are written by hand are written in, to be built on a platform."""
    return "systemverilog" if platform.family.route == "open" else "cpp"


def _writers_first(instances: tuple[TaskInstance, ...]) -> list[TaskInstance]:
    """In the order of the data, which C simulation runs them in."""
    writers = {one.channels[s.port]: one for one in instances for s in walk(one.body.statements) if isinstance(s, Put)}
    sources = {one: {writers.get(name, one) for name in one.channels.values()} - {one} for one in instances}
    return [one for group in writers_first(sources) for one in group]


class _Writer:
    def __init__(self, network: Instances, design: Design, arrays: bool) -> None:
        self.network, self.design, self.arrays = network, design, arrays
        self.nests: Mapping[TaskBody, TaskNests] = dict(nests_of(network, arrays=arrays))
        self.words = tensor_words(network)

    def module(self, instances: tuple[TaskInstance, ...]) -> ModuleOp:
        top = Block()
        tensors, kinds, layouts = dict[str, SSAValue](), list[str](), list["LayoutAttr | None"]()
        for name in (*self.network.inputs, *self.network.outputs):
            kind, word = self.network.program.tensors[name].kind, self.words.get(name)
            place = tensor_place(name, kind, word, arrays=self.arrays)
            space = stream.ON_CHIP if self.arrays else NoneAttr()
            argument = top.insert_arg(MemRefType(place.dtype, place.shape, memory_space=space), len(top.args))
            argument.name_hint = hint_of(c_name(name))
            tensors[name] = argument
            kinds.append("input" if name in self.network.inputs else "output")
            packed = None if word is None or self.arrays else Layout(kind.shape, word)
            layouts.append(LayoutAttr.of(packed) if packed else None)
        channels = {name: self._channel(name) for one in instances for name in one.channels.values()}
        results = {name: op.result for name, op in channels.items()}
        tasks = [self._task(one, tensors, results) for one in _writers_first(instances)]
        top.add_ops([*channels.values(), *tasks])
        names, labels = (ArrayAttr([StringAttr(s) for s in texts]) for texts in (tensors, kinds))
        return ModuleOp([stream.TopOp(TOP, names, labels, Region(top), layouts)])

    def _channel(self, name: str) -> stream.StreamOp:
        channel = self.network.channels[name]
        depth = self.design.fifo_depths.get(name, channel.depth or self.design.default_depth)
        token = VectorType(type_of(channel.kind.dtype), list(shape_of(channel.kind)))
        op = stream.StreamOp(name, StreamType.of(token, depth))
        op.result.name_hint = hint_of(c_name(name))
        return op

    def _task(self, one: TaskInstance, tensors: Mapping[str, SSAValue], channels: Mapping[str, SSAValue]) -> Operation:
        made = self.nests[one.body]
        places: dict[Place, SSAValue] = {place: channels[one.channels[port]] for port, place in made.ports.items()}
        places |= {place: tensors[name] for name, place in made.tensors.items()}
        injected = None if one.injected is None else self._injected(one.injected, made)
        return stream.TaskOp(one.name, one.task.name, Region(Block(write_nests(made.nests, places))), 0, injected)

    def _injected(self, body: Injected, made: TaskNests) -> StringAttr:
        """A body written by hand that this platform's route can build, for a task that is one pipeline."""
        platform = load_platform(self.design.platform)
        wanted = body_language(platform)
        if body.language != wanted:
            raise PenstockError(
                code="no-such-body", where=f"use of {body.name}", what=f"{body.name} is {IN_WORDS[body.language]}, "
                f"and {platform.name} is built of {IN_WORDS[wanted]}",
                limit="a body written by hand is never translated",
                hint=f"choose another body, give one in {IN_WORDS[wanted]}, or take a platform of its route",
            )  # fmt: skip
        if len(made.nests) != 1:
            raise PenstockError(
                code="no-such-body", what=f"the task has {len(made.nests)} loops, one after the other",
                where=f"use of {body.name}", limit="a contract has one II and one depth",
                hint="let the task be one nest of loops, or give each loop a task of its own",
            )  # fmt: skip
        return body.attribute()
