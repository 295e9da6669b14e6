"""What of a body leads from one value to another that follows from it alone, constants apart."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.transforms.generics import body_ops


def leaves_chain(value: SSAValue, root: SSAValue, roots: Mapping[SSAValue, SSAValue]) -> bool:
    """Whether anything reads a value that does not follow from the same root alone."""
    users = [use.operation for use in value.uses]
    return any(not user.results or roots.get(user.results[0]) is not root for user in users)


def chain_between(op: linalg.GenericOp, root: SSAValue, value: SSAValue) -> list[Operation]:
    """What makes a value of its root, in order, with the constants."""
    behind, waiting = set[SSAValue](), [value]
    while waiting:
        one = waiting.pop()
        if one is not root and one not in behind and isinstance(one.owner, Operation):
            behind.add(one)
            waiting += one.owner.operands
    outside = [x.owner for x in behind if isinstance(x.owner, Operation) and x.owner.parent is not op.body.block]
    return [*outside, *(inner for inner in body_ops(op) if inner.results[0] in behind)]
