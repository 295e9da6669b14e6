"""What a design becomes at the itensor level, as plain facts instead of operations: who loads, computes, stores.

The passes that lead there build modules; a search looks at thousands of designs, and needs to know only which parts
there are and which streams connect them. A test holds that both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from math import prod
from typing import Any

from xdsl.ir import Attribute

from penstock.compiler.analysis.converting import choose_plan
from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.analysis.nests import NestFacts, Place, PlaceKind
from penstock.compiler.analysis.one_pass import OnePassPlan
from penstock.compiler.analysis.packing import choose_layout, word_order
from penstock.compiler.analysis.tasks import Computation
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.transforms.build_compute_nest import Source, build_compute_nest
from penstock.compiler.transforms.build_converter_nests import Conversion, Process, build_converter
from penstock.compiler.transforms.build_dma_nests import Transfer, build_load, build_store
from penstock.compiler.transforms.build_part_nests import Range, build_chunk, build_concat
from penstock.compiler.transforms.fold_itensors import fits_tiles
from penstock.compiler.transforms.names import c_name

BuildNests = Callable[[Sequence[Place], Sequence[Sequence[Place]]], Conversion]
"""From the FIFOs of its inputs, and of the readers of each output."""

PIECE = "piece"
"""What a part is called while it is looked at alone."""


class Order:
    """An itensor type that stands for all equal ones: two orders are equal where they are the same object."""

    __slots__ = ("bits", "kind")

    def __init__(self, kind: ITensorType) -> None:
        dtype: Any = kind.dtype
        self.kind = kind
        self.bits = prod(kind.element_shape) * int(dtype.bitwidth)
        """Of one token."""


class Stream:
    """One stream, from the part that makes it to its reader; a forked one goes on as several `copies`."""

    __slots__ = ("copies", "maker", "order", "reader")

    def __init__(self, order: Order, maker: Part) -> None:
        self.order = order
        self.maker = maker
        self.copies: list[Stream] | None = None
        self.reader: Part | None = None

    def fork(self, count: int) -> list[Stream]:
        """As many streams as it has readers."""
        if count == 1:
            return [self]
        self.copies = [Stream(self.order, self.maker) for _ in range(count)]
        return list(self.copies)

    def under(self, order: Order) -> Stream:
        """The same tokens in another shape."""
        self.copies = [Stream(order, self.maker)]
        return self.copies[0]

    def last(self) -> Iterator[Stream]:
        """What the readers pop: one a reader."""
        if self.copies is None:
            yield self
        else:
            for copy in self.copies:
                yield from copy.last()


@dataclass(eq=False, slots=True)
class Part:
    """One operation that becomes hardware. `facts` decide what it becomes, beside how many readers it has."""

    name: str
    facts: Hashable
    build: BuildNests
    """Its nests, under the name of a piece."""
    inputs: list[Stream]
    outputs: list[Stream] = field(default_factory=list[Stream])

    @property
    def c_name(self) -> str:
        return _c_name(self.name)

    def channel(self, stream: Stream) -> str:
        """The FIFO of one of its inputs, after the names of both ends."""
        siblings = [s for s in self.inputs if s.maker is stream.maker]
        number = f"_{siblings.index(stream)}" if len(siblings) > 1 else ""
        return f"{stream.maker.c_name}__{self.c_name}{number}"


@dataclass(frozen=True, eq=False)
class Planned:
    """What a kernel's schedule says of its nest and its streams."""

    plan: LoopPlan
    computation: Computation
    bindings: tuple[tuple[str, str], ...]
    operands: tuple[Order | None, ...]
    """None for a parameter that lies on the chip."""
    tensors: tuple[Attribute, ...]
    """The types of the operands."""
    reread: tuple[bool, ...]
    """Whether an operand's stream sends it again for every tile."""
    result: Order
    facts: Hashable
    """Stands for all that its nest depends on; kernels of equal bodies and loops share theirs."""


@dataclass(frozen=True, eq=False)
class Access:
    """How a tensor in external memory meets a stream: the order beside the memory, and the words that pass it.

    Where `outside` is not the order that is wanted, a converter stands between; with `through` it is folded in.
    Two accesses are equal where they are the same object.
    """

    outside: Order
    layout: LayoutAttr | None
    through: Order | None


class Orders:
    """Orders and what follows from them, each found once."""

    def __init__(self) -> None:
        self._by_identity: dict[int, tuple[ITensorType, Order]] = {}
        self._by_value: dict[ITensorType, Order] = {}
        self._accesses: dict[Hashable, Access] = {}
        self._layouts: dict[Hashable, LayoutAttr | None] = {}
        self._equal: dict[Hashable, Any] = {}

    def of(self, kind: ITensorType) -> Order:
        found = self._by_identity.get(id(kind))
        if found is None:  # hashing a type walks through all of it
            order = self._by_value.setdefault(kind, Order(kind))
            found = self._by_identity[id(kind)] = (kind, order)  # held, so that its identity stays its own
        return found[1]

    def layout(self, order: Order, port_bits: int) -> LayoutAttr | None:
        """The layout in external memory that suits a stream; equal ones are the same object."""
        key = (order, port_bits)
        if key not in self._layouts:
            layout = choose_layout(order.kind, port_bits)
            self._layouts[key] = layout and self._equal.setdefault(layout, LayoutAttr.of(layout))
        return self._layouts[key]

    def load(self, order: Order, layout: LayoutAttr | None) -> Access:
        """How a stream of that order is loaded. The layout is one that was found here."""
        return self._access(order, layout, loads=True)

    def store(self, order: Order, layout: LayoutAttr | None) -> Access:
        """How a stream of that order is stored."""
        return self._access(order, layout, loads=False)

    def _access(self, order: Order, layout: LayoutAttr | None, *, loads: bool) -> Access:
        key = (order, id(layout), loads)
        if key not in self._accesses:
            found = self._find(order, layout, loads=loads)
            self._accesses[key] = self._equal.setdefault((found.outside, id(layout), found.through), found)
        return self._accesses[key]

    def _find(self, order: Order, layout: LayoutAttr | None, *, loads: bool) -> Access:
        if layout is None:
            return Access(order, None, None)
        words = self.of(word_order(order.kind, layout.layout))
        if words is order:
            return Access(order, layout, None)
        plan = choose_plan(words.kind, order.kind) if loads else choose_plan(order.kind, words.kind)
        if isinstance(plan, OnePassPlan) or not fits_tiles(layout, plan, plan.source if loads else plan.target):
            return Access(words, layout, None)
        return Access(order, layout, words)


