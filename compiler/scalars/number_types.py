"""Number types: one row says how a type is stored, packed, sent and computed. A new type is a row of `LISTED`.

Integers of every other width follow one rule: signed where an operation does not say otherwise, wrapping in two's
complement, stored sign-extended in the next larger integer of numpy, packed in exactly their bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal

import numpy as np
from xdsl.ir import Attribute

from penstock.compiler.errors import PenstockError

_CONTAINERS = (8, 16, 32, 64)
"""Bits of the integers that numpy and C++ have of their own."""


@dataclass(frozen=True)
class NumberType:
    """A scalar type."""

    name: str
    """As the IR prints it."""
    bits: int
    """What an element takes on the chip, in ports and in words of memory: lanes lie close, the first one lowest."""
    stored: str | None
    """The numpy type that holds it, which is also what interface.json and the host's files say."""
    cpp: str | None
    """What penstock_ops.h computes with; ap_int.h has the odd widths. None: the HLS backend lacks it."""
    sv: Literal["signed", "pattern"] | None
    """How SystemVerilog reads its bits: as a signed number, or as a float core's. None: the RTL backend lacks it."""
    is_float: bool = False
    is_sent: bool = False
    """Whether a program given as text may take, return and hold tensors of it."""

    @property
    def dtype(self) -> np.dtype[Any]:
        if self.stored is None:
            raise PenstockError(
                code="unsupported-dtype", what=f"an integer of {self.bits} bits",
                limit=f"integers of up to {_CONTAINERS[-1]} bits are supported",
            )  # fmt: skip
        return np.dtype(self.stored)

    @property
    def is_native(self) -> bool:
        """Whether an element is as wide on the chip as on the host, so that words of several are the host's array."""
        return self.stored is not None and self.bits == 8 * self.dtype.itemsize

    @property
    def host_cpp(self) -> str:
        """The C++ type of what holds it in the host's arrays, which is wider where C++ has none of the width."""
        return self.cpp if self.is_float and self.cpp is not None else f"{self.stored}_t".replace("bool_t", "bool")

    @property
    def extremes(self) -> tuple[int, int]:
        """The least and the largest of the signed integers."""
        return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1


def _integer(bits: int, *, is_sent: bool = False) -> NumberType:
    container = next((f"int{size}" for size in _CONTAINERS if bits <= size), None)
    stored, cpp = container, f"int{bits}_t" if bits in _CONTAINERS else f"ap_int<{bits}>"
    if bits == 1:
        stored, cpp = "bool", "bool"
    return NumberType(f"i{bits}", bits, stored, cpp, "signed", is_sent=is_sent)


LISTED = (
    NumberType("f16", 16, "float16", None, "pattern", is_float=True),
    NumberType("f32", 32, "float32", "float", "pattern", is_float=True, is_sent=True),
    NumberType("f64", 64, "float64", "double", "pattern", is_float=True),
    _integer(8, is_sent=True),
    _integer(32, is_sent=True),
    NumberType("index", 64, "int64", None, None),
)
_BY_NAME = {row.name: row for row in LISTED}


@lru_cache(maxsize=512)
def number_type(kind: Attribute) -> NumberType:
    """The row of a scalar type, or of the elements of vectors, tensors and memories."""
    while (element := getattr(kind, "element_type", None)) is not None:
        kind = element
    return named(str(kind))


@lru_cache(maxsize=128)
def named(name: str) -> NumberType:
    """The row of a type by the name that the IR prints."""
    if name in _BY_NAME:
        return _BY_NAME[name]
    if re.fullmatch(r"i[1-9]\d*", name):
        return _integer(int(name[1:]))
    limit = ", ".join(_floats(lambda row: True))
    raise PenstockError(
        code="unsupported-dtype", what=f"no numpy type holds {name}",
        limit=f"{limit} and integers of up to {_CONTAINERS[-1]} bits are supported",
    )  # fmt: skip


@lru_cache(maxsize=512)
def type_bits(kind: Attribute) -> int:
    return number_type(kind).bits


@cache
def numpy_dtype(kind: Attribute) -> np.dtype[Any]:
    """What holds the elements of a type on the host."""
    return number_type(kind).dtype


def in_words(wanted: Callable[[NumberType], bool], integers: str = "integers") -> str:
    """The types of a kind, for messages: "integers, f32 and f64"."""
    *names, last = integers, *_floats(wanted)
    return f"{', '.join(names)} and {last}"


def sent_types() -> str:
    """What a program given as text may take, for messages: "f32, i8 or i32"."""
    *names, last = (row.name for row in LISTED if row.is_sent)
    return f"{', '.join(names)} or {last}"


def _floats(wanted: Callable[[NumberType], bool]) -> list[str]:
    return [row.name for row in LISTED if row.is_float and wanted(row)]
