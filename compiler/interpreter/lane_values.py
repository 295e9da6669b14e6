"""What the operations of a nest make of lanes, for many iterations at once. A row of `LANE_VALUES` is all it takes.

A value is an array with the iterations along its first axis (one entry if they are all alike), lanes behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from xdsl.ir import Operation

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import nest
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.interpreter.cells import Indices
from penstock.compiler.interpreter.lanes import batched, run_body, spread, tree
from penstock.compiler.scalars.number_types import numpy_dtype

Evaluate = Callable[[list[Array]], Array]
Counters = Callable[[], Sequence[Indices]]
"""The counter of each loop in every iteration that values are asked for; counted out only where it is asked for."""


def _constant(op: nest.ConstantOp, counters: Counters) -> Evaluate:
    kind = op.result.type
    value = np.full((1, *kind.get_shape()), cast(Any, op.value).value.data, numpy_dtype(kind.element_type))
    return lambda inputs: value


def _within(op: nest.WithinOp, counters: Counters) -> Evaluate:
    """Which lanes are no padding."""

    def run(inputs: list[Array]) -> Array:
        place = np.zeros(1, np.int64)
        factors = coefficients(op.place.data.results[0], op.place.data.num_dims)
        for factor, counter in zip(factors, counters(), strict=True):
            place = place + factor * counter
        return place[:, None] + np.arange(op.lanes) < op.size.data

    return run


def _stack(op: nest.StackOp, counters: Counters) -> Evaluate:
    by, width = op.by.data, op.width
    places = np.array([value * width + lane for _, _, value, lane in by.places(width)]).reshape(by.count, by.size)

    def run(inputs: list[Array]) -> Array:
        side_by_side = np.concatenate(np.broadcast_arrays(*inputs), axis=by.along + 1)
        windows = np.moveaxis(side_by_side.take(places, axis=by.along + 1), by.along + 2, -1)
        return windows if by.size > 1 else windows[..., 0]

    return run


def _pick(op: nest.PickOp, counters: Counters) -> Evaluate:
    start, factors = op.factors
    shape = tuple(op.result.type.get_shape())
    lanes = start + sum((f * i for f, i in zip(factors, np.indices(shape), strict=True)), np.zeros(shape, np.int64))
    return lambda inputs: inputs[0].reshape(len(inputs[0]), -1)[:, lanes]


def _map(op: nest.MapOp, counters: Counters) -> Evaluate:
    block, shape = op.body.block, tuple(op.result.type.get_shape())
    projections = [batched(m.data) for m in op.lanes]

    def run(inputs: list[Array]) -> Array:
        result = run_body(block, [spread(x, p) for x, p in zip(inputs, projections, strict=True)])
        return np.broadcast_to(result, (max((len(x) for x in inputs), default=1), *shape))

    return run


def _reduce(op: nest.ReduceOp, counters: Counters) -> Evaluate:
    block, dims = op.body.block, [d.data + 1 for d in op.dims]

    def run(inputs: list[Array]) -> Array:
        value = inputs[0]
        for dim in dims:
            value = tree(block, value, dim)
        return value

    return run


LANE_VALUES: dict[type[Operation], Callable[[Any, Counters], Evaluate]] = {
    nest.ConstantOp: _constant,
    nest.WithinOp: _within,
    nest.StackOp: _stack,
    nest.PickOp: _pick,
    nest.MapOp: _map,
    nest.ReduceOp: _reduce,
}
"""Operations whose operands are needed where their result is, and which are defined where their operands are."""
