"""Writes a mask into an operation's body: a comparison of the loop's index, and a choice."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.transforms.generics import constant
from penstock.compiler.transforms.pad_values import PaddingMask, combination


def write_mask(operation: TensorOp, mask: PaddingMask) -> None:
    """Behind what the loop is long now, the operation's term or result is the mask's number."""
    body = operation.op.body.block
    last = body.last_op
    assert last is not None
    user, value = combination(operation) if operation.reductions else (last, last.operands[0])
    index = linalg.IndexOp(mask.loop)
    size = constant(operation.trips[mask.loop], IndexType())
    inside = arith.CmpiOp(index.result, size.result, "ult")
    other = constant(mask.value, value.type)
    chosen = arith.SelectOp(inside.result, value, other.result)
    body.insert_ops_before([index, size, inside, other, chosen], user)
    user.operands[list(user.operands).index(value)] = chosen.result
