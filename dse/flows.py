"""The parts of a whole design, put together as the passes to the itensor level would: tiled, fused, packed, folded."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO

from xdsl.ir import BlockArgument, SSAValue
from xdsl.printer import Printer

from penstock.compiler.analysis import orders as passing
from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp
from penstock.compiler.analysis.nests import PlaceKind
from penstock.compiler.analysis.parts import part_of
from penstock.compiler.analysis.tasks import Computation, is_reread
from penstock.compiler.design import Design
from penstock.compiler.dialects.itensor_types import LayoutAttr
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.platforms import Platform
from penstock.compiler.transforms.tile_to_kernels import (
    assign_groups,
    check_bindings_of,
    check_layers,
    check_results,
    sources,
    task_body,
)
from penstock.dse.flow import (
    Order,
    Orders,
    Part,
    Planned,
    Stream,
    chunk_part,
    concat_part,
    convert_part,
    load_part,
    store_part,
    task_part,
)


class Flows:
    """The flows of one program's designs on one platform. What was found for one design is not looked for again."""

    def __init__(self, graph: Graph, platform: Platform) -> None:
        self.graph = graph
        self.packs = not platform.has_array_arguments
        self.orders = Orders()
        self.params = frozenset(a for a in graph.arguments if graph.is_param(a))
        self.labels: dict[SSAValue, str] = {argument: graph.name(argument) for argument in graph.arguments}
        self.memory: PlaceKind = "array" if platform.has_array_arguments else "external"
        """Where tensors lie that are loaded and stored."""
        self._bodies = {operation.layer: _text(operation) for operation in graph.operations}
        self._computations: dict[str, Computation] = {}
        self._facts: dict[Hashable, object] = {}
        self._planned: dict[Hashable, Planned] = {}
        self._frames: dict[Hashable, list[_Frame]] = {}
        self._readers: dict[SSAValue, list[Node]] = {}

    def of(self, design: Design) -> list[list[Part]]:
        """The parts of every kernel of a design, in program order."""
        check_layers(design, self.graph)
        frames = self._frames_of(design)
        planned = {operation.layer: self.planned(operation, design) for operation in self.graph.operations}
        plain: set[SSAValue] = set()
        for operation in self.graph.operations:
            operands = planned[operation.layer].operands
            plain |= {v for v, order in zip(operation.inputs, operands, strict=True) if order is None}
        memory = _Memory(design.port_bits if self.packs else 0, dict(self.labels), dict.fromkeys(plain))
        return [
            _Kernel(self, design, planned, frame, memory, "" if position == 0 else f".group{frame.number}").parts()
            for position, frame in enumerate(frames)
        ]

    def planned(self, operation: TensorOp, design: Design) -> Planned:
        kernel = design.kernels[operation.layer]
        bindings = tuple(sorted(kernel.bindings.items()))
        key = (operation.layer, kernel.tile, kernel.unroll, kernel.order, kernel.weights, bindings)
        if key not in self._planned:
            check_bindings_of(operation, design)
            plan = passing.plan_of(operation, design)
            operands: list[Order | None] = []
            reread: list[bool] = []
            for value, indexing_map in zip(operation.inputs, operation.operand_maps, strict=True):
                streamed = value in self.params and kernel.weights != "rom"
                kind = plan.itensor(indexing_map, passing.dtype_of(value), reread=streamed)
                operands.append(self.orders.of(kind) if streamed or value not in self.params else None)
                reread.append(streamed and is_reread(kind, indexing_map, plan))
            result = plan.itensor(operation.result_map, passing.dtype_of(operation.result))
            facts = (self._bodies[operation.layer], plan.steps, plan.unroll, tuple(operands), bindings)
            self._planned[key] = Planned(
                plan=plan,
                computation=self._computation(operation),
                bindings=bindings,
                operands=tuple(operands),
                tensors=tuple([value.type for value in operation.inputs]),
                reread=tuple(reread),
                result=self.orders.of(result),
                facts=self._facts.setdefault(facts, object()),
            )
        return self._planned[key]

    def _computation(self, operation: TensorOp) -> Computation:
        """What an operation computes; equal ones share theirs."""
        text = self._bodies[operation.layer]
        if text not in self._computations:
            maps, dtype = (*operation.operand_maps, operation.result_map), passing.dtype_of(operation.result)
            body = task_body(operation).block
            self._computations[text] = Computation.of(operation.layer, maps, dtype, operation.init, body)
        return self._computations[text]

    def reads(self, value: SSAValue) -> Sequence[Node]:
        """The nodes that read a value."""
        if not self._readers:
            read = (n for n in self.graph.nodes if not isinstance(n, Slice) or n.result.first_use is not None)
            for node in read:
                for source in sources(node):
                    self._readers.setdefault(source, []).append(node)
        return self._readers.get(value, ())

    def _frames_of(self, design: Design) -> list[_Frame]:
        key = tuple(sorted(design.groups.items()))
        if key not in self._frames:
            check_results(self.graph)
            groups = assign_groups(design, self.graph)
            self._frames[key] = [self._frame(groups, number) for number in sorted(set(groups.values()))]
        return self._frames[key]

    def _frame(self, groups: Mapping[SSAValue, int], number: int) -> _Frame:
        nodes = [n for n in self.graph.nodes if groups[n.result] == number]
        slices = [n for n in nodes if isinstance(n, Slice)]
        siblings = {
            n.result: [s for s in slices if s.source is n.source and s.dim == n.dim and s.result.first_use is not None]
            for n in slices
        }
        # all slices of a tensor along one dim are one part, where the first of them stands that somebody reads
        members = [n for n in nodes if not isinstance(n, Slice) or siblings[n.result][:1] == [n]]
        own: dict[SSAValue, None] = {}
        for node in members:
            parts = siblings[node.result] if isinstance(node, Slice) else [node]
            own |= dict.fromkeys(part.result for part in parts)
        read = dict.fromkeys(v for node in members for v in sources(node) if v not in own)
        return _Frame(
            number=number,
            nodes=nodes,
            members=members,
            siblings=siblings,
            imports=[
                *(v for v in self.graph.arguments if v in read),
                *(v for v in read if not isinstance(v, BlockArgument)),
            ],
            returned=[(i, v) for i, v in enumerate(self.graph.returned) if v in own],
            crossing=[v for v in own if any(groups[n.result] != number for n in self.reads(v))],
        )


