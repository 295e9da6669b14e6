"""A function of one small integer as the list of its results: the operation `table.look_up` and its numbers.

    %y = table.look_up %x in #table.entries<0, 3, 5, 7> : i2 -> i8

Entries stand in the order of the operand's bit patterns, so that of -1 is the last one. Those of an integer are signed
numbers; those of an f32 are its bits, so that no text form rounds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf

import numpy as np
from xdsl.dialects.builtin import Float32Type, IntegerType
from xdsl.ir import Attribute, Data, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.arrays import Array
from penstock.compiler.scalars.bounds import Bounds
from penstock.compiler.scalars.number_types import number_type, type_bits

MOST_INDEX_BITS = 8
"""Of the operand: 256 entries are what a few LUTs a bit hold."""


@irdl_attr_definition
class EntriesAttr(Data[tuple[int, ...]]):
    """`#table.entries<0, 3, 5, 7>`."""

    name = "table.entries"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[int, ...]:
        def number() -> int:
            return parser.parse_integer(allow_boolean=False, allow_negative=True)

        return tuple(parser.parse_comma_separated_list(parser.Delimiter.ANGLE, number))

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(", ".join(map(str, self.data)))


@irdl_op_definition
class LookUpOp(IRDLOperation):
    """The entry that an integer of up to eight bits names."""

    name = "table.look_up"
    index = operand_def(IntegerType)
    entries = prop_def(EntriesAttr)
    result = result_def(IntegerType | Float32Type)
    traits = traits_def(Pure())
    assembly_format = "$index `in` $entries attr-dict `:` type($index) `->` type($result)"

    def __init__(self, index: SSAValue, entries: Sequence[int], result: Attribute) -> None:
        super().__init__(operands=[index], result_types=[result], properties={"entries": EntriesAttr(tuple(entries))})

    def verify_(self) -> None:
        bits, width = type_bits(self.index.type), type_bits(self.result.type)
        if bits > MOST_INDEX_BITS:
            raise VerifyException(f"look_up: an operand of {bits} bits, more than {MOST_INDEX_BITS}")
        if len(self.entries.data) != 1 << bits:
            raise VerifyException(
                f"look_up: {len(self.entries.data)} entries for the {1 << bits} numbers of {bits} bits"
            )
        whole = isinstance(self.result.type, IntegerType) and width > 1
        low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if whole else (0, (1 << width) - 1)
        if not all(low <= entry <= high for entry in self.entries.data):
            raise VerifyException(f"look_up: an entry is no {self.result.type}")


def entries_of(values: Array) -> tuple[int, ...]:
    """The results for all bit patterns of an operand as entries."""
    whole = values.view(np.uint32) if values.dtype == np.float32 else values
    return tuple(int(value) for value in whole)


def every_index(kind: Attribute) -> Array:
    """All numbers of an integer type, in the order of their bit patterns."""
    bits = type_bits(kind)
    patterns = np.arange(1 << bits)
    signed = patterns - ((patterns >> (bits - 1)) << bits) if bits > 1 else patterns
    return signed.astype(number_type(kind).dtype)


@lru_cache(maxsize=512)
def _numbers(entries: EntriesAttr, kind: Attribute) -> Array:
    if isinstance(kind, Float32Type):
        return np.array(entries.data, np.uint32).view(np.float32)
    return np.array(entries.data, number_type(kind).dtype)


def numbers_of(op: LookUpOp) -> Array:
    """The entries as numbers of the result's type; not to be changed."""
    return _numbers(op.entries, op.result.type)


def look_up(op: Operation, operands: Sequence[Array]) -> Array:
    """The meaning of the operation on arrays."""
    assert isinstance(op, LookUpOp)
    index = np.asarray(operands[0])
    if index.dtype != np.bool_:
        index = index.astype(np.int64) & ((1 << type_bits(op.index.type)) - 1)
    return np.asarray(numbers_of(op)[index.astype(np.int64)])


def bounds_of_entries(op: LookUpOp) -> Bounds | None:
    """What is known of a result whatever the operand; None where it may be no finite number."""
    numbers = numbers_of(op)
    if not np.isfinite(numbers).all():
        return None
    return Bounds(float(numbers.min(initial=inf)), float(numbers.max(initial=-inf)))
