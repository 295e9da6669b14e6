"""Elementwise operations after quantisation: in integers where they can be, else in f32 between conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import IntegerType, f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.scalars.operations import evaluate
from penstock.compiler.transforms.body_builder import BodyBuilder, along_result
from penstock.compiler.transforms.editor import element_type, layer_of, shape_of
from penstock.compiler.transforms.fixed_point import (
    RESULT_BITS,
    STEP_BITS,
    Fixed,
    Flag,
    KnownNumbers,
    NotFixedPoint,
    Operand,
    TooWide,
    Translator,
)
from penstock.compiler.transforms.generics import (
    constant,
    is_elementwise,
    maps_of,
    yielded,
)
from penstock.compiler.transforms.quantised_functions import TabulatedFunction, find_functions, needed_ops
from penstock.compiler.transforms.quantiser import LEVELS, Code, Quantiser

FunctionsOf = Mapping[SSAValue, TabulatedFunction]
Rounded = TypeVar("Rounded")
_LARGEST_SHIFT = 54
_RESULT_LEVELS = 1 << 23
"""Results that cannot leave at their accumulator's scale are rounded to so many levels: finer than f32."""


def quantise_elementwise(state: Quantiser, op: linalg.GenericOp) -> None:
    returned = all(isinstance(use.operation, func.ReturnOp) for use in op.results[0].uses)
    returned = returned and op.results[0] not in state.fed
    try:
        if op.results[0] in state.exact:
            raise NotFixedPoint("numbers that eight bits would spoil")
        new, code = _in_integers(state, op, returned)
    except NotFixedPoint:
        new, code = _in_floats(state, op, returned)
    state.define(op.results[0], new, code)


def _in_integers(state: Quantiser, op: linalg.GenericOp, returned: bool) -> tuple[linalg.GenericOp, Code]:
    steps = np.asarray(state.step(op.results[0], _RESULT_LEVELS)) if returned else state.steps(op.results[0])
    functions: FunctionsOf = {}
    if not returned and not _stays_real(state, op):
        functions = find_functions(state, op, steps)
    if functions and op.results[0] in state.masks:
        raise NotFixedPoint("a function with a mask")
    indices: dict[SSAValue, int] = {}
    for value, function in functions.items():  # one may lead to the next
        indices[value] = _index_shift(state, op, function, functions, indices)
    return _finest(lambda shift: _with_shift(state, op, steps, shift, returned, functions, indices))


def _finest(attempt: Callable[[int], Rounded]) -> Rounded:
    """With the largest shift that fits."""
    shift = _LARGEST_SHIFT
    while shift > 0:
        try:
            return attempt(shift)
        except TooWide as error:
            shift -= error.places
    raise NotFixedPoint("no common scale fits 64 bits")


def _index_shift(
    state: Quantiser, op: linalg.GenericOp, function: TabulatedFunction, functions: FunctionsOf,
    indices: Mapping[SSAValue, int],
) -> int:  # fmt: skip
    """The shift with which a function's operand is rounded to its levels."""

    def attempt(shift: int) -> int:
        body = _Body(state, op, functions, indices)
        body.index(function, shift)
        return shift

    return _finest(attempt)


def _with_shift(
    state: Quantiser, op: linalg.GenericOp, steps: Array, shift: int, returned: bool, functions: FunctionsOf,
    indices: Mapping[SSAValue, int],
) -> tuple[linalg.GenericOp, Code]:  # fmt: skip
    body = _Body(state, op, functions, indices)
    builder = body.builder
    spread = builder.spread(steps, maps_of(op)[-1]) if steps.size > 1 else steps
    translator = body.translator(spread, shift, RESULT_BITS if returned else STEP_BITS)
    result = body.translate(translator, yielded(op))
    if isinstance(result, Flag):
        raise NotFixedPoint("a bit is no number")
    rank = len(shape_of(op.results[0]))
    layered = isinstance(result, Fixed) and result.scale.ndim > len(builder.trips)
    if returned and isinstance(result, Fixed) and result.width == 32 and not layered:
        scale = along_result(result.scale, maps_of(op)[-1])
        code = Code(scale, result.bound, 32)
        if code.along_last(_port_columns(state, op)):
            return builder.build(state, result.value, _names(state, op)), code
    width = 32 if returned else 8
    mask = None if returned else state.masks.get(op.results[0])
    scale = steps if steps.size > 1 else np.full((1,) * rank, steps.flat[0])
    code = Code(scale, 1 << (width - 1), width, None if mask is None else mask.left_out)
    gap = None if mask is None else mask.gap
    return builder.build(state, translator.narrow(result, width, gap), _names(state, op)), code


