"""Lowers itensor kernels to channels and processes: itensors become FIFOs, tasks become nests.

A compute task is one nest where loading, computing and storing overlap; a converter is one over a line buffer, or a
writer and a reader on a block channel; loads and stores are nests against external memory. `compiler/plan` reads the
kernels' parts and builds their nests as facts, which are written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp, NoneAttr, StringAttr, TensorType, VectorType, i32
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from penstock.compiler.analysis.graph import FEEDS
from penstock.compiler.analysis.nests import NestFacts, Place
from penstock.compiler.analysis.packing import layout_of
from penstock.compiler.design import Design
from penstock.compiler.dialects import itensor, stream
from penstock.compiler.dialects.counts import LENGTHS, LengthsAttr
from penstock.compiler.dialects.itensor import LayoutAttr
from penstock.compiler.dialects.stream import BlocksType, StreamType
from penstock.compiler.dialects.types import tensor_type, vector_type
from penstock.compiler.names import Names, c_name, hint_of
from penstock.compiler.plan import names
from penstock.compiler.plan.converter_nests import BLOCKS
from penstock.compiler.plan.nests import build_part, fifo, memory, roms
from penstock.compiler.plan.parts import Computing, Loading, Part, Storing, Stream, channel_inside
from penstock.compiler.plan.read import read_kernels
from penstock.compiler.platforms import load_platform
from penstock.compiler.transforms.passes import Level, ModulePass
from penstock.compiler.transforms.write_nests import write_nests


@dataclass(frozen=True)
class LowerToStreams(ModulePass):
    """The pass. FIFO depths come from the design, by channel name."""

    name: ClassVar[str] = "lower-to-streams"
    takes: ClassVar[Level] = "itensor"

    design: Design
    top_name: str = "penstock_top"

    def apply(self, module: ModuleOp) -> ModuleOp:
        function = next(op for op in module.ops if isinstance(op, func.FuncOp))
        return _Lowering(self.design, self.top_name, function).run()


@dataclass
class _Lowering:
    """Channels first, then tasks in program order. `fifos` are what streams become that are popped in the end."""

    design: Design
    top_name: str
    function: func.FuncOp
    channels: list[Operation] = field(default_factory=list[Operation])
    tasks: list[Operation] = field(default_factory=list[Operation])
    fifos: dict[Stream, Place] = field(default_factory=dict[Stream, Place])
    places: dict[Place, SSAValue] = field(default_factory=dict[Place, SSAValue])
    memories: dict[SSAValue, list[Place]] = field(default_factory=dict[SSAValue, "list[Place]"])
    outputs: list[Place] = field(default_factory=list[Place])
    top: Block = field(default_factory=Block)
    top_names: list[str] = field(default_factory=list[str])
    top_kinds: list[str] = field(default_factory=list[str])
    top_layouts: list[LayoutAttr | None] = field(default_factory=list["LayoutAttr | None"])
    loading: dict[str, list[tuple[int, NestFacts]]] = field(default_factory=dict[str, "list[tuple[int, NestFacts]]"])
    """The nests of each port's task in this kernel, with when what they load is wanted."""
    rank: dict[Part, int] = field(default_factory=dict[Part, int])

    def run(self) -> ModuleOp:
        for argument in self.function.body.block.args:
            if self._attribute(argument, "penstock.kind") == "input":  # a port each, read or not
                layout = layout_of(self.function.arg_attrs, argument.index)
                self.memories[argument] = self._memory(self._name(argument), "input", argument.type, layout)
        terminator = self.function.body.block.last_op
        assert terminator is not None
        self.outputs = [
            self._memory(names.result_name(i), "output", value.type, layout_of(self.function.res_attrs, i))[0]
            for i, value in enumerate(terminator.operands)
        ]
        kernels = [op for op in self.function.body.block.ops if isinstance(op, itensor.KernelOp)]
        platform = load_platform(self.design.platform)
        for number, parts in enumerate(read_kernels(kernels, self.design, platform)):
            hardware = [part for part in parts if not part.free]
            self.loading, before = {}, len(self.tasks)
            for part in hardware:
                for made in part.outputs:
                    for end in made.ends():
                        self._channel(end)
            for part in hardware:
                self._lower(part, number)
            loading: list[Operation] = []
            for port, nests in self.loading.items():
                body = Region(Block(write_nests([one for _, one in sorted(nests, key=itemgetter(0))], self.places)))
                loading.append(stream.TaskOp(port, names.shared_port_name(port), body, number))
            self.tasks[before:before] = loading  # C++ runs tasks in this order: loads come before their readers
        if isinstance(lengths := self.function.attributes.get(LENGTHS), LengthsAttr):
            self._numbers(stream.LENGTHS, len(lengths.data))
        feeds = {} if platform.has_array_arguments else self._feeds()
        if feeds:
            self._list_of_calls()
        self.top.add_ops([*self.channels, *self.tasks])
        taken, kinds = (ArrayAttr([StringAttr(s) for s in texts]) for texts in (self.top_names, self.top_kinds))
        return ModuleOp([stream.TopOp(self.top_name, taken, kinds, Region(self.top), self.top_layouts, feeds)])

    def _channel(self, end: Stream) -> None:
        kind, name = end.order.kind, end.channel
        depth = self.design.fifo_depths.get(name, self.design.default_depth)
        op = stream.StreamOp(name, StreamType.of(VectorType(kind.dtype, kind.element_shape), depth))
        self.fifos[end] = fifo(name, end.order)
        self._outside(op, name, self.fifos[end])

    def _lower(self, part: Part, group: int) -> None:
        layer, memories = self._memories(part)
        inputs = [self.fifos[stream] for stream in part.inputs]
        outputs = [[self.fifos[end] for end in made.ends()] for made in part.outputs]
        built = build_part(part.name, part.does, inputs, outputs, memories)
        if (block := built.block) is not None:
            count = self.design.fifo_depths.get(block.name, BLOCKS)
            op = stream.BlocksOp(block.name, BlocksType.of(MemRefType(block.dtype, block.shape), count))
            self._outside(op, c_name(block.name), block)
        for inner in built.fifos:
            name = channel_inside(part.label, inner.name)
            depth = self.design.fifo_depths.get(name, self.design.default_depth)
            kind = StreamType.of(VectorType(inner.dtype, inner.shape), depth)
            self._outside(stream.StreamOp(name, kind), name, inner)
        for process in built.processes:
            if process.stripe is not None and part.ports:
                nest = replace(process.nest, name=f"{part.label}{process.suffix}")
                self.loading.setdefault(part.ports[process.stripe], []).append((part.turn, nest))
                continue
            body = Region(Block(write_nests([process.nest], self.places)))
            self.tasks.append(stream.TaskOp(part.label + process.suffix, layer, body, group))

    def _outside(self, op: stream.StreamOp | stream.BlocksOp, hint: str, place: Place) -> None:
        """A channel, which stands outside the tasks."""
        op.result.name_hint = hint_of(hint)
        self.channels.append(op)
        self.places[place] = op.result

    # -- memories

    def _memories(self, part: Part) -> tuple[str, list[Place]]:
        """Where the part's tensors lie, and what people call the part."""
        match part.does:
            case Loading(transfer):
                (source,) = part.tensors
                layer = self._name(source) if isinstance(source, BlockArgument) else part.name
                place = self.memories.get(source)
                if place is None:  # a streamed parameter: a port for each task that reads it
                    place = self._memory(layer, "parameter", source.type, transfer.layout)
                return layer, place
            case Storing(transfer):
                (result,) = part.tensors
                use = next(iter(result.uses))
                if isinstance(use.operation, func.ReturnOp):
                    return names.result_name(use.index), [self.outputs[use.index]]
                name = names.spilled_name(part.name)
                self.memories[result] = self._memory(name, "buffer", result.type, transfer.layout)
                return part.name, self.memories[result]
            case Computing() as does:
                return part.name, roms(does, [self._name(parameter) for parameter in part.tensors])
            case _:
                return part.name, []

    def _memory(self, name: str, kind: str, tensor: Attribute, layout: LayoutAttr | None) -> list[Place]:
        """An argument of the top, or one a bank of a tensor that is striped."""
        if layout is None or (whole := layout.layout).stripes == 1 or whole.stripe is not None:
            return [self._argument(name, kind, tensor, layout)]
        grid, places = tensor_type(tensor).get_shape(), list[Place]()
        for stripe in range(whole.stripes):
            share = VectorType(_scalar(tensor), (whole.lanes_of_stripe,))
            one = LayoutAttr.of(whole.part(stripe))
            places.append(self._argument(names.stripe_name(name, stripe), kind, TensorType(share, grid), one))
        return places

    def _argument(self, name: str, kind: str, tensor: Attribute, layout: LayoutAttr | None) -> Place:
        self.top_names.append(name)
        self.top_kinds.append(kind)
        self.top_layouts.append(layout)
        arrays = load_platform(self.design.platform).has_array_arguments
        space, lies = (stream.ON_CHIP, "array") if arrays else (NoneAttr(), "external")
        place = memory(name, lies, tensor_type(tensor))
        argument = self.top.insert_arg(MemRefType(place.dtype, place.shape, memory_space=space), len(self.top.args))
        argument.name_hint = hint_of(c_name(name))
        self.places[place] = argument
        return place

    # -- several calls by one start

    def _feeds(self) -> dict[str, str]:
        """Outputs by the inputs that they feed; none where one of them lies otherwise than it is read."""
        by_name = {name: index for index, name in enumerate(self.top_names)}
        found: dict[str, str] = {}
        for index, described in enumerate(self.function.res_attrs or ()):
            if (given := described.data.get(FEEDS)) is None:
                continue
            assert isinstance(given, StringAttr)
            made = by_name[names.result_name(index)]
            if (read := by_name.get(given.data)) is None:  # a tensor in several banks
                return {}
            ends = self.top.args[made], self.top.args[read]
            if (
                any(end.first_use is None for end in ends)
                or ends[0].type != ends[1].type
                or self.top_layouts[made] != self.top_layouts[read]
            ):
                return {}
            found[self.top_names[made]] = given.data
        return found

    def _list_of_calls(self) -> None:
        """The last argument: how many calls there are, and where each of their memories begins."""
        described = zip(self.top.args, self.top_kinds, strict=True)
        moved = sum(kind in ("input", "output") and a.first_use is not None for a, kind in described)
        self._numbers(stream.CALLS, 1 + moved)

    def _numbers(self, kind: str, numbers: int) -> None:
        """A memory of numbers that say what a call is."""
        self.top_names.append(Names(self.top_names).take(kind))
        self.top_kinds.append(kind)
        self.top_layouts.append(None)
        self.top.insert_arg(MemRefType(i32, (numbers,)), len(self.top.args)).name_hint = kind

    def _name(self, argument: SSAValue) -> str:
        return self._attribute(argument, "penstock.name")

    def _attribute(self, argument: SSAValue, key: str) -> str:
        assert isinstance(argument, BlockArgument)
        assert self.function.arg_attrs is not None
        value = self.function.arg_attrs.data[argument.index].data[key]
        assert isinstance(value, StringAttr)
        return value.data


def _scalar(tensor: Attribute) -> Attribute:
    """What the words of a packed tensor are made of."""
    return vector_type(tensor_type(tensor).element_type).element_type