@dataclass(frozen=True, eq=False)
class _Frame:
    """What a kernel has whatever the schedules of its layers are."""

    number: int
    nodes: Sequence[Node]
    members: Sequence[Node]
    """The nodes that become parts."""
    siblings: Mapping[SSAValue, Sequence[Slice]]
    """Of the result of a slice: all slices that are one part with it."""
    imports: Sequence[SSAValue]
    """Tensors from elsewhere: arguments in their order, then what earlier kernels made."""
    returned: Sequence[tuple[int, SSAValue]]
    crossing: Sequence[SSAValue]
    """What later kernels read."""

    @cached_property
    def exports(self) -> list[SSAValue]:
        return [*(value for _, value in self.returned), *self.crossing]

    @cached_property
    def rearranges(self) -> bool:
        return not all(isinstance(node, TensorOp) for node in self.nodes)


def _text(operation: TensorOp) -> str:
    """What an operation computes along which dims, whatever it is called."""
    out = StringIO()
    printer = Printer(stream=out)
    printer.print_region(task_body(operation))
    maps = (*operation.operand_maps, operation.result_map)
    types = [v.type for v in (*operation.inputs, operation.result)]
    facts = (operation.trips, operation.iterators, operation.init, maps, types)
    return f"{out.getvalue()} {' '.join(map(str, facts))}"


