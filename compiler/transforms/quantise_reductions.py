"""Reductions on 8-bit integers: contractions with weights, products of activations, sums and maxima."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.utils.hints import isa
from xdsl.utils.type import get_element_type_or_self

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import trip_counts
from penstock.compiler.transforms.editor import layer_of, shape_of, tensor_of
from penstock.compiler.transforms.generics import (
    REDUCTION,
    build_generic,
    constant,
    empty,
    filled_with,
    is_elementwise,
    iterators_of,
    maps_of,
    scalar_constant,
    yielded,
)
from penstock.compiler.transforms.quantiser import Code, Quantiser

I8, I32 = IntegerType(8), IntegerType(32)
_ACCUMULATOR_LIMIT = 1 << 31
_BIAS_LIMIT = 1 << 30


def quantise_reduction(state: Quantiser, op: linalg.GenericOp) -> None:
    terms = reduced_terms(op)
    if any(op.inputs[t] in state.exact for t in terms):
        _in_floats(state, op)
    elif isinstance(yielded(op).owner, arith.MaximumfOp):
        if len(terms) != 1:
            raise _unsupported(op)
        _maximum(state, op, terms[0])
    else:
        _sum_of_products(state, op, terms)


def reduced_terms(op: linalg.GenericOp) -> list[int]:
    """Which operands one term of the reduction multiplies: one or two."""
    combine, block = yielded(op).owner, op.body.block
    assert isinstance(combine, Operation)
    term = combine.operands[1]
    factors: Sequence[SSAValue] = term.owner.operands if isinstance(term.owner, arith.MulfOp) else [term]
    positions = [index for factor in factors for index, a in enumerate(block.args[:-1]) if a is factor]
    if len(positions) != len(factors):
        raise _unsupported(op)
    return positions


def _unsupported(op: linalg.GenericOp) -> PenstockError:
    return PenstockError(
        code="unsupported-quantisation",
        what="a reduction of anything but single values or products of two cannot be quantised",
        where=f"layer '{layer_of(op)}'",
        hint="compile without --quantize, or compute the terms in an operation of their own",
    )


def _maximum(state: Quantiser, op: linalg.GenericOp, position: int) -> None:
    source = state.values[op.inputs[position]]
    code = state.codes[source]
    start = filled_with(op.outputs[0])
    assert code is not None
    assert start is not None
    number = scalar_constant(start.result)
    assert number is not None
    lowest = np.clip(np.float64(number) / np.min(code.scale), -code.bound, code.bound)
    block = Block(arg_types=[I8, I8])
    largest = arith.MaxSIOp(block.args[1], block.args[0])
    block.add_ops([largest, linalg.YieldOp(largest.result)])
    maps = [maps_of(op)[position], maps_of(op)[-1]]
    new = insert_reduction(op, [source], maps, block, I8, int(np.rint(lowest)))
    scale = _along_result(op, position, code)
    state.define(op.results[0], new, Code(scale, code.bound, 8, code.left_out))


def _in_floats(state: Quantiser, op: linalg.GenericOp) -> None:
    """The sum or the largest of numbers that stayed f32, which stays f32 too: the same operation on the new values."""
    new = op.clone({value: state.values[value] for value in op.inputs})
    assert op.parent is not None
    op.parent.insert_ops_before([new], op)
    state.define(op.results[0], new, None)


def _sum_of_products(state: Quantiser, op: linalg.GenericOp, terms: list[int]) -> None:
    maps = maps_of(op)
    rank = len(shape_of(op.results[0]))
    scale: Array = np.ones((1,) * rank)
    bound, operands, steps = 1, list[SSAValue](), dict[int, Array]()
    activations = [t for t in terms if not state.editor.is_param(op.inputs[t])]
    for position in activations:
        code = state.codes[state.values[op.inputs[position]]]
        assert code is not None
        bound *= code.bound
        loop = _channel_loop(op, position, code)
        if loop is None or list(op.iterator_types)[loop] != REDUCTION:
            scale = scale * _along_result(op, position, code)
        else:  # the weights take the steps of channels along
            largest = float(np.max(code.scale))
            scale, steps[loop] = scale * largest, code.scale.reshape(-1) / largest
    count = _reduced_elements(op)
    for position in terms:
        if position in activations:
            operands.append(state.values[op.inputs[position]])
            continue
        integers, weight_scale, column = _quantise_weight(state, op, position, float(np.min(scale)), steps)
        element = IntegerType(state.weight_bits)
        operands.append(state.param(state.editor.name(op.inputs[position]), integers, element))
        scale, bound, count = scale * weight_scale, bound * column, 1
    if bound * count >= _ACCUMULATOR_LIMIT:
        raise PenstockError(
            code="accumulator-overflow",
            what=f"sums of up to {bound * count} do not fit 32 bits",
            where=f"layer '{layer_of(op)}'",
            limit=f"{_ACCUMULATOR_LIMIT - 1}",
            hint="compile without --quantize, or split the layer's inputs",
        )
    block = product_sum([_element(value) for value in operands])
    start = filled_with(op.outputs[0])
    number = None if start is None else scalar_constant(start.result)
    if number is None or number != 0:
        raise _unsupported(op)
    new = insert_reduction(op, operands, [*(maps[t] for t in terms), maps[-1]], block, I32, 0)
    state.define(op.results[0], new, Code(scale, bound * count, 32))


def product_sum(kinds: Sequence[IntegerType]) -> Block:
    """The body that adds one or two narrow integers, or their product, to 32 bits."""
    block = Block(arg_types=[*kinds, I32])
    factors = [argument if argument.type == I32 else _wide(block, argument) for argument in block.args[:-1]]
    term = factors[0]
    if len(factors) == 2:
        product = arith.MuliOp(factors[0], factors[1])
        block.add_op(product)
        term = product.result
    total = arith.AddiOp(block.args[-1], term)
    block.add_ops([total, linalg.YieldOp(total.result)])
    return block


def _wide(block: Block, value: SSAValue) -> SSAValue:
    wide = arith.ExtSIOp(value, I32)
    block.add_op(wide)
    return wide.result


def _channel_loop(op: linalg.GenericOp, position: int, code: Code) -> int | None:
    """The loop along which an operand has a scale a channel."""
    return None if code.channel_dim is None else loop_of(maps_of(op)[position], code.channel_dim)


def _along_result(op: linalg.GenericOp, position: int, code: Code) -> Array:
    """An operand's scales along the result's dimensions: one, or one a channel that stays."""
    kept, own = [1] * len(maps_of(op)[-1].results), _channel_loop(op, position, code)
    if own is not None:
        kept[[loop_of(maps_of(op)[-1], axis) for axis in range(len(kept))].index(own)] = -1
    return code.scale.reshape(kept)


def _reduced_elements(op: linalg.GenericOp) -> int:
    count = 1
    for trip, kind in zip(trip_counts(op), op.iterator_types, strict=True):
        count *= trip if kind == REDUCTION else 1
    return count


def _quantise_weight(
    state: Quantiser, op: linalg.GenericOp, position: int, activation_scale: float, steps: Mapping[int, Array]
) -> tuple[Array, Array, int]:
    """Integers, a row a layer; their scales along the result's dimensions; the largest sum of a channel.

    `steps` are what the activations' channels are to be multiplied by, along loops that are summed.
    """
    weight = np.asarray(state.rows(op.inputs[position]), np.float64)
    layers, shape = len(weight), weight.shape[1:]
    layout, written = maps_of(op)[position], maps_of(op)[-1]
    loops = [loop_of(layout, axis) for axis in range(len(shape))]
    for loop, numbers in steps.items():
        weight = weight * numbers.reshape([-1 if one == loop else 1 for one in loops])
    result_loops = [loop_of(written, axis) for axis in range(len(written.results))]
    reduced = tuple(axis for axis, loop in enumerate(loops, 1) if loop not in result_loops)
    largest = np.max(np.abs(weight), axis=reduced, keepdims=True)
    # the bias is added in steps of activation scale times weight scale, and must fit 32 bits then
    floor = _largest_bias(state, op) / (activation_scale * _BIAS_LIMIT)
    levels = (1 << (state.weight_bits - 1)) - 1
    scales = np.maximum(largest / levels, floor)
    positive = scales[scales > 0]
    scales = np.where(scales > 0, scales, positive.min() if positive.size else 1.0).astype(np.float32)
    integers = np.clip(np.rint(weight / scales), -levels, levels).astype(np.int8)
    column = int(np.max(np.sum(np.abs(integers.astype(np.int64)), axis=reduced)))
    kept = [loop for loop in loops if loop in result_loops]
    flat = scales.astype(np.float64).reshape([layers, *(shape[loops.index(loop)] for loop in kept)])
    ordered = flat.transpose([0, *(kept.index(loop) + 1 for loop in result_loops if loop in kept)])
    extents = [shape[loops.index(loop)] if loop in kept else 1 for loop in result_loops]
    own = ordered.reshape(extents if layers == 1 else [layers, *extents])
    return integers, own, max(column, 1)


def _element(value: SSAValue) -> IntegerType:
    kind = get_element_type_or_self(value.type)
    assert isa(kind, IntegerType)
    return kind


def loop_of(layout: AffineMap, axis: int) -> int:
    expr = layout.results[axis]
    assert isinstance(expr, AffineDimExpr)
    return expr.position


def _largest_bias(state: Quantiser, op: linalg.GenericOp) -> float:
    readers = [use.operation for use in op.results[0].uses if is_elementwise(use.operation)]
    params = [x for reader in readers for x in reader.operands if state.editor.is_param(x)]
    return max((float(np.max(np.abs(state.rows(x)))) for x in params), default=0.0)


def insert_reduction(
    old: linalg.GenericOp,
    inputs: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    block: Block,
    element: IntegerType,
    start: int,
) -> linalg.GenericOp:
    """The integer reduction, in front of the float one that dies later."""
    number = constant(start, element)
    target = empty(tensor_of(shape_of(old.results[0]), element))
    fill = linalg.FillOp([number.result], [target.tensor])
    new = build_generic(inputs, fill.results[0], maps, iterators_of(old), block, layer_of(old))
    assert old.parent is not None
    old.parent.insert_ops_before([number, target, fill, new], old)
    return new
