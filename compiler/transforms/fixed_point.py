"""Translates the float body of an elementwise operation into integer arithmetic.

Integers stand for real numbers through a scale that is known at compile time. An accumulator keeps its own scale as
long as it can: a bias is added and ReLU taken in i32. Where values of different scales meet, or the result is
narrowed, values are aligned: multiplied to a common scale of 2**-shift output steps. A multiplier has no more bits
than rounding to a step can tell apart, and an accumulator goes into the product with the bits that its largest sum
takes: what is multiplied is 27 bits by 16 or less, where the types would say 32 by 32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.generics import constant

I32, I64 = IntegerType(32), IntegerType(64)
MULTIPLIER_LIMIT = 1 << 31
STEP_BITS, RESULT_BITS = 15, 31
"""Of multipliers without their sign: with 15, a number of 127 steps is off by 1/256 of one at most. What leaves at
levels finer than f32 has more."""
_WIDE_LIMIT = 1 << 62


class NotFixedPoint(Exception):
    """The body cannot be written in integers; the message says why."""


class TooWide(Exception):
    """With this shift a sum does not fit, or no multiplier needs so fine a unit: one less by `places` may do.

    All that is too wide halves from one shift to the next, so that those between are too wide as well.
    """

    def __init__(self, places: int = 1) -> None:
        super().__init__()
        self.places = max(1, places)


@dataclass(frozen=True)
class KnownNumbers:
    """Numbers known at compile time, spread over the loops (size one along loops they do not depend on)."""

    numbers: Array


@dataclass(frozen=True)
class Fixed:
    """An integer of the body. real = scale * integer; `scale` is spread over the loops; |integer| <= bound."""

    value: SSAValue
    scale: Array
    bound: int
    width: int
    aligned: bool = False
    non_negative: bool = False


@dataclass(frozen=True)
class Flag:
    """A bit of the body, which chooses."""

    value: SSAValue


Operand = KnownNumbers | Fixed


@dataclass
class Translator:
    """Builds one integer body. `integers(numbers, width, what)` gives a constant or per-channel parameter."""

    block: Block
    integers: Callable[[Array, int, str], SSAValue]
    step: Array
    """The scale of the result, spread over the loops."""
    shift: int
    multiplier_bits: int = STEP_BITS
    spare: int | None = None
    """By how many places the unit is finer than what every multiplier so far asks for; None before the first."""

    def translate(self, op: Operation, given: Sequence[Operand | Flag]) -> Operand:
        """The integer counterpart of one float operation."""
        if isinstance(op, arith.SelectOp):
            return self._select(given)
        operands = [x for x in given if not isinstance(x, Flag)]
        if len(operands) < len(given):
            raise NotFixedPoint("a bit as a number")
        if all(isinstance(x, KnownNumbers) for x in operands):
            return KnownNumbers(evaluate(op, [x.numbers for x in operands if isinstance(x, KnownNumbers)]))
        match op, operands:
            case arith.NegfOp(), [x]:
                return self._multiply(x, KnownNumbers(np.asarray(-1.0)))
            case arith.AddfOp(), [x, y]:
                return self.add(x, y)
            case arith.SubfOp(), [x, y]:
                return self.add(x, self._multiply(y, KnownNumbers(np.asarray(-1.0))))
            case arith.MulfOp(), [x, KnownNumbers() as y] | [KnownNumbers() as y, x]:
                return self._multiply(x, y)
            case arith.DivfOp(), [x, KnownNumbers() as y] if np.all(y.numbers != 0):
                return self._multiply(x, KnownNumbers(1.0 / y.numbers))
            case arith.MaximumfOp(), [x, y]:
                return self._extreme(arith.MaxSIOp, x, y)
            case arith.MinimumfOp(), [x, y]:
                return self._extreme(arith.MinSIOp, x, y)
            case _:
                raise NotFixedPoint(op.name)

    def narrow(self, value: Operand, width: int, gap: float | None = None) -> SSAValue:
        """The result in units of `step`, rounded half up and clamped to the width; as it is where these are its units.

        With a `gap` the lowest integer is for what lies more than that below the lowest that counts (`find_masks`).
        """
        if isinstance(value, Fixed) and gap is None and value.width == width and np.all(value.scale == self.step):
            return value.value
        fixed = self._align(value)
        if self.spare:
            raise TooWide(self.spare)
        rounded = self._emit(arith.AddiOp(fixed.value, self._constant(1 << (self.shift - 1), 64)))
        shifted = self._emit(arith.ShRSIOp(rounded, self._constant(self.shift, 64)))
        limit = 1 << (width - 1)
        clamped = self._emit(arith.MinSIOp(shifted, self._constant(limit - 1, 64)))
        if gap is not None:
            below = int(min(gap / float(self.step.flat[0]) + limit - 1, float(_WIDE_LIMIT >> self.shift)))
            clamped = self._emit(arith.MaxSIOp(clamped, self._constant(1 - limit, 64)))
            beyond = self._emit(arith.AddiOp(shifted, self._constant(below, 64)))
            sign = self._emit(arith.ShRSIOp(beyond, self._constant(63, 64)))  # -1 where it is left out, else 0
            clamped = self._emit(arith.AddiOp(clamped, sign))
        elif not fixed.non_negative:
            clamped = self._emit(arith.MaxSIOp(clamped, self._constant(-limit, 64)))
        return self._emit(arith.TruncIOp(clamped, IntegerType(width)))

    def add(self, x: Operand, y: Operand) -> Fixed:
        if isinstance(x, KnownNumbers):
            x, y = y, x
        assert isinstance(x, Fixed)
        if isinstance(y, KnownNumbers) and x.width == 32 and not x.aligned:
            numbers = self._in_units(y, x.scale)
            bound = x.bound + int(np.max(np.abs(numbers)))
            if bound < MULTIPLIER_LIMIT:
                total = self._emit(arith.AddiOp(x.value, self.integers(numbers, 32, "bias")))
                return Fixed(total, x.scale, bound, 32)
        x = self._align(x)
        other = self._align(y)
        bound = _checked(x.bound + other.bound)
        total = self._emit(arith.AddiOp(x.value, other.value))
        return Fixed(total, x.scale, bound, 64, aligned=True, non_negative=x.non_negative and other.non_negative)

    def _multiply(self, x: Operand, y: KnownNumbers) -> Operand:
        if isinstance(x, KnownNumbers):
            return KnownNumbers(x.numbers * y.numbers)
        if x.aligned:
            if np.all(y.numbers == -1):
                zero = self._constant(0, 64)
                return Fixed(self._emit(arith.SubiOp(zero, x.value)), x.scale, x.bound, 64, aligned=True)
            raise NotFixedPoint("a product of a sum")
        if np.all(y.numbers > 0):
            return Fixed(x.value, x.scale * y.numbers, x.bound, x.width, non_negative=x.non_negative)
        return self._scaled(x, x.scale * y.numbers)

    def _select(self, operands: Sequence[Operand | Flag]) -> Fixed:
        """One of two, at the scale that both have, or at the common one."""
        which, x, y = operands
        if not isinstance(which, Flag) or not isinstance(x, Fixed) or not isinstance(y, Fixed):
            raise NotFixedPoint("a choice between others than two streams")
        if x.width != y.width or x.aligned != y.aligned or not np.array_equal(x.scale, y.scale):
            x, y = self._align(x), self._align(y)
        sign = x.non_negative and y.non_negative
        chosen = self._emit(arith.SelectOp(which.value, x.value, y.value))
        return Fixed(chosen, x.scale, max(x.bound, y.bound), x.width, x.aligned, sign)

    def _extreme(self, kind: type[arith.MaxSIOp | arith.MinSIOp], x: Operand, y: Operand) -> Fixed:
        if isinstance(x, KnownNumbers):
            x, y = y, x
        assert isinstance(x, Fixed)
        if isinstance(y, KnownNumbers):
            if x.width == 8:
                x = self._align(x)
            numbers = self._in_units(y, x.scale)
            bound = _checked(max(x.bound, int(np.max(np.abs(numbers)))))
            if x.width == 32 and bound >= MULTIPLIER_LIMIT:
                x = self._align(x)
                numbers = self._in_units(y, x.scale)
                bound = _checked(max(x.bound, int(np.max(np.abs(numbers)))))
            limit = self.integers(numbers, x.width, "limit")
            sign = bool(np.all(numbers >= 0)) and (kind is arith.MaxSIOp or x.non_negative)
            return Fixed(self._emit(kind(x.value, limit)), x.scale, bound, x.width, x.aligned, sign)
        x, other = self._align(x), self._align(y)
        sign = x.non_negative and other.non_negative
        bound = max(x.bound, other.bound)
        return Fixed(self._emit(kind(x.value, other.value)), x.scale, bound, 64, aligned=True, non_negative=sign)

    def _align(self, x: Operand) -> Fixed:
        unit = np.asarray(self.step / 2.0**self.shift)
        if isinstance(x, KnownNumbers):
            numbers = self._in_units(x, unit)
            bound = _checked(int(np.max(np.abs(numbers))))
            return Fixed(self.integers(numbers, 64, "term"), unit, bound, 64, True, bool(np.all(numbers >= 0)))
        return x if x.aligned else self._scaled(x, x.scale)

    def _scaled(self, x: Fixed, scale: Array) -> Fixed:
        """x * scale in the common unit: times a multiplier, which counts larger steps where the unit is too fine."""
        unit = np.asarray(self.step / 2.0**self.shift)
        multipliers, spare = _multipliers(scale / unit, self.multiplier_bits)
        largest = int(np.max(np.abs(multipliers)))
        if largest:
            self.spare = spare if self.spare is None else min(self.spare, spare)
        bound = _checked(x.bound * largest << spare)
        held = self.integers(multipliers.astype(np.int64), 16 if self.multiplier_bits < 16 else 32, "multiplier")
        product = self._emit(arith.MuliOp(self._extended(x), self._emit(arith.ExtSIOp(held, I64))))
        if spare:
            product = self._emit(arith.ShLIOp(product, self._constant(spare, 64)))
        sign = x.non_negative and bool(np.all(multipliers >= 0))
        return Fixed(product, unit, bound, 64, aligned=True, non_negative=sign)

    def _extended(self, x: Fixed) -> SSAValue:
        """In 64 bits, through those that its largest number takes: so wide is what multiplies it."""
        value, bits = x.value, x.bound.bit_length() + 1
        if max(8, bits) < x.width:
            value = self._emit(arith.TruncIOp(value, IntegerType(bits)))
        return self._emit(arith.ExtSIOp(value, I64))

    def _in_units(self, known: KnownNumbers, scale: Array) -> Array:
        numbers = np.floor(np.asarray(known.numbers, np.float64) / scale + 0.5)
        if not np.all(np.isfinite(numbers)):
            raise NotFixedPoint("an infinite constant")
        _checked(int(np.max(np.abs(numbers))))
        return numbers.astype(np.int64)

    def _constant(self, number: int, width: int) -> SSAValue:
        return self._emit(constant(number, IntegerType(width)))

    def _emit(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def _checked(bound: int) -> int:
    if bound >= _WIDE_LIMIT:
        raise TooWide(bound.bit_length() - _WIDE_LIMIT.bit_length())
    return bound


def _multipliers(ratio: Array, bits: int) -> tuple[Array, int]:
    """Whole numbers of at most so many bits, and the places by which each is to be shifted up, the same for all."""
    largest = float(np.max(np.abs(ratio)))
    spare = max(0, int(np.ceil(np.log2(largest))) - bits) if largest > 0 else 0
    rounded = np.floor(ratio / 2.0**spare + 0.5)
    if int(np.max(np.abs(rounded))) >> bits:
        spare += 1
        rounded = np.floor(ratio / 2.0**spare + 0.5)
    return rounded, spare