@lru_cache(maxsize=1 << 14)
def _c_name(name: str) -> str:
    return c_name(name)


def load_part(name: str, access: Access, kind: PlaceKind) -> Part:
    """A load of a tensor; what it makes is in `access.outside`. `kind` says where the tensor lies."""

    def build(_inputs: Sequence[Place], outputs: Sequence[Sequence[Place]]) -> Conversion:
        return build_load(_transfer(access), _memory("memory0", kind, access), outputs[0])

    return _made(Part(name, ("load", access), build, []), [access.outside])


def store_part(name: str, stream: Stream, access: Access, kind: PlaceKind) -> Part:
    """A store of a stream, which is in the order of `access.outside`."""

    def build(inputs: Sequence[Place], _outputs: Sequence[Sequence[Place]]) -> Conversion:
        return build_store(_transfer(access), _memory("output_0", kind, access), inputs[0])

    return _made(Part(name, ("store", access), build, [stream]), [])


def _transfer(access: Access) -> Transfer:
    return Transfer(PIECE, access.outside.kind, access.layout, access.through and access.through.kind)


def _memory(name: str, kind: PlaceKind, access: Access) -> Place:
    order = access.outside.kind
    if access.layout is None:
        return Place(name, kind, order.data_shape(), order.dtype)
    return _lying(name, kind, access.layout.packed(order))


def _lying(name: str, kind: PlaceKind, tensor: Attribute) -> Place:
    shaped = tensor_type(tensor)
    return Place(name, kind, shaped.get_shape(), shaped.element_type)


def convert_part(name: str, stream: Stream, order: Order) -> Part:
    def build(inputs: Sequence[Place], outputs: Sequence[Sequence[Place]]) -> Conversion:
        return build_converter(PIECE, (stream.order.kind, order.kind), inputs[0], outputs[0])

    return _made(Part(name, ("convert", stream.order, order), build, [stream]), [order])


def chunk_part(name: str, stream: Stream, dim: int, starts: Sequence[int], orders: Sequence[Order]) -> Part:
    def build(inputs: Sequence[Place], outputs: Sequence[Sequence[Place]]) -> Conversion:
        parts = [
            Range(start, order.kind.data_shape()[dim], fifos)
            for start, order, fifos in zip(starts, orders, outputs, strict=True)
        ]
        return _alone(build_chunk(stream.order.kind, dim, inputs[0], parts))

    facts = ("chunk", dim, tuple(starts), stream.order, tuple(orders))
    return _made(Part(name, facts, build, [stream]), orders)


def concat_part(name: str, streams: Sequence[Stream], dim: int, order: Order) -> Part:
    def build(inputs: Sequence[Place], outputs: Sequence[Sequence[Place]]) -> Conversion:
        sizes = [stream.order.kind.data_shape()[dim] for stream in streams]
        starts = accumulate(sizes[:-1], initial=0)
        parts = [Range(start, size, [fifo]) for start, size, fifo in zip(starts, sizes, inputs, strict=True)]
        return _alone(build_concat(order.kind, dim, parts, outputs[0]))

    facts = ("concat", dim, tuple(s.order for s in streams), order)
    return _made(Part(name, facts, build, list(streams)), [order])


def task_part(name: str, planned: Planned, streams: Sequence[Stream]) -> Part:
    """A compute task; its operands are streams, or parameters that lie on the chip."""

    def build(inputs: Sequence[Place], outputs: Sequence[Sequence[Place]]) -> Conversion:
        fifos = iter(inputs)
        sources = [
            Source(_lying(f"rom_{index}", "rom", tensor)) if order is None else Source(next(fifos), reread)
            for index, (order, tensor, reread) in enumerate(
                zip(planned.operands, planned.tensors, planned.reread, strict=True)
            )
        ]  # fmt: skip
        bindings = dict(planned.bindings)
        return _alone(build_compute_nest(planned.computation, planned.plan, sources, outputs[0], bindings))

    return _made(Part(name, planned.facts, build, list(streams)), [planned.result])


def _alone(facts: NestFacts) -> Conversion:
    return Conversion((Process("", facts),))


def _made(part: Part, orders: Sequence[Order]) -> Part:
    for stream in part.inputs:
        stream.reader = part
    part.outputs = [Stream(order, part) for order in orders]
    return part
