"""What a design becomes at the itensor level, as plain facts instead of operations: who loads, computes, stores.

The passes that lead there build modules; a search looks at thousands of designs, and needs to know only which parts
there are and which streams connect them. A test holds that both say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from compiler.analysis.converting import choose_plan
from compiler.analysis.one_pass import OnePassPlan
from compiler.analysis.packing import choose_layout, word_order
from compiler.dialects import itensor
from compiler.dialects.itensor_types import ITensorType, LayoutAttr
from compiler.transforms.fold_itensors import fits_tiles
from compiler.transforms.names import c_name

Build = Callable[[Sequence[SSAValue]], Operation]


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
    build: Build
    """The operation itself, from values of the types of its operands."""
    operands: tuple[Attribute, ...]
    inputs: list[Stream]
    outputs: list[Stream] = field(default_factory=list[Stream])
    is_task: bool = False

    @property
    def c_name(self) -> str:
        return _c_name(self.name)

    def channel(self, stream: Stream) -> str:
        """The FIFO of one of its inputs, after the names of both ends."""
        siblings = [s for s in self.inputs if s.maker is stream.maker]
        number = f"_{siblings.index(stream)}" if len(siblings) > 1 else ""
        return f"{stream.maker.c_name}__{self.c_name}{number}"


@dataclass(frozen=True)
class Access:
    """How a tensor in external memory meets a stream: the order beside the memory, and the words that pass it.

    Where `outside` is not the order that is wanted, a converter stands between; with `through` it is folded in.
    """

    outside: Order
    through: Order | None = None


class Orders:
    """Orders and what follows from them, each found once."""

    def __init__(self) -> None:
        self._by_identity: dict[int, tuple[ITensorType, Order]] = {}
        self._by_value: dict[ITensorType, Order] = {}
        self._accesses: dict[Hashable, Access] = {}
        self._layouts: dict[Hashable, LayoutAttr | None] = {}
        self._packed: dict[Hashable, Attribute] = {}

    def of(self, kind: ITensorType) -> Order:
        found = self._by_identity.get(id(kind))
        if found is None:  # hashing a type walks through all of it
            order = self._by_value.setdefault(kind, Order(kind))
            found = self._by_identity[id(kind)] = (kind, order)  # held, so that its identity stays its own
        return found[1]

    def layout(self, order: Order, port_bits: int) -> LayoutAttr | None:
        """The layout in external memory that suits a stream."""
        key = (order, port_bits)
        if key not in self._layouts:
            layout = choose_layout(order.kind, port_bits)
            self._layouts[key] = None if layout is None else LayoutAttr.of(layout)
        return self._layouts[key]

    def packed(self, order: Order, layout: LayoutAttr) -> Attribute:
        """The type in external memory of the tensor that a stream covers."""
        key = (order, layout)
        if key not in self._packed:
            self._packed[key] = layout.packed(order.kind)
        return self._packed[key]

    def load(self, order: Order, layout: LayoutAttr | None) -> Access:
        """How a stream of that order is loaded."""
        key = (order, layout, "load")
        if key not in self._accesses:
            self._accesses[key] = self._find(order, layout, loads=True)
        return self._accesses[key]

    def store(self, order: Order, layout: LayoutAttr | None) -> Access:
        """How a stream of that order is stored."""
        key = (order, layout, "store")
        if key not in self._accesses:
            self._accesses[key] = self._find(order, layout, loads=False)
        return self._accesses[key]

    def _find(self, order: Order, layout: LayoutAttr | None, *, loads: bool) -> Access:
        if layout is None:
            return Access(order)
        words = self.of(word_order(order.kind, layout.layout))
        if words is order:
            return Access(order)
        plan = choose_plan(words.kind, order.kind) if loads else choose_plan(order.kind, words.kind)
        if isinstance(plan, OnePassPlan) or not fits_tiles(layout, plan, plan.source if loads else plan.target):
            return Access(words)
        return Access(order, words)


@lru_cache(maxsize=1 << 14)
def _c_name(name: str) -> str:
    return c_name(name)


def load_part(name: str, access: Access, memory: Attribute, layout: LayoutAttr | None) -> Part:
    """A load of a tensor; what it makes is in `access.outside`."""
    through = access.through and access.through.kind

    def build(values: Sequence[SSAValue]) -> Operation:
        return itensor.LoadOp(name, values[0], access.outside.kind, layout, through)

    part = Part(name, ("load", memory, layout, access), build, (memory,), [])
    return _made(part, [access.outside])


def store_part(name: str, stream: Stream, access: Access, memory: Attribute, layout: LayoutAttr | None) -> Part:
    """A store of a stream, which is in the order of `access.outside`."""
    through = access.through and access.through.kind

    def build(values: Sequence[SSAValue]) -> Operation:
        return itensor.StoreOp(name, values[0], memory, layout, through)

    part = Part(name, ("store", memory, layout, access), build, (stream.order.kind,), [stream])
    return _made(part, [])


def convert_part(name: str, stream: Stream, order: Order) -> Part:
    def build(values: Sequence[SSAValue]) -> Operation:
        return itensor.ConverterOp(name, values[0], order.kind)

    return _made(Part(name, ("convert", stream.order, order), build, (stream.order.kind,), [stream]), [order])


def chunk_part(name: str, stream: Stream, dim: int, starts: Sequence[int], orders: Sequence[Order]) -> Part:
    def build(values: Sequence[SSAValue]) -> Operation:
        return itensor.ChunkOp(name, values[0], dim, starts, [o.kind for o in orders])

    facts = ("chunk", dim, tuple(starts), stream.order, tuple(orders))
    return _made(Part(name, facts, build, (stream.order.kind,), [stream]), orders)


def concat_part(name: str, streams: Sequence[Stream], dim: int, order: Order) -> Part:
    def build(values: Sequence[SSAValue]) -> Operation:
        return itensor.ConcatOp(name, values, dim, order.kind)

    facts = ("concat", dim, tuple(s.order for s in streams), order)
    return _made(Part(name, facts, build, tuple(s.order.kind for s in streams), list(streams)), [order])


def task_part(
    name: str, facts: Hashable, build: Build, operands: tuple[Attribute, ...], streams: Sequence[Stream], order: Order
) -> Part:
    return _made(Part(name, facts, build, operands, list(streams), is_task=True), [order])


def _made(part: Part, orders: Sequence[Order]) -> Part:
    for stream in part.inputs:
        stream.reader = part
    part.outputs = [Stream(order, part) for order in orders]
    return part
