"""The parts of one kernel: loads of what it reads, the nodes of its group, stores of what leaves it.

Tensors between the nodes of a kernel are streams (StreamTensor, section 4.2). Where the order that a value is made in
is the one that its reader wants, the two are connected; elsewhere a converter stands between, one for all readers of an
equal order. A stream has one reader, so several get a fork.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Concat, Graph, Node, Reshape, Slice, TensorOp, Windows
from penstock.compiler.analysis.packing import MANY_WORDS
from penstock.compiler.analysis.parts import part_of
from penstock.compiler.design import Design
from penstock.compiler.dialects.itensor_types import LayoutAttr
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.names import Names
from penstock.compiler.plan import names
from penstock.compiler.plan.frames import Frame
from penstock.compiler.plan.orders import OrderTable
from penstock.compiler.plan.pace import PortsFor, bits_a_cycle
from penstock.compiler.plan.parts import (
    Chunking,
    Computing,
    Concatenating,
    Converting,
    Does,
    Forking,
    Loading,
    Order,
    Part,
    Reshaping,
    Sliding,
    Storing,
    Stream,
)
from penstock.compiler.plan.port_tasks import loads_straight
from penstock.compiler.plan.value_orders import ValueOrders


@dataclass
class Tensors:
    """What one kernel leaves to the next: what tensors are called, and how those in external memory lie there."""

    port_bits: int
    """The width of a port to external memory; 0 where nothing is packed."""
    ports_for: PortsFor
    names: dict[SSAValue, str]
    layouts: dict[SSAValue, LayoutAttr | None]
    taken: Names
    """What parts are called: layers by their own names, which come first, and all others."""
    grains: Callable[[SSAValue], tuple[int, ...]] = lambda _value: ()
    """Of a tensor's dims whose size each call says, what that is always a multiple of; nothing of others."""


