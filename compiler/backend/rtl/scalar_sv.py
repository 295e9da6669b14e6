"""Integer and bit operations as SystemVerilog expressions with the interpreter's meaning, bit for bit.

Numbers are signed expressions of exactly the bits that their values need; a result is cut to its type's width where
it may not fit, which is wrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from penstock.compiler.backend.rtl.lines import clog2
from penstock.compiler.backend.rtl.numbers import ValueRange, pattern_range, signed_range, type_bits, type_range
from penstock.compiler.backend.rtl.scalars import LaneBody, Scalar
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.number_types import number_type

_SIGNED = ("==", "!=", "<", "<=", ">", ">=")
_UNSIGNED = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Operands:
    """The operands of an operation in the stage in which it starts."""

    op: Operation
    scalars: Sequence[Scalar]
    stage: int
    body: LaneBody

    def term(self, index: int) -> str:
        return self.scalars[index].term(self.stage, self.body)

    def pattern(self, index: int, width: int) -> str:
        return self.scalars[index].pattern(self.stage, self.body, width)

    def unsigned(self, index: int) -> str:
        """The bits of the type read as a non-negative number."""
        scalar = self.scalars[index]
        return self.term(index) if scalar.range.low >= 0 else f"$signed({{1'b0, {self.pattern(index, scalar.bits)}}})"

    @property
    def width(self) -> int:
        return type_bits(self.op.results[0].type)

    def range(self, index: int) -> ValueRange:
        return self.scalars[index].range

    def constant(self, index: int) -> int | None:
        return self.scalars[index].literal


Spelling = tuple[str, ValueRange]
"""An expression and the range of its values, which is cut to the type where it does not fit."""


def literal_of(value: Attribute) -> int:
    """A constant as a signed number, or a float's bits."""
    if isinstance(value, IntegerAttr):
        integer = cast("IntegerAttr[Any]", value)
        width = type_bits(integer.type)
        pattern = int(integer.value.data) & ((1 << width) - 1)
        return pattern - (1 << width) if pattern >> (width - 1) else pattern
    if isinstance(value, FloatAttr):
        number = cast("FloatAttr[Any]", value)
        row = number_type(number.type)
        return int(np.array(number.value.data, row.dtype).view(f"u{row.dtype.itemsize}"))
    raise PenstockError(code="unsupported-op", what=f"a constant of the form {value}")


def _sum(o: Operands) -> Spelling:
    a, b = o.range(0), o.range(1)
    if o.op.name == "arith.subi":
        return f"{o.term(0)} - {o.term(1)}", ValueRange(a.low - b.high, a.high - b.low)
    return f"{o.term(0)} + {o.term(1)}", ValueRange(a.low + b.low, a.high + b.high)


def _product(o: Operands) -> Spelling:
    return f"{o.term(0)} * {o.term(1)}", product_range(o.range(0), o.range(1))


def product_range(a: ValueRange, b: ValueRange) -> ValueRange:
    corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    return ValueRange(min(corners), max(corners))


def _extreme(o: Operands) -> Spelling:
    a, b = o.range(0), o.range(1)
    sign = ">" if "max" in o.op.name else "<"
    if o.op.name.endswith("ui") and min(a.low, b.low) < 0:
        choice = f"{o.unsigned(0)} {sign} {o.unsigned(1)} ? {o.term(0)} : {o.term(1)}"
        return choice, a | b
    best = max if sign == ">" else min
    return f"{o.term(0)} {sign} {o.term(1)} ? {o.term(0)} : {o.term(1)}", ValueRange(
        best(a.low, b.low), best(a.high, b.high)
    )


def _bitwise(o: Operands) -> Spelling:
    sign = {"arith.andi": "&", "arith.ori": "|", "arith.xori": "^"}[o.op.name]
    a, b = o.range(0), o.range(1)
    text = f"{o.term(0)} {sign} {o.term(1)}"
    if a.low >= 0 and b.low >= 0:
        low = min(a.high, b.high) if sign == "&" else (1 << max(a.high.bit_length(), b.high.bit_length())) - 1
        return text, ValueRange(0, low)
    width = max(r.width + (r.low >= 0) for r in (a, b))
    return text, signed_range(width)