class _Body:
    """A body in integers while it grows. `indices` are the shifts of its functions' operands."""

    def __init__(
        self, state: Quantiser, op: linalg.GenericOp, functions: FunctionsOf, indices: Mapping[SSAValue, int]
    ) -> None:
        self.state, self.op, self.functions, self.indices = state, op, functions, indices
        self.builder = BodyBuilder(op)
        self.given: dict[SSAValue, Operand | Flag] = {}
        for argument, value, layout in zip(op.body.block.args, op.inputs, maps_of(op), strict=False):
            self.given[argument] = _operand(state, self.builder, value, layout)

    def translator(self, step: Array, shift: int, multiplier_bits: int = STEP_BITS) -> Translator:
        return Translator(self.builder.block, self._integers, step, shift, multiplier_bits)

    def translate(self, translator: Translator, wanted: SSAValue) -> Operand | Flag:
        """One value of the body, with all that leads to it."""
        found = dict(self.given)
        for inner in needed_ops(self.op, self.functions, wanted):
            value = inner.results[0]
            if (function := self.functions.get(value)) is None:
                found[value] = translator.translate(inner, [found[x] for x in inner.operands])
                continue
            look_up = function.look_up(self.index(function, self.indices[value]))
            self.builder.block.add_op(look_up)
            bound = max(map(abs, function.entries))
            found[value] = Fixed(look_up.result, np.asarray(function.scale), bound, function.width)
        return found[wanted]

    def index(self, function: TabulatedFunction, shift: int) -> SSAValue:
        """A function's operand at its levels."""
        translator, away = self.translator(np.asarray(function.step), shift), KnownNumbers(np.asarray(-function.centre))
        made = function.source.owner
        sides = [self.translate(translator, x) for x in made.operands] if isinstance(made, arith.AddfOp) else []
        known = next((x for x in sides if isinstance(x, KnownNumbers)), None)
        if known is not None and len(sides) == 2:  # a bias takes the levels' centre with it
            other = next((x for x in sides if x is not known), known)
            if isinstance(other, Flag):
                raise NotFixedPoint("a bit as a number")
            return translator.narrow(translator.add(other, KnownNumbers(known.numbers - function.centre)), 8)
        whole = self.translate(translator, function.source)
        if isinstance(whole, Flag):
            raise NotFixedPoint("a bit as a number")
        return translator.narrow(translator.add(whole, away), 8)

    def _integers(self, numbers: Array, width: int, what: str) -> SSAValue:
        return self.builder.numbers(numbers, IntegerType(width), what)


def _operand(state: Quantiser, builder: BodyBuilder, value: SSAValue, layout: AffineMap) -> Operand | Flag:
    if state.editor.is_param(value):
        rows = state.rows(value)
        return KnownNumbers(builder.spread(rows[0] if len(rows) == 1 else rows, layout))
    new = state.values[value]
    code = state.codes[new]
    if code is None:
        if get_element_type_or_self(new.type) == IntegerType(1):
            return Flag(builder.read(new, layout, IntegerType(1)))
        raise NotFixedPoint("an operand in f32")
    if code.left_out is not None:
        raise NotFixedPoint("an operand with a mask")
    scale = builder.spread(code.scale, layout)
    return Fixed(builder.read(new, layout, IntegerType(code.width)), scale, code.bound, code.width)


def _port_columns(state: Quantiser, op: linalg.GenericOp) -> int:
    """The last dimension of the port that a returned value leaves through."""
    for use in op.results[0].uses:
        if isinstance(use.operation, func.ReturnOp):
            shape = state.editor.program.signature.outputs[use.index].shape
            return shape[-1] if shape else 1
    return 1


def _names(state: Quantiser, op: linalg.GenericOp) -> dict[str, str]:
    """A bias that comes from one parameter keeps its name."""
    params = [x for x in op.inputs if state.editor.is_param(x)]
    return {"bias": state.editor.name(params[0])} if len(params) == 1 else {}