@dataclass
class KernelPlanner:
    """One kernel under construction. `waiting` holds the streams that the readers of a value are about to take."""

    design: Design
    graph: Graph
    table: OrderTable
    params: frozenset[SSAValue]
    computing: Mapping[str, Computing]
    """By layer."""
    frame: Frame
    tensors: Tensors
    suffix: str
    done: list[Part] = field(default_factory=list[Part])
    readers: dict[SSAValue, list[Order]] = field(default_factory=dict[SSAValue, list[Order]])
    paces: dict[SSAValue, float] = field(default_factory=dict[SSAValue, float])
    """The bits a cycle that the fastest reader of a tensor takes."""
    again: dict[str, set[int]] = field(default_factory=dict[str, "set[int]"])
    """The operands of a layer that are loaded for it once more."""
    orders: ValueOrders | None = None
    made: dict[SSAValue, Order] = field(default_factory=dict[SSAValue, Order])
    waiting: dict[tuple[SSAValue, Order], list[Stream]] = field(
        default_factory=dict[tuple[SSAValue, Order], list[Stream]]
    )

    def parts(self) -> list[Part]:
        members = self.frame.members
        if self.frame.rearranges:
            self.orders = ValueOrders(
                self.design, self.graph, self.frame.nodes, self.tensors.grains, computing=self.computing
            )  # fmt: skip
        wanted = [self._wanted(node) for node in members]
        streamed: dict[SSAValue, Order] = {}
        for node, pairs in zip(members, wanted, strict=True):
            computing = self.computing[node.layer] if isinstance(node, TensorOp) else None
            for value, order in pairs:
                self.paces[value] = max(self.paces.get(value, 0.0), bits_a_cycle(node, computing, order))
            streamed |= {value: order for value, order in pairs if value in self.params}
            for value, order in reversed(pairs):  # of one node's operands the last decides how a tensor is loaded
                if value not in self.params:
                    self.readers.setdefault(value, []).append(order)
        for value, order in streamed.items():
            self._lay_out(value, order)
        for value in self.frame.imports:
            if orders := self.readers.get(value):
                self._lay_out(value, orders[0])
        for node in members:
            if isinstance(node, TensorOp) and self.design.kernels[node.layer].reload:
                self._reload(node)
        self._imports()
        for node, pairs in zip(members, wanted, strict=True):
            self._member(node, pairs)
        for index, value in self.frame.returned:
            self._store(names.store_name(index), value)
        for value in self.frame.crossing:
            self._store(names.spill_name(self.tensors.names[value]), value)
        return self.done

    def _imports(self) -> None:
        """A load for every tensor that comes from elsewhere."""
        for value in self.frame.imports:
            if orders := self.readers.get(value):
                name = f"{self.tensors.names[value]}{self.suffix}"
                loaded = self._load(names.load_name(name), value, orders[0])
                self._distribute(name, value, loaded, orders)

    def _reload(self, node: TensorOp) -> None:
        """Takes a layer from the readers of tensors that others read too, where one port can bring them once more.

        Not of what the call before has left there, which this one may write.
        """
        fed = {*self.graph.fed.values()}
        for position, (value, order) in enumerate(
            zip(node.inputs, self.computing[node.layer].operands, strict=True)
        ):  # fmt: skip
            readers = self.readers.get(value, [])
            if order is None or value not in self.frame.imports or value in self.params or value in fed:
                continue
            others = [*readers]
            others.remove(order)
            layout = self.tensors.layouts[value]
            if others and layout and all(loads_straight(self.table.load(o, layout)) for o in (order, others[0])):
                self.readers[value] = others
                self.again.setdefault(node.layer, set()).add(position)

    # -- nodes of the graph

    @property
    def _orders(self) -> ValueOrders:
        assert self.orders is not None
        return self.orders

    def _wanted(self, node: Node) -> list[tuple[SSAValue, Order]]:
        """The streams that a node takes, in the order of its operands."""
        of = self.table.of
        match node:
            case TensorOp():
                operands = self.computing[node.layer].operands
                return [(v, order) for v, order in zip(node.inputs, operands, strict=True) if order is not None]
            case Slice():
                return [(node.source, of(self._orders.cut(node)))]
            case Concat():
                sizes = [size for _, size in node.parts]
                return [(v, of(self._orders.part(node, n))) for v, n in zip(node.sources, sizes, strict=True)]
            case Reshape():
                return [(node.source, of(self._orders.reshaped(node)[0]))]
            case Windows():
                return [(node.source, of(self._orders.slid(node)[0]))]

    def _member(self, node: Node, wanted: Sequence[tuple[SSAValue, Order]]) -> None:
        match node:
            case TensorOp():
                self._compute(node)
            case Slice():
                self._chunk(node, wanted[0])
            case Concat():
                name = names.concat_name(self.tensors.names[node.sources[0]])
                streams = [self._take(*pair) for pair in wanted]
                order = self.table.of(self._orders.of(node.result))
                does = Concatenating(node.dim, tuple([stream.order for stream in streams]), order)
                part = self._add(name, does, streams)
                self._finish(part.name, node.result, part.outputs[0])
            case Reshape():
                name = names.reshaped_name(self.tensors.names[node.source], tensor_type(node.result).get_shape())
                does = Reshaping(self.table.of(self._orders.reshaped(node)[1]))
                part = self._add(name, does, [self._take(*wanted[0])])
                self._finish(part.name, node.result, part.outputs[0])

            case Windows():
                name = names.slide_name(self.tensors.names[node.source], node.by.dim)
                target = self.table.of(self._orders.slid(node)[1])
                part = self._add(name, Sliding(node.by, node.fill, wanted[0][1], target), [self._take(*wanted[0])])
                self._finish(part.name, node.result, part.outputs[0])

    def _chunk(self, node: Slice, wanted: tuple[SSAValue, Order]) -> None:
        """All slices of one tensor along one dim."""
        stream, siblings = self._take(*wanted), self.frame.siblings[node.result]
        name = names.chunk_name(self.tensors.names[node.source], node.dim)
        orders = [self.table.of(part_of(stream.order.kind, s.dim, s.size)) for s in siblings]
        does = Chunking(node.dim, tuple([s.start for s in siblings]), stream.order, tuple(orders))
        part = self._add(name, does, [stream])
        for index, (one, made) in enumerate(zip(siblings, part.outputs, strict=True)):
            self._finish(names.chunk_part_name(part.name, index), one.result, made)

    def _compute(self, node: TensorOp) -> None:
        streams: list[Stream] = []
        kept: list[SSAValue] = []
        for position, (value, order) in enumerate(
            zip(node.inputs, self.computing[node.layer].operands, strict=True)
        ):  # fmt: skip
            if order is None:
                kept.append(value)
            elif value in self.params or position in self.again.get(node.layer, ()):
                streams.append(self._load(names.operand_load_name(node.layer, position), value, order))
            else:
                streams.append(self.waiting[value, order].pop(0))
        part = self._keep(Part(node.layer, self.computing[node.layer], streams, tuple(kept)))
        self._finish(node.layer, node.result, part.outputs[0])

    def _take(self, value: SSAValue, order: Order) -> Stream:
        """The stream of one operand; a parameter has a load of its own."""
        if value in self.params:
            return self._load(names.load_name(self.tensors.names[value]), value, order)
        return self.waiting[value, order].pop(0)

    def _finish(self, name: str, value: SSAValue, stream: Stream) -> None:
        """Hand what a node made to its readers, and to the stores."""
        self.tensors.names[value] = name
        self.made[value] = stream.order
        leaving = self.frame.exports.count(value)
        wanted = [*self.readers.get(value, ()), *([stream.order] * leaving)]
        self._distribute(name, value, stream, wanted)

    def _distribute(self, name: str, value: SSAValue, stream: Stream, wanted: Sequence[Order]) -> None:
        """Give every reader of `value` a stream of the order that it wants; equal conversions are shared."""
        order = stream.order
        converted = [other for other in dict.fromkeys(wanted) if other is not order]
        plain = wanted.count(order)
        copies = self._fork(names.fork_name(name), stream, plain + len(converted))
        self.waiting[value, order] = copies[:plain]
        for index, (other, copy) in enumerate(zip(converted, copies[plain:], strict=True)):
            which = f".{index}" if len(converted) > 1 else ""
            made = self._made(names.convert_name(name, which), Converting(order, other), [copy])
            self.waiting[value, other] = self._fork(names.converted_fork_name(name, which), made, wanted.count(other))

    def _fork(self, name: str, stream: Stream, count: int) -> list[Stream]:
        """As many streams as there are readers."""
        if count == 1:
            return [stream]
        return list(self._add(name, Forking((stream.order,) * count), [stream]).outputs)

    # -- external memory

    def _lay_out(self, value: SSAValue, order: Order) -> None:
        """The first stream of a tensor decides how it lies in external memory; a ROM's does not lie there.

        What the call before leaves is written through one port, and so is read through one. Rows of other inputs may be
        of odd sizes, which the host pads; those of weights a search sees to.
        """
        if value not in self.tensors.layouts:
            fed = value in self.graph.fed.values()
            stripes = 1 if fed else self.tensors.ports_for(self.paces.get(value, 0.0))
            roomy = not fed and not self.graph.is_param(value)
            self.tensors.layouts[value] = self._layout(value, order, stripes, roomy=roomy)

    def _layout(self, value: SSAValue, order: Order, stripes: int = 1, *, roomy: bool = False) -> LayoutAttr | None:
        bits, grains = self.tensors.port_bits, self.tensors.grains(value)
        return self.table.layout(order, bits, stripes, grains, MANY_WORDS if roomy else inf) if bits else None

    def _load(self, name: str, value: SSAValue, order: Order) -> Stream:
        transfer = self.table.load(order, self.tensors.layouts[value])
        loaded = self._made(name, Loading(transfer), [], (value,))
        if transfer.stream is order:
            return loaded
        return self._made(names.unpack_name(name), Converting(transfer.stream, order), [loaded])

    def _store(self, name: str, value: SSAValue) -> None:
        """A tensor leaves in the order that it is made in, which decides how it lies in external memory.

        One that is an input of the next call lies as that is read.
        """
        order, fed = self.made[value], self.graph.fed.get(value)
        layouts = self.tensors.layouts
        layout = layouts[fed] if fed is not None and fed in layouts else self._layout(value, order, roomy=fed is None)
        layouts[value] = layout
        stream = self.waiting[value, order].pop()
        transfer = self.table.store(order, layout)
        if transfer.stream is not order:
            stream = self._made(names.pack_name(name), Converting(order, transfer.stream), [stream])
        self._add(name, Storing(transfer), [stream], (value,))

    def _made(self, name: str, does: Does, inputs: list[Stream], tensors: tuple[SSAValue, ...] = ()) -> Stream:
        return self._add(name, does, inputs, tensors).outputs[0]

    def _add(self, name: str, does: Does, inputs: list[Stream], tensors: tuple[SSAValue, ...] = ()) -> Part:
        """A part of a name that no other has: blocks, tensors between kernels and records go by it."""
        return self._keep(Part(self.tensors.taken.take(name), does, inputs, tensors))

    def _keep(self, part: Part) -> Part:
        self.done.append(part)
        return part
