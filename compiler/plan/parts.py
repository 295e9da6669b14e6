"""The parts of a design and the streams between them: one part for every operation of the itensor level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from penstock.compiler.analysis.loops import LoopPlan
from penstock.compiler.analysis.tasks import Computation
from penstock.compiler.dialects.itensor_types import ITensorType, LayoutAttr
from penstock.compiler.dialects.window import Slide
from penstock.compiler.names import Names, c_name
from penstock.compiler.plan.names import channel_name


class Order:
    """An itensor type that stands for all equal ones: two orders are equal where they are the same object."""

    __slots__ = ("bits", "kind")

    def __init__(self, kind: ITensorType) -> None:
        dtype: Any = kind.dtype
        self.kind = kind
        self.bits = prod(kind.element_shape) * int(dtype.bitwidth)
        """Of one token."""


@dataclass(frozen=True, eq=False)
class Transfer:
    """How a stream meets its tensor in external memory: through words of a layout, where the tensor is packed.

    With `through`, words pass in that order to or from a block, one being moved while the other is used. Two transfers
    are equal where they are the same object.
    """

    stream: Order
    layout: LayoutAttr | None = None
    through: Order | None = None

    @property
    def words(self) -> Order:
        """The order in which memory is accessed."""
        return self.through or self.stream

    @property
    def tensor(self) -> TensorType[Attribute]:
        """The type of the tensor as it lies there."""
        kind = self.stream.kind
        return TensorType(kind.dtype, kind.data_shape()) if self.layout is None else self.layout.packed(kind)

    @cached_property
    def stripes(self) -> tuple[LayoutAttr, ...]:
        """How the shares of the banks lie there, where it lies in several; none where it lies in one."""
        if self.layout is None or (layout := self.layout.layout).stripes == 1:
            return ()
        return tuple([LayoutAttr.of(layout.part(stripe)) for stripe in range(layout.stripes)])

    @cached_property
    def tensors(self) -> tuple[TensorType[Attribute], ...]:
        """The types of what lies in each bank."""
        return tuple([one.packed(self.stream.kind) for one in self.stripes]) or (self.tensor,)


@dataclass(frozen=True, slots=True)
class Loading:
    """Streams a tensor from external memory."""

    transfer: Transfer

    @property
    def makes(self) -> tuple[Order, ...]:
        return (self.transfer.stream,)


@dataclass(frozen=True, slots=True)
class Storing:
    """Writes a stream to external memory."""

    transfer: Transfer

    @property
    def makes(self) -> tuple[Order, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Converting:
    """Sends a stream on in another order."""

    source: Order
    target: Order

    @property
    def makes(self) -> tuple[Order, ...]:
        return (self.target,)


@dataclass(frozen=True, slots=True)
class Chunking:
    """Cuts a stream into parts along a dim; each begins at one of `starts`."""

    dim: int
    starts: tuple[int, ...]
    whole: Order
    makes: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Concatenating:
    """Sends streams on one after the other along a dim."""

    dim: int
    parts: tuple[Order, ...]
    whole: Order

    @property
    def makes(self) -> tuple[Order, ...]:
        return (self.whole,)


@dataclass(frozen=True, slots=True)
class Forking:
    """Copies a stream for several readers. It costs nothing: what makes the stream pushes into every FIFO."""

    makes: tuple[Order, ...]


@dataclass(frozen=True, slots=True)
class Reshaping:
    """The same tokens as slices of a reshaped tensor. It costs nothing: tokens are flat."""

    target: Order

    @property
    def makes(self) -> tuple[Order, ...]:
        return (self.target,)


@dataclass(frozen=True, slots=True)
class Sliding:
    """Lays out the windows along a dim of a stream, as it passes."""

    by: Slide
    fill: Attribute
    source: Order
    target: Order

    @property
    def makes(self) -> tuple[Order, ...]:
        return (self.target,)


@dataclass(frozen=True, eq=False)
class Computing:
    """One computation under one schedule. Two are equal where they are the same object; equal kernels share theirs."""

    plan: LoopPlan
    computation: Computation
    bindings: tuple[tuple[str, str], ...]
    operands: tuple[Order | None, ...]
    """None for a parameter that lies on the chip."""
    tensors: tuple[TensorType[Attribute], ...]
    """The types of those parameters."""
    reread: tuple[bool, ...]
    """Whether an operand's stream sends it again for every tile."""
    result: Order
    interval: int = 1
    """Cycles between iterations at least."""

    @property
    def makes(self) -> tuple[Order, ...]:
        return (self.result,)


Does = Loading | Storing | Converting | Chunking | Concatenating | Sliding | Forking | Reshaping | Computing
"""What a part does: with the number of its readers, all that its nests depend on."""

FREE = (Forking, Reshaping)
"""What becomes no hardware."""


class Stream:
    """One stream, from the part that makes it to the one that reads it."""

    __slots__ = ("channel", "maker", "order", "reader")

    def __init__(self, order: Order, maker: Part) -> None:
        self.order = order
        self.maker = maker
        """The part that pushes into it, before all forks and reshapes."""
        self.reader: Part | None = None
        self.channel = ""
        """The FIFO that its reader pops, after the names of both ends: `label_parts` gives it."""

    def ends(self) -> Iterator[Stream]:
        """What is popped in the end, behind forks and reshapes: one stream, and one FIFO, a reader."""
        if self.reader is not None and isinstance(self.reader.does, FREE):
            for copy in self.reader.outputs:
                yield from copy.ends()
        else:
            yield self


@dataclass(eq=False, slots=True)
class Part:
    """One operation of the itensor level, between the streams that it takes and those that it makes."""

    name: str
    does: Does
    inputs: list[Stream]
    tensors: tuple[SSAValue, ...] = ()
    """What it loads or stores, or the parameters that lie in it."""
    outputs: tuple[Stream, ...] = field(init=False)
    label: str = ""
    """The name, safe in C++ and its own in the design: `label_parts` gives it."""
    ports: tuple[str, ...] = ()
    """Of a load that shares ports with others: the tasks of these ports, one a bank. `assign_ports` gives them."""
    turn: int = 0
    """When its turn comes there."""

    def __post_init__(self) -> None:
        maker = self.inputs[0].maker if isinstance(self.does, FREE) else self
        self.outputs = tuple([Stream(order, maker) for order in self.does.makes])
        for stream in self.inputs:
            stream.reader = self

    @property
    def free(self) -> bool:
        """Whether it becomes no hardware."""
        return isinstance(self.does, FREE)


def label_parts(kernels: Sequence[Sequence[Part]]) -> None:
    """A label for every part and a name for every FIFO that no other has, however alike the layers' names are."""
    labels, channels = Names(), Names()
    for part in (part for parts in kernels for part in parts):
        part.label = labels.take(_c_name(part.name))
    for part in (part for parts in kernels for part in parts if not part.free):
        for end in (end for made in part.outputs for end in made.ends()):
            end.channel = channels.take(_channel_of(end))


def channel_inside(label: str, fifo: str) -> str:
    """Of a FIFO between the processes of one part, after the part and what the FIFO carries."""
    return f"{label}__{fifo.rpartition('.')[2]}"


def _channel_of(stream: Stream) -> str:
    """After both ends; numbered where they are connected more than once."""
    reader = stream.reader
    assert reader is not None
    siblings = [s for s in reader.inputs if s.maker is stream.maker]
    number = siblings.index(stream) if len(siblings) > 1 else None
    return channel_name(stream.maker.label, reader.label, number)


@lru_cache(maxsize=1 << 14)
def _c_name(name: str) -> str:
    return c_name(name)
