"""Scalar bodies and lane reductions on numpy arrays, shared by the itensor and the stream interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from compiler.interpreter.scalar import evaluate

Array = NDArray[Any]


def run_body(block: Block, arguments: Sequence[Array]) -> Array:
    """Evaluate a scalar body for all elements of its (mutually broadcastable) arguments at once."""
    values: dict[SSAValue, Array] = dict(zip(block.args, arguments, strict=True))
    terminator = block.last_op
    assert terminator is not None
    for op in block.ops:
        if op is not terminator:
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
    parts = np.split(value, value.shape[axis], axis=axis)
    while len(parts) > 1:
        pairs = [run_body(combine, [a, b]) for a, b in zip(parts[0::2], parts[1::2], strict=False)]
        parts = pairs + ([parts[-1]] if len(parts) % 2 else [])
    return parts[0]
