"""What task modules have in common with the core: the signals of streams, block channels and external memories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import gcd, prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from penstock.compiler.analysis.banks import Linear, MemoryOp, accesses_of, lanes_of, linear_of
from penstock.compiler.backend.rtl.lines import bits, clog2, packed
from penstock.compiler.backend.rtl.numbers import type_bits
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.types import memref_type, vector_type
from penstock.compiler.errors import PenstockError

MOST_PORTS = 64


@dataclass(frozen=True)
class Signal:
    """One signal of a module. `shape` is its dimensions as SystemVerilog spells them, with a space behind."""

    name: str
    output: bool
    shape: str = ""

    def declaration(self) -> str:
        return f"{'output' if self.output else 'input '} logic {self.shape}{self.name}"


def stream_pins(name: str, token: VectorType, *, writes: bool) -> list[Signal]:
    data = packed(prod(token.get_shape()), type_bits(token)) + " "
    return [
        Signal(f"{name}_tdata", writes, data),
        Signal(f"{name}_tvalid", writes),
        Signal(f"{name}_tready", not writes),
    ]


@dataclass(frozen=True)
class External:
    """An external memory as the core meets it: words of `lanes` elements."""

    words: int
    lanes: int
    element_bits: int

    @property
    def width(self) -> int:
        return self.lanes * self.element_bits

    def pins(self, name: str, *, writes: bool) -> list[Signal]:
        address = Signal(f"{name}_addr", True, bits(clog2(self.words)))
        data = packed(self.lanes, self.element_bits) + " "
        if writes:
            return [Signal(f"{name}_we", True), address, Signal(f"{name}_wdata", True, data)]
        return [Signal(f"{name}_re", True), address, Signal(f"{name}_rdata", False, data)]

    def corner(self, access: MemoryOp) -> Linear:
        """The word in which an access begins."""
        shape = nest.memory_shape(access.memory)
        found = Linear((0,) * access.address.data.num_dims, 0)
        for position, one in enumerate(linear_of(access.address.data)):
            found = found.plus(one.times(prod(shape[position + 1 :])))
        return found if _has_words(access.memory) else found.over(self.lanes)

    def steps(self, access: MemoryOp) -> list[int]:
        """The words that an access moves at once, counted from its first one: a port for each."""
        if _has_words(access.memory):
            return [0]
        return [start // self.lanes for start in _offsets(access)[:: self.lanes]]

    def names(self, name: str, accesses: Sequence[MemoryOp]) -> list[str]:
        """The ports that such accesses need; several where words that they move at once do not lie side by side."""
        count = max(len(self.steps(access)) for access in accesses)
        return [name] if count == 1 else [f"{name}_{number}" for number in range(count)]


def external_of(memory: SSAValue, name: str) -> External:
    """Words as the argument's type has them; of plain scalars, as many as lie together in every access."""
    kind = memref_type(memory)
    size = prod(kind.get_shape())
    if _has_words(memory):
        word = vector_type(kind.element_type)
        return External(size, prod(word.get_shape()), type_bits(word))
    plain = External(size, 1, type_bits(kind.element_type))
    together = size
    for access in accesses_of(memory):
        corner, offsets = plain.corner(access), _offsets(access)
        run = next((i for i, offset in enumerate(offsets) if offset != i), len(offsets))
        together = gcd(together, run, corner.offset, *corner.factors)
        starts = [o for before, o in pairwise(offsets) if o != before + 1]
        lengths = [i + 1 for i, (before, o) in enumerate(pairwise(offsets)) if o != before + 1]
        together = gcd(together, len(offsets), *starts, *lengths)
        if len(offsets) // together > MOST_PORTS:
            raise PenstockError(
                code="unsupported-memory", what=f"{len(offsets) // together} words of a memory are moved at once",
                where=name, limit=f"the RTL backend gives a memory up to {MOST_PORTS} ports",
                hint="let the design pack its interfaces (port_bits), or unroll less",
            )  # fmt: skip
    return External(size // together, together, plain.element_bits)


def _has_words(memory: SSAValue) -> bool:
    return isinstance(memref_type(memory).element_type, VectorType)


def _offsets(access: MemoryOp) -> list[int]:
    """Where each lane lies, in elements from the corner."""
    shape = nest.memory_shape(access.memory)
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    lanes = product(*(range(extent) for extent in lanes_of(access)))
    return [sum(i * stride for i, stride in zip(index, strides, strict=True)) for index in lanes]
