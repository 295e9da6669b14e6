"""What task modules have in common with the core: the signals of streams, block channels and external memories."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from compiler.backend.rtl.geometry import Access, accesses_of, lanes_of, linear_of
from compiler.backend.rtl.lines import bits, clog2, packed
from compiler.backend.rtl.numbers import element_of, type_bits
from compiler.dialects import nest
from compiler.dialects.types import memref_type, vector_type
from compiler.errors import PenstockError


@dataclass(frozen=True)
class Pin:
    """One signal of a module. `shape` is its dimensions as SystemVerilog spells them, with a space behind."""

    name: str
    output: bool
    shape: str = ""

    def declaration(self) -> str:
        return f"{'output' if self.output else 'input '} logic {self.shape}{self.name}"


def stream_pins(name: str, token: VectorType, *, writes: bool) -> list[Pin]:
    data = packed(prod(token.get_shape()), type_bits(token)) + " "
    return [Pin(f"{name}_tdata", writes, data), Pin(f"{name}_tvalid", writes), Pin(f"{name}_tready", not writes)]


@dataclass(frozen=True)
class External:
    """An external memory as the core meets it: words of `lanes` elements."""

    words: int
    lanes: int
    element_bits: int

    @property
    def width(self) -> int:
        return self.lanes * self.element_bits

    def pins(self, name: str, *, writes: bool) -> list[Pin]:
        address = Pin(f"{name}_addr", True, bits(clog2(self.words)))
        data = packed(self.lanes, self.element_bits) + " "
        if writes:
            return [Pin(f"{name}_we", True), address, Pin(f"{name}_wdata", True, data)]
        return [Pin(f"{name}_re", True), address, Pin(f"{name}_rdata", False, data)]


def external_of(memory: SSAValue, name: str) -> External:
    """Words as the argument's type has them; of plain scalars, as many as every access moves side by side."""
    kind = memref_type(memory)
    size = prod(kind.get_shape())
    if isinstance(kind.element_type, VectorType):
        word = vector_type(kind.element_type)
        return External(size, prod(word.get_shape()), type_bits(word))
    widths = {prod(lanes_of(access)) for access in accesses_of(memory)} or {1}
    lanes = widths.pop()
    whole = not widths and size % lanes == 0 and all(_is_word(a, lanes) for a in accesses_of(memory))
    if not whole:
        raise PenstockError(
            code="unsupported-memory", what="an external memory is accessed otherwise than word by word", where=name,
            limit="the RTL backend moves runs of equal length that start at a multiple of it",
            hint="let the design pack its interfaces (port_bits)",
        )  # fmt: skip
    return External(size // lanes, lanes, type_bits(element_of(kind.element_type)))


def _is_word(access: Access, lanes: int) -> bool:
    """Whether the lanes lie side by side, from a multiple of their number on."""
    shape = nest.memory_shape(access.memory)
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    reached = 1 + sum((e - 1) * s for e, s in zip(lanes_of(access), strides, strict=True))
    corners = [linear.times(s) for linear, s in zip(linear_of(access.address.data), strides, strict=True)]
    return reached == lanes and not any(n % lanes for c in corners for n in (c.offset, *c.factors))
