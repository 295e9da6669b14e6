"""Translates the float body of an elementwise operation into integers wherever whole numbers flow through it.

A value is known before, real, or whole: `scale * (integer + offset)`. Products with what is known only change the
scale; rounding makes whole numbers of real ones, and shifts whole ones. Sums of other scales, and what is rounded at a
scale that is no power of two, are aligned first: multiplied to units of 2**-shift steps of the rounding that follows.
Where all scales are powers of two that is exact, and so the bits are those of the float arithmetic that stood here;
elsewhere it is exact to 2**-20 of a step and better, where float32 sums have been rounded on their way. What has no
integer form takes the real numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.ir import Block, Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.fixed_point import MULTIPLIER_LIMIT, KnownNumbers, NotFixedPoint, TooWide
from penstock.compiler.transforms.generics import constant

_NARROW, _WIDE = 1 << 31, 1 << 62
_EXACT_BITS = 40
"""Sums of scales that need no finer unit than this many binary places are made without any rounding."""
ROUNDINGS = (math.RoundEvenOp, math.FloorOp, math.CeilOp)
_SIGNS = {1: 0, 2: 4, 3: 5, 4: 2, 5: 3, 6: 1, 8: 0, 9: 4, 10: 5, 11: 2, 12: 3, 13: 1}
"""Predicates of arith.cmpf as those of arith.cmpi; whole numbers are never NaN."""


@dataclass(frozen=True)
class Scaled:
    """scale * (integer + offset), where low <= integer <= high. `scale` and `offset` are spread over the loops."""

    value: SSAValue
    scale: Array
    low: int
    high: int
    width: int
    offset: Array = field(default_factory=lambda: np.zeros((), np.int64))
    aligned: bool = False
    """In units of 2**-shift of the rounding that follows."""

    @property
    def bound(self) -> int:
        return max(abs(self.low), abs(self.high))


@dataclass(frozen=True)
class Real:
    """A float of the body, and what it is known to lie between."""

    value: SSAValue
    low: float = -np.inf
    high: float = np.inf
    is_whole: bool = False


BodyNumber = KnownNumbers | Scaled | Real


@dataclass
class BodyTranslator:
    """Builds one body. `numbers(array, type or None for f32, what)` gives a constant or a parameter along loops."""

    block: Block
    numbers: Callable[[Array, IntegerType | None, str], SSAValue]
    shift: int | None
    """None: as if every alignment fitted, to see how fine they are."""
    found: dict[SSAValue, BodyNumber]
    """Of the old body's values; the arguments and all that is known are in it from the start."""
    finest: int | None = 0
    """The binary places that would make every alignment exact; None if no number of them does."""

    def translate(self, op: Operation) -> BodyNumber:
        operands = [self.found[x] for x in op.operands]
        try:
            return self._in_integers(op, operands)
        except NotFixedPoint:
            return self._in_floats(op, operands)

    def real(self, number: BodyNumber) -> SSAValue:
        """As a float."""
        if isinstance(number, Real):
            return number.value
        if isinstance(number, KnownNumbers):
            return self.numbers(np.asarray(number.numbers, np.float32), None, "term")
        settled = self.settled(number)
        as_float = self._emit(arith.SIToFPOp(settled.value, f32))
        if np.all(settled.scale == 1.0):
            return as_float
        return self._emit(arith.MulfOp(as_float, self.numbers(settled.scale.astype(np.float32), None, "scale")))

    def settled(self, x: Scaled) -> Scaled:
        """Without an offset, at a width to compute with."""
        low, high = x.low + int(np.min(x.offset)), x.high + int(np.max(x.offset))
        width = max(x.width, 64 if max(abs(low), abs(high)) >= _NARROW else 32)
        value = self._widened(x, width)
        if np.any(x.offset):
            value = self._emit(arith.AddiOp(value, self._integers(x.offset, width, "offset")))
        return Scaled(value, x.scale, low, high, width, aligned=x.aligned)

    def narrowed(self, x: Scaled) -> Scaled:
        """As it is stored: in eight bits where its range has no more numbers than those."""
        x = self.settled(x)
        width = 8 if x.high - x.low < 256 else 16 if x.high - x.low < 1 << 16 else 32
        limit = 1 << (width - 1)
        offset = 0 if -limit <= x.low and x.high < limit else x.low + limit
        if x.bound >= _NARROW or x.bound + abs(offset) >= _NARROW:
            raise NotFixedPoint("more than 32 bits")
        value = x.value
        if offset:
            value = self._emit(arith.AddiOp(value, self._constant(-offset, x.width)))
        if width < x.width:
            value = self._emit(arith.TruncIOp(value, IntegerType(width)))
        return Scaled(value, x.scale, x.low - offset, x.high - offset, width, np.asarray(offset, np.int64))

    def _in_integers(self, op: Operation, operands: Sequence[BodyNumber]) -> BodyNumber:
        match op, operands:
            case math.RoundEvenOp() | math.FloorOp() | math.CeilOp(), [Scaled() as x]:
                return self._round(op, x)
            case math.RoundEvenOp() | math.FloorOp() | math.CeilOp(), [Real() as x]:
                low, high = (float(evaluate(op, [np.asarray(end, np.float32)])) for end in (x.low, x.high))
                return self._as_whole(Real(self._emit(type(op)(x.value)), low, high, True))
            case arith.NegfOp(), [Scaled() as x]:
                return self._negated(x)
            case arith.MulfOp(), [Scaled() as x, KnownNumbers() as y] | [KnownNumbers() as y, Scaled() as x]:
                return self._times(x, np.asarray(y.numbers, np.float64))
            case arith.DivfOp(), [Scaled() as x, KnownNumbers() as y] if np.all(y.numbers != 0):
                return self._times(x, 1.0 / np.asarray(y.numbers, np.float64))
            case arith.AddfOp(), [x, y] if isinstance(x, Scaled) or isinstance(y, Scaled):
                return self._sum(op, x, y)
            case arith.SubfOp(), [x, y] if isinstance(x, Scaled) or isinstance(y, Scaled):
                return self._sum(op, x, self._negated(y))
            case arith.MaximumfOp() | arith.MinimumfOp(), [x, y] if isinstance(x, Scaled) or isinstance(y, Scaled):
                return self._extreme(op, x, y)
            case arith.CmpfOp(), [Scaled() as x, KnownNumbers() as y] if np.all(y.numbers == 0):
                sign = _SIGNS.get(op.predicate.value.data)
                if sign is None:
                    raise NotFixedPoint("a comparison of order alone")
                x = self.settled(x)
                return Real(self._emit(arith.CmpiOp(x.value, self._constant(0, x.width), sign)))
            case arith.SelectOp(), [Real() as which, KnownNumbers() as x, KnownNumbers() as y]:
                return self._chosen(which, x, y)
            case _:
                raise NotFixedPoint(op.name)

    def _in_floats(self, op: Operation, operands: Sequence[BodyNumber]) -> BodyNumber:
        new = op.clone({old: self._operand(old, x) for old, x in zip(op.operands, operands, strict=True)})
        result = Real(self._emit(new))
        match op, operands:
            case arith.MaximumfOp() | arith.MinimumfOp(), [Real() as x, KnownNumbers() as y] | [
                KnownNumbers() as y,
                Real() as x,
            ]:
                pick = max if isinstance(op, arith.MaximumfOp) else min
                least, most = float(np.min(y.numbers)), float(np.max(y.numbers))
                whole = x.is_whole and bool(np.all(y.numbers == np.rint(y.numbers)))
                return self._as_whole(replace(result, low=pick(x.low, least), high=pick(x.high, most), is_whole=whole))
            case arith.AddfOp(), [Real() as x, KnownNumbers() as y] | [KnownNumbers() as y, Real() as x]:
                least, most = float(np.min(y.numbers)), float(np.max(y.numbers))
                whole = x.is_whole and bool(np.all(y.numbers == np.rint(y.numbers)))
                return self._as_whole(replace(result, low=x.low + least, high=x.high + most, is_whole=whole))
            case _:
                return result

    def _operand(self, old: SSAValue, number: BodyNumber) -> SSAValue:
        """Of the type that it had: what is known may be a truth or an index."""
        if not isinstance(number, KnownNumbers) or old.type == f32:
            return self.real(number)
        if np.size(number.numbers) != 1:
            raise NotFixedPoint("truths along loops")
        return self._emit(constant(np.ravel(number.numbers)[0], old.type))

    def _as_whole(self, x: Real) -> BodyNumber:
        """A float that is whole and lies within 16 bits is an integer from here on."""
        if not x.is_whole or not max(abs(x.low), abs(x.high)) < 1 << 16:
            return x
        value = self._emit(arith.FPToSIOp(x.value, IntegerType(32)))
        return Scaled(value, np.ones(()), int(x.low), int(x.high), 32)

    def _times(self, x: Scaled, factors: Array) -> Scaled:
        if np.all(factors > 0) and np.all(np.isfinite(factors)):
            return replace(x, scale=x.scale * factors)
        if np.all(factors < 0) and np.all(np.isfinite(factors)):
            negated = self._negated(x)
            assert isinstance(negated, Scaled)
            return replace(negated, scale=negated.scale * -factors)
        raise NotFixedPoint("a factor of zero, or of both signs")

    def _negated(self, x: BodyNumber) -> BodyNumber:
        if isinstance(x, KnownNumbers):
            return KnownNumbers(-x.numbers)
        if isinstance(x, Real):
            raise NotFixedPoint("a real number")
        x = self.settled(x)
        value = self._emit(arith.SubiOp(self._constant(0, x.width), x.value))
        return replace(x, value=value, low=-x.high, high=-x.low)

    def _sum(self, op: Operation, x: BodyNumber, y: BodyNumber) -> Scaled:
        if isinstance(x, KnownNumbers):
            x, y = y, x
        if not isinstance(x, Scaled) or isinstance(y, Real):
            raise NotFixedPoint("a real number")
        x = self.settled(x)
        if isinstance(y, KnownNumbers):
            steps = np.asarray(y.numbers, np.float64) / x.scale
            whole = np.rint(steps)
            if np.max(np.abs(whole), initial=0) < _NARROW / 2 and np.all(_is_close(steps, whole)):
                return self._plus(x, Scaled(x.value, x.scale, 0, 0, x.width), whole.astype(np.int64))
            x = self._aligned(x, self._factor(op))
            return self._plus(x, x, self._units(y, x))
        y = self.settled(y)
        if np.all(x.scale == y.scale):
            return self._plus(x, y)
        factor = self._factor(op)
        return self._plus(self._aligned(x, factor), self._aligned(y, factor))

    def _plus(self, x: Scaled, y: Scaled, known: Array | None = None) -> Scaled:
        """Of one scale; with known integers in the place of the second."""
        low, high = (y.low, y.high) if known is None else (int(np.min(known)), int(np.max(known)))
        low, high = x.low + low, x.high + high
        self._check(max(abs(low), abs(high)), _WIDE)
        width = max(x.width, 64 if max(abs(low), abs(high)) >= _NARROW else 32, y.width)
        other = self._widened(y, width) if known is None else self._integers(known, width, "bias")
        total = self._emit(arith.AddiOp(self._widened(x, width), other))
        return Scaled(total, x.scale, low, high, width, aligned=x.aligned)

    def _extreme(self, op: arith.MaximumfOp | arith.MinimumfOp, x: BodyNumber, y: BodyNumber) -> Scaled:
        is_larger = isinstance(op, arith.MaximumfOp)
        kind, pick = (arith.MaxSIOp, max) if is_larger else (arith.MinSIOp, min)
        if isinstance(x, KnownNumbers):
            x, y = y, x
        if not isinstance(x, Scaled) or isinstance(y, Real):
            raise NotFixedPoint("a real number")
        x = self.settled(x)
        if isinstance(y, Scaled):
            y = self.settled(y)
            if not np.all(x.scale == y.scale):
                factor = self._factor(op)
                x, y = self._aligned(x, factor), self._aligned(y, factor)
            width = max(x.width, y.width)
            value = self._emit(kind(self._widened(x, width), self._widened(y, width)))
            return Scaled(value, x.scale, pick(x.low, y.low), pick(x.high, y.high), width, aligned=x.aligned)
        steps = np.asarray(y.numbers, np.float64) / x.scale
        if np.any(np.isnan(steps)):
            raise NotFixedPoint("a limit that is no number")
        steps = np.clip(steps, x.low, x.high)  # a limit beyond what can come is that
        if not np.all(_is_close(steps, np.rint(steps))):
            x = self._aligned(x, self._factor(op))
            steps = np.clip(np.asarray(y.numbers, np.float64) / x.scale, x.low, x.high)
        limits = np.rint(steps).astype(np.int64)
        least, most = int(np.min(limits)), int(np.max(limits))
        if (least >= x.high and not is_larger) or (most <= x.low and is_larger):
            return x
        value = self._emit(kind(x.value, self._integers(limits, x.width, "limit")))
        return replace(x, value=value, low=pick(x.low, least), high=pick(x.high, most))

    def _chosen(self, which: Real, x: KnownNumbers, y: KnownNumbers) -> Scaled:
        """One of two numbers, as a bipolar quantiser has it."""
        if np.size(x.numbers) != 1 or np.size(y.numbers) != 1:
            raise NotFixedPoint("a choice along loops")
        ends = [float(np.ravel(one.numbers)[0]) for one in (x, y)]
        if not all(abs(end) < 1 << 15 and end == int(end) for end in ends):
            raise NotFixedPoint("a choice of real numbers")
        first, second = (self._constant(int(end), 32) for end in ends)
        value = self._emit(arith.SelectOp(which.value, first, second))
        return Scaled(value, np.ones(()), int(min(ends)), int(max(ends)), 32)

    def _round(self, op: Operation, x: Scaled) -> Scaled:
        x = self.settled(x)
        if np.all(x.scale == np.rint(x.scale)) and not x.aligned:
            return self._multiplied(x, x.scale, np.ones(()))
        mantissa, exponent = np.frexp(x.scale)
        even = np.all(mantissa == 0.5) and np.all(exponent == exponent.flat[0])
        if not x.aligned and even and -_EXACT_BITS <= exponent.flat[0] <= 0:
            shift = 1 - int(exponent.flat[0])
        else:
            x, shift = self._aligned(x, np.ones(())), self._places
        if not shift:
            return replace(x, scale=np.ones(()), aligned=False)
        value, amount = x.value, self._constant(shift, x.width)
        if isinstance(op, math.RoundEvenOp):  # up by just less than a half, and by a half where the step below is odd
            floor = self._emit(arith.ShRSIOp(value, amount))
            odd = self._emit(arith.AndIOp(floor, self._constant(1, x.width)))
            value = self._emit(arith.AddiOp(value, self._constant((1 << (shift - 1)) - 1, x.width)))
            value = self._emit(arith.AddiOp(value, odd))
        elif isinstance(op, math.CeilOp):
            value = self._emit(arith.AddiOp(value, self._constant((1 << shift) - 1, x.width)))
        value = self._emit(arith.ShRSIOp(value, amount))
        low, high = x.low >> shift, (x.high >> shift) + 1
        width = x.width
        if width > 32 and max(abs(low), abs(high)) < _NARROW:
            value, width = self._emit(arith.TruncIOp(value, IntegerType(32))), 32
        return Scaled(value, np.ones(()), low, high, width)

    def _aligned(self, x: Scaled, factor: Array) -> Scaled:
        """In units of 2**-shift steps of the rounding that follows, before which it is multiplied by `factor`."""
        if x.aligned:
            return x
        ratio = x.scale * factor
        self._note(ratio)
        return replace(self._multiplied(x, ratio * 2.0**self._places, 2.0**-self._places / factor), aligned=True)

    def _multiplied(self, x: Scaled, ratio: Array, scale: Array) -> Scaled:
        multipliers = np.rint(ratio)
        largest = int(np.max(np.abs(multipliers)))
        self._check(largest, MULTIPLIER_LIMIT)
        if largest == 1 and np.all(multipliers == 1):
            return replace(x, scale=scale)
        bound = x.bound * largest
        self._check(bound, _WIDE)
        width = max(x.width, 64 if bound >= _NARROW else 32)
        value = self._widened(x, width)
        if np.all(np.frexp(multipliers)[0] == 0.5):
            places = np.frexp(multipliers)[1] - 1
            value = self._emit(arith.ShLIOp(value, self._integers(places, width, "shift")))
        else:
            held = self.numbers(multipliers.astype(np.int64), IntegerType(32), "multiplier")
            if width > 32:
                held = self._emit(arith.ExtSIOp(held, IntegerType(width)))
            value = self._emit(arith.MuliOp(value, held))
        return Scaled(value, scale, min(x.low * largest, x.low), max(x.high * largest, x.high), width)

    def _units(self, known: KnownNumbers, x: Scaled) -> Array:
        steps = np.asarray(known.numbers, np.float64) / x.scale
        if not np.all(np.isfinite(steps)):
            raise NotFixedPoint("an infinite constant")
        self._note(steps * 2.0**-self._places)
        self._check(int(np.max(np.abs(steps))), _WIDE)
        return np.rint(steps).astype(np.int64)

    @property
    def _places(self) -> int:
        return 0 if self.shift is None else self.shift

    def _check(self, number: int, limit: int) -> None:
        if number >= limit and self.shift is not None:
            raise TooWide

    def _note(self, numbers: Array) -> None:
        """How many binary places these numbers have."""
        if self.finest is None:
            return
        for places in range(self.finest, _EXACT_BITS + 1):
            scaled = numbers * 2.0**places
            if np.all(scaled == np.rint(scaled)):
                self.finest = places
                return
        self.finest = None

    def _factor(self, op: Operation) -> Array:
        """What the result of an operation is multiplied by before it is rounded."""
        value = op.results[0]
        uses = list(value.uses)
        if len(uses) != 1:
            raise NotFixedPoint("a sum of several readers")
        reader, index = uses[0].operation, uses[0].index
        match reader:
            case math.RoundEvenOp() | math.FloorOp() | math.CeilOp():
                return np.ones(())
            case arith.MulfOp() | arith.DivfOp():
                other = self.found.get(reader.operands[1 - index])
                if not isinstance(other, KnownNumbers) or (isinstance(reader, arith.DivfOp) and index == 1):
                    raise NotFixedPoint("a product of a sum")
                numbers = np.asarray(other.numbers, np.float64)
                if not np.all(numbers > 0) or not np.all(np.isfinite(numbers)):
                    raise NotFixedPoint("a factor that is not above zero")
                return self._factor(reader) * (1.0 / numbers if isinstance(reader, arith.DivfOp) else numbers)
            case arith.AddfOp() | arith.SubfOp() | arith.NegfOp() | arith.MaximumfOp() | arith.MinimumfOp():
                return self._factor(reader)
            case _:
                raise NotFixedPoint("a sum that is not rounded")

    def _integers(self, numbers: Array, width: int, what: str) -> SSAValue:
        held = IntegerType(32 if np.max(np.abs(numbers)) < _NARROW else 64)
        value = self.numbers(numbers, held, what)
        return value if held.width.data >= width else self._emit(arith.ExtSIOp(value, IntegerType(width)))

    def _widened(self, x: Scaled, width: int) -> SSAValue:
        """Through the bits that its numbers take: so wide is what adds or multiplies it."""
        value, bits = x.value, max(8, x.bound.bit_length() + 1)
        if bits < x.width < width:
            value = self._emit(arith.TruncIOp(value, IntegerType(bits)))
        return value if x.width >= width else self._emit(arith.ExtSIOp(value, IntegerType(width)))

    def _constant(self, number: int, width: int) -> SSAValue:
        return self._emit(constant(number, IntegerType(width)))

    def _emit(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        return op.results[0]


def _is_close(steps: Array, whole: Array) -> Array:
    """Whether numbers are whole but for the rounding of a float32 that stands for one."""
    return np.abs(steps - whole) <= np.minimum(2.0**-22 * np.abs(steps), 2.0**-6)