def _in_floats(state: Quantiser, op: linalg.GenericOp, returned: bool) -> tuple[linalg.GenericOp, Code | None]:
    builder, mapping = BodyBuilder(op), dict[SSAValue, SSAValue]()
    for argument, value, layout in zip(op.body.block.args, op.inputs, maps_of(op), strict=False):
        mapping[argument] = _as_float(state, builder, value, layout)
    for inner in list(op.body.block.ops)[:-1]:
        divisor = 0.0 if returned else _divisor(inner)
        if divisor:  # eight bits do not show a quotient's last bit, and a divider takes as much as four multipliers
            mapping[inner.results[0]] = _emit(builder, arith.MulfOp, mapping[inner.operands[0]], 1.0 / divisor)
        else:
            builder.block.add_op(inner.clone(mapping))
    result = mapping.get(yielded(op), yielded(op))
    if result.type == IntegerType(1) and not returned:
        return builder.build(state, result, {}), None
    if result.type != f32:
        raise PenstockError(
            code="unsupported-quantisation",
            what=f"a result of type {result.type} cannot be quantised",
            where=f"layer '{layer_of(op)}'",
            hint="compile without --quantize",
        )
    if returned:
        return builder.build(state, result, {}), None
    if op.results[0] not in state.masks and _spread_by_readers(op):
        # within the measured range, as eight bits would be: a variance that was rounded to 0 gives 1/sqrt(eps)
        largest = state.ranges[op.results[0]]
        result = _emit(builder, arith.MaximumfOp, result, -largest)
        return builder.build(state, _emit(builder, arith.MinimumfOp, result, largest), {}), None
    if op.results[0] in state.exact:
        return builder.build(state, result, {}), None
    steps, mask = state.steps(op.results[0]), state.masks.get(op.results[0])
    scaled = _multiplied(builder, result, builder.spread(1.0 / steps, maps_of(op)[-1]))
    result = _emit(builder, arith.MaximumfOp, scaled, -128.0 if mask is None else -float(LEVELS))
    result = _emit(builder, arith.MinimumfOp, result, float(LEVELS))
    if mask is not None:
        result = _where_below(builder, scaled, -LEVELS - mask.gap / float(steps.flat[0]), -LEVELS - 1.0, result)
    rounded = math_dialect.RoundEvenOp(result)
    narrow = arith.FPToSIOp(rounded.result, IntegerType(8))
    builder.block.add_ops([rounded, narrow])
    code = Code(steps, 128, 8, None if mask is None else mask.left_out)
    return builder.build(state, narrow.result, {}), code


def _divisor(op: Operation) -> float:
    """What a number is divided by, if it is the same for all; else 0."""
    if not isinstance(op, arith.DivfOp) or not isinstance(op.rhs.owner, arith.ConstantOp):
        return 0.0
    return float(evaluate(op.rhs.owner, []))


def _stays_real(state: Quantiser, op: linalg.GenericOp) -> bool:
    return op.results[0] in state.uneven and _spread_by_readers(op)


def _spread_by_readers(op: linalg.GenericOp) -> bool:
    """Whether elementwise operations repeat its numbers, as a norm's rows do: few of them cross, and may stay f32."""
    readers = [use.operation for use in op.results[0].uses]
    rank = len(shape_of(op.results[0]))
    return all(isinstance(r, linalg.GenericOp) and is_elementwise(r) and len(trip_counts(r)) > rank for r in readers)


def _where_below(builder: BodyBuilder, value: SSAValue, limit: float, then: float, otherwise: SSAValue) -> SSAValue:
    """`then` where `value` is below a limit: how what a mask left out is written and read."""
    bound, chosen = constant(limit, f32), constant(then, f32)
    lower = arith.CmpfOp(value, bound.result, "olt")
    result = arith.SelectOp(lower.result, chosen.result, otherwise)
    builder.block.add_ops([bound, chosen, lower, result])
    return result.result


def _as_float(state: Quantiser, builder: BodyBuilder, value: SSAValue, layout: AffineMap) -> SSAValue:
    if state.editor.is_param(value):
        rows = state.rows(value)
        return builder.read(state.param(state.editor.name(value), rows), layout, element_type(rows[0]))
    new = state.values[value]
    code = state.codes[new]
    if code is None:
        return builder.read(new, layout, get_element_type_or_self(new.type))
    argument = builder.read(new, layout, IntegerType(code.width))
    number = arith.SIToFPOp(argument, f32)
    builder.block.add_op(number)
    product = _multiplied(builder, number.result, builder.spread(code.scale, layout))
    if code.left_out is None:
        return product
    return _where_below(builder, number.result, 0.5 - code.bound, code.left_out, product)


def _multiplied(builder: BodyBuilder, value: SSAValue, numbers: Array) -> SSAValue:
    known = builder.numbers(numbers, None, "scale")
    made = arith.MulfOp(value, known)
    builder.block.add_op(made)
    return made.result


def _emit(builder: BodyBuilder, kind: type[Operation], value: SSAValue, number: float) -> SSAValue:
    known = constant(number, f32)
    made = kind.create(operands=[value, known.result], result_types=[f32])
    builder.block.add_ops([known, made])
    return made.results[0]