def _shift(o: Operands) -> Spelling:
    a, amount, width = o.range(0), o.constant(1), o.width
    by = str(amount) if amount is not None else o.pattern(1, clog2(width))
    most = width - 1 if amount is None else amount
    match o.op.name:
        case "arith.shli":
            text = f"{width}'({o.term(0)}) << {by}"
            if amount is not None:
                return text, ValueRange(a.low << amount, a.high << amount)
            return text, signed_range(width)
        case "arith.shrui" if a.low < 0:
            text = f"{o.unsigned(0)} >>> {by}"
            return text, ValueRange(0, ((1 << width) - 1) >> (amount or 0))
        case _:
            ends = [v >> n for v in (a.low, a.high) for n in (amount or 0, most)]
            return f"{o.term(0)} >>> {by}", ValueRange(min(ends), max(ends))


def _compare(o: Operands) -> Spelling:
    predicate = cast(arith.CmpiOp, o.op).predicate.value.data
    if predicate < len(_SIGNED):
        return f"{o.term(0)} {_SIGNED[predicate]} {o.term(1)}", ValueRange(-1, 0)
    return f"{o.unsigned(0)} {_UNSIGNED[predicate - len(_SIGNED)]} {o.unsigned(1)}", ValueRange(-1, 0)


def _select(o: Operands) -> Spelling:
    condition = o.pattern(0, 1)
    return f"{condition} ? {o.term(1)} : {o.term(2)}", o.range(1) | o.range(2)


def _same(o: Operands) -> Spelling:
    """The number stays, and wraps if the new type is too narrow for it."""
    return o.term(0), o.range(0)


def _extend_unsigned(o: Operands) -> Spelling:
    if o.range(0).low >= 0:
        return _same(o)
    return o.unsigned(0), pattern_range(o.scalars[0].bits)


def _pattern(o: Operands) -> Spelling:
    """The same bits as another type."""
    whole = type_range(o.op.results[0].type)
    text = o.pattern(0, o.width)
    return (f"$signed({text})" if whole.signed else text), whole


def _absolute(o: Operands) -> Spelling:
    a = o.range(0)
    return f"{o.term(0)} < 0 ? -{_grown(o)} : {o.term(0)}", ValueRange(0, max(abs(a.low), abs(a.high)))


def _grown(o: Operands) -> str:
    return f"{o.range(0).width + 1}'({o.term(0)})"


def _sign_bit(o: Operands) -> Spelling:
    """Sign changes of floats touch one bit."""
    width = o.width
    bits = o.pattern(0, width)
    rest = (1 << (width - 1)) - 1
    if o.op.name == "arith.negf":
        return f"{bits} ^ {width}'h{1 << (width - 1):x}", pattern_range(width)
    if o.op.name == "math.absf":
        return f"{bits} & {width}'h{rest:x}", pattern_range(width)
    return f"({bits} & {width}'h{rest:x}) | ({o.pattern(1, width)} & {width}'h{1 << (width - 1):x})", pattern_range(
        width
    )


SPELLINGS: dict[str, Callable[[Operands], Spelling]] = {
    "arith.addi": _sum,
    "arith.subi": _sum,
    "arith.muli": _product,
    **dict.fromkeys(("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui"), _extreme),
    **dict.fromkeys(("arith.andi", "arith.ori", "arith.xori"), _bitwise),
    **dict.fromkeys(("arith.shli", "arith.shrsi", "arith.shrui"), _shift),
    "arith.cmpi": _compare,
    "arith.select": _select,
    **dict.fromkeys(("arith.extsi", "arith.trunci", "arith.index_cast"), _same),
    "arith.extui": _extend_unsigned,
    "arith.bitcast": _pattern,
    "math.absi": _absolute,
    **dict.fromkeys(("arith.negf", "math.absf", "math.copysign"), _sign_bit),
}


NUMBER_STAYS = {"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"}
"""Where it fits, a number is the same in the new type."""


def result_range(op: Operation, found: ValueRange) -> ValueRange:
    """What of a range survives in the result's type."""
    whole = type_range(op.results[0].type)
    return found if whole.low <= found.low and found.high <= whole.high else whole