@dataclass
class _Memory:
    """What one kernel leaves to the next: what tensors are called, and how those in external memory lie there."""

    port_bits: int
    names: dict[SSAValue, str]
    layouts: dict[SSAValue, LayoutAttr | None]


@dataclass
class _Kernel:
    """One kernel under construction. `waiting` holds the streams that the readers of a value are about to take."""

    flows: Flows
    design: Design
    planned: Mapping[str, Planned]
    """By layer."""
    frame: _Frame
    memory: _Memory
    suffix: str
    done: list[Part] = field(default_factory=list[Part])
    readers: dict[SSAValue, list[Order]] = field(default_factory=dict[SSAValue, list[Order]])
    passing: passing.GroupOrders | None = None
    made: dict[SSAValue, Order] = field(default_factory=dict[SSAValue, Order])
    waiting: dict[tuple[SSAValue, Order], list[Stream]] = field(
        default_factory=dict[tuple[SSAValue, Order], list[Stream]]
    )

    def parts(self) -> list[Part]:
        params, members = self.flows.params, self.frame.members
        if self.frame.rearranges:
            self.passing = passing.GroupOrders(self.design, self.flows.graph, self.frame.nodes)
        wanted = [self._wanted(node) for node in members]
        streamed: dict[SSAValue, Order] = {}
        for pairs in wanted:
            streamed |= {value: order for value, order in pairs if value in params}
            for value, order in reversed(pairs):  # as the passes find the uses of a value, the latest first
                if value not in params:
                    self.readers.setdefault(value, []).append(order)
        for value, order in streamed.items():
            self._lay_out(value, order)
        self._imports()
        for node, pairs in zip(members, wanted, strict=True):
            self._member(node, pairs)
        for index, value in self.frame.returned:
            self._store(f"store.{index}", str(index), value)
        for value in self.frame.crossing:
            self._store(f"spill.{self.memory.names[value]}", self.memory.names[value], value)
        return self.done

    def _imports(self) -> None:
        """A load for every tensor that comes from elsewhere."""
        for value in self.frame.imports:
            if orders := self.readers.get(value):
                self._lay_out(value, orders[0])
                name = f"{self.memory.names[value]}{self.suffix}"
                loaded = self._load(f"load.{name}", value, orders[0])
                self._distribute(name, value, loaded, orders)

    # -- nodes of the graph

    @property
    def _passing(self) -> passing.GroupOrders:
        assert self.passing is not None
        return self.passing

    def _wanted(self, node: Node) -> list[tuple[SSAValue, Order]]:
        """The streams that a node takes, in the order of its operands."""
        of = self.flows.orders.of
        match node:
            case TensorOp():
                operands = self.planned[node.layer].operands
                return [(v, order) for v, order in zip(node.inputs, operands, strict=True) if order is not None]
            case Slice():
                return [(node.source, of(self._passing.cut(node)))]
            case Concat():
                sizes = [size for _, size in node.parts]
                return [(v, of(self._passing.part(node, n))) for v, n in zip(node.sources, sizes, strict=True)]
            case Reshape():
                return [(node.source, of(self._passing.reshaped(node)[0]))]

    def _member(self, node: Node, wanted: Sequence[tuple[SSAValue, Order]]) -> None:
        of, names = self.flows.orders.of, self.memory.names
        match node:
            case TensorOp():
                self._task(node, wanted)
            case Slice():
                stream, siblings = self._take(*wanted[0]), self.frame.siblings[node.result]
                name = f"chunk.{names[node.source]}.{node.dim}"
                orders = [of(part_of(stream.order.kind, s.dim, s.size)) for s in siblings]
                part = self._add(chunk_part(name, stream, node.dim, [s.start for s in siblings], orders))
                names |= {s.result: f"{name}.part{i}" for i, s in enumerate(siblings)}
                for one, made in zip(siblings, part.outputs, strict=True):
                    self._finish(one.result, made)
            case Concat():
                names[node.result] = f"concat.{names[node.sources[0]]}"
                streams = [self._take(*pair) for pair in wanted]
                order = of(self._passing.of(node.result))
                self._finish(node.result, self._made(concat_part(names[node.result], streams, node.dim, order)))
            case Reshape():
                shape = "x".join(str(n) for n in tensor_type(node.result).get_shape())
                names[node.result] = f"{names[node.source]}.as.{shape}"
                stream = self._take(*wanted[0])
                self._finish(node.result, stream.under(of(self._passing.reshaped(node)[1])))

    def _take(self, value: SSAValue, order: Order) -> Stream:
        """The stream of one operand; a parameter has a load of its own."""
        if value in self.flows.params:
            return self._load(f"load.{self.memory.names[value]}", value, order)
        return self.waiting[value, order].pop(0)

    def _task(self, node: TensorOp, wanted: Sequence[tuple[SSAValue, Order]]) -> None:
        planned = self.planned[node.layer]
        self.memory.names[node.result] = node.layer
        streams: list[Stream] = []
        for position, (value, order) in enumerate(zip(node.inputs, planned.operands, strict=True)):
            if order is not None:
                param = value in self.flows.params
                own = self._load(f"load.{node.layer}.{position}", value, order) if param else None
                streams.append(own or self.waiting[value, order].pop(0))
        part = task_part(node.layer, planned, streams)
        self._finish(node.result, self._made(part))

    def _finish(self, value: SSAValue, stream: Stream) -> None:
        """Hand what a node made to its readers, and to the stores."""
        self.made[value] = stream.order
        leaving = self.frame.exports.count(value)
        wanted = [*self.readers.get(value, ()), *([stream.order] * leaving)]
        self._distribute(self.memory.names[value], value, stream, wanted)

    def _distribute(self, name: str, value: SSAValue, stream: Stream, wanted: Sequence[Order]) -> None:
        """Give every reader of `value` a stream of the order that it wants; equal conversions are shared."""
        order = stream.order
        converted = [other for other in dict.fromkeys(wanted) if other is not order]
        plain = wanted.count(order)
        copies = stream.fork(plain + len(converted))
        self.waiting[value, order] = copies[:plain]
        for index, (other, copy) in enumerate(zip(converted, copies[plain:], strict=True)):
            suffix = f".{index}" if len(converted) > 1 else ""
            made = self._made(convert_part(f"convert.{name}{suffix}", copy, other))
            self.waiting[value, other] = made.fork(wanted.count(other))

    # -- external memory

    def _lay_out(self, value: SSAValue, order: Order) -> None:
        """The first stream of a tensor decides how it lies in external memory; a ROM's does not lie there."""
        if value not in self.memory.layouts:
            bits = self.memory.port_bits
            self.memory.layouts[value] = self.flows.orders.layout(order, bits) if bits else None

    def _load(self, name: str, value: SSAValue, order: Order) -> Stream:
        access = self.flows.orders.load(order, self.memory.layouts[value])
        loaded = self._made(load_part(name, access, self.flows.memory))
        if access.outside is order:
            return loaded
        return self._made(convert_part(f"unpack.{name.removeprefix('load.')}", loaded, order))

    def _store(self, name: str, label: str, value: SSAValue) -> None:
        """A tensor leaves in the order that it is made in."""
        order = self.made[value]
        bits = self.memory.port_bits
        layout = self.memory.layouts[value] = self.flows.orders.layout(order, bits) if bits else None
        stream = self.waiting[value, order].pop()
        access = self.flows.orders.store(order, layout)
        if access.outside is not order:
            stream = self._made(convert_part(f"pack.{label}", stream, access.outside))
        self._add(store_part(name, stream, access, self.flows.memory))

    def _made(self, part: Part) -> Stream:
        return self._add(part).outputs[0]

    def _add(self, part: Part) -> Part:
        self.done.append(part)
        return part
