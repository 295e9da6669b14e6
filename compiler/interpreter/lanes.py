"""Scalar bodies and lane reductions on numpy arrays, shared by the itensor and the stream interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.arrays import Array
from penstock.compiler.dialects import itensor
from penstock.compiler.scalars.operations import evaluate


def run_body(block: Block, arguments: Sequence[Array], places: Mapping[int, Array] | None = None) -> Array:
    """Evaluate a scalar body for all elements of its (mutually broadcastable) arguments at once.

    `places` are the elements' places along the loops of a task.
    """
    values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
    terminator = block.last_op
    assert terminator is not None
    for op in block.ops:
        if isinstance(op, itensor.WithinOp):
            assert places is not None
            values[op.result] = places[op.loop.data] < op.size.data
        elif op is not terminator:
            values[op.results[0]] = evaluate(op, [values[o] for o in op.operands])
    return values[terminator.operands[0]]


def spread(value: Array, projection: AffineMap) -> Array:
    """View `value` in the space that `projection` maps from: unit extents where it does not vary."""
    order = [e.position for e in projection.results if isinstance(e, AffineDimExpr)]
    kept = [i for i, e in enumerate(projection.results) if isinstance(e, AffineDimExpr)]
    dropped = tuple(i for i in range(value.ndim) if i not in kept)
    squeezed = np.squeeze(value, axis=dropped) if dropped else value
    ranked = np.transpose(squeezed, np.argsort(order)) if order else squeezed
    shape = [1] * projection.num_dims
    for position, extent in zip(sorted(order), ranked.shape, strict=True):
        shape[position] = extent
    return ranked.reshape(shape)


def tree(combine: Block, value: Array, axis: int) -> Array:
    """Combine along one axis as a balanced tree of neighbours, an odd one out waiting for the next round."""
    while (extent := value.shape[axis]) > 1:
        lead = (slice(None),) * axis
        pairs = run_body(combine, [value[(*lead, slice(0, extent - 1, 2))], value[(*lead, slice(1, None, 2))]])
        value = np.concatenate([pairs, value[(*lead, slice(-1, None))]], axis=axis) if extent % 2 else pairs
    return value


def batched(projection: AffineMap) -> AffineMap:
    """The same projection with a leading axis of iterations, which it keeps."""
    shifted = (AffineDimExpr(e.position + 1) if isinstance(e, AffineDimExpr) else e for e in projection.results)
    return AffineMap(projection.num_dims + 1, 0, (AffineDimExpr(0), *shifted))
