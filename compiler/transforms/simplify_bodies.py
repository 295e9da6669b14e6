"""Folds constants inside the bodies, drops neutral operations, and writes ReLU and clamps as maxima and minima."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.scalars.operations import REDUCTIONS, evaluate, is_scalar_op
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import body_ops, constant, is_reduction, scalar_constant, yielded
from penstock.compiler.transforms.rewrite import Rewrite

_GREATER, _LESS = {2, 3, 9, 10}, {4, 5, 11, 12}  # the ordered and unordered predicates of arith.cmpf


@dataclass(frozen=True)
class SimplifyBodies(Rewrite):
    """Also removes repeated and unread operations. f64 constants that are only narrowed become f32."""

    name: ClassVar[str] = "simplify-bodies"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            simplify_body(op)


def simplify_body(op: linalg.GenericOp) -> None:
    for rule in (_fold_constant, _drop_neutral, _square_without_sign, compare_narrowly, _use_extreme):
        for inner in body_ops(op):
            found = rule(inner)
            if isinstance(found, Operation):
                op.body.block.insert_op_before(found, inner)
                found = found.results[0]
            if found is not None:
                inner.results[0].replace_all_uses_with(found)
    _remove_repeated(op)
    _accumulator_first(op)
    for inner in reversed(body_ops(op)):
        if all(result.first_use is None for result in inner.results):
            inner.detach()
            inner.erase()


def _fold_constant(op: Operation) -> Operation | None:
    if isinstance(op, arith.ConstantOp) or not is_scalar_op(op):
        return None
    known = [scalar_constant(operand) for operand in op.operands]
    values = [value for value in known if value is not None]
    if not known or len(values) < len(known):
        return None
    return constant(evaluate(op, values), op.results[0].type)


_NEUTRAL: dict[type[Operation], tuple[float, bool]] = {
    arith.AddfOp: (0, True),
    arith.AddiOp: (0, True),
    arith.SubfOp: (0, False),
    arith.SubiOp: (0, False),
    arith.MulfOp: (1, True),
    arith.MuliOp: (1, True),
    arith.DivfOp: (1, False),
}


def _drop_neutral(op: Operation) -> SSAValue | None:
    """x + 0, x - 0, x * 1, x / 1. (The sign of a zero may change, which no comparison sees.)"""
    if type(op) not in _NEUTRAL:
        return None
    neutral, commutes = _NEUTRAL[type(op)]
    left, right = op.operands
    if _equals(right, neutral):
        return left
    return right if commutes and _equals(left, neutral) else None


def _square_without_sign(op: Operation) -> Operation | None:
    """|x| * |x| is x * x, to the last bit: how a Euclidean norm arrives."""
    if not isinstance(op, arith.MulfOp):
        return None
    left, right = op.lhs.owner, op.rhs.owner
    if not isinstance(left, math.AbsFOp) or not isinstance(right, math.AbsFOp) or left.operand is not right.operand:
        return None
    return arith.MulfOp(left.operand, left.operand)


_MIRRORED = {1: 1, 2: 4, 3: 5, 4: 2, 5: 3, 9: 11, 10: 12, 11: 9, 12: 10, 13: 13}
"""The predicates that compare the same with the sides exchanged, but for those of order alone."""


def compare_narrowly(op: Operation) -> Operation | None:
    """An f32 that is widened to be compared with a number can be compared as it is: with the number's neighbour.

    How torch-mlir compares with any Python number.
    """
    if not isinstance(op, arith.CmpfOp):
        return None
    predicate, value, number = op.predicate.value.data, op.lhs, scalar_constant(op.rhs)
    if number is None:
        predicate, value, number = _MIRRORED.get(predicate, 0), op.rhs, scalar_constant(op.lhs)
    wide = value.owner
    if number is None or predicate not in _MIRRORED or not isinstance(wide, arith.ExtFOp) or wide.input.type != f32:
        return None
    narrow = constant(_neighbour(float(number), predicate), f32)
    op.parent_block().insert_op_before(narrow, op)  # pyright: ignore[reportOptionalMemberAccess]
    return arith.CmpfOp(wide.input, narrow.results[0], predicate)


def _neighbour(number: float, predicate: int) -> NDArray[Any]:
    """The f32 with which every f32 compares as it does with a number that may lie between two of them."""
    with np.errstate(over="ignore"):
        near = np.float32(number)
    if float(near) == number or np.isnan(number):
        return np.array(near)
    if predicate in (1, 13):
        return np.array(np.float32(np.nan))  # no f32 equals it
    above = predicate in (3, 4, 10, 11)  # x >= c and x < c turn at the next one above, the others at that below
    if (float(near) > number) != above:
        near = np.nextafter(near, np.float32(np.inf if above else -np.inf))
    return np.array(near)


def _equals(value: SSAValue, number: float) -> bool:
    known: NDArray[Any] | None = scalar_constant(value)
    return known is not None and bool(known == number)


def _use_extreme(op: Operation) -> Operation | None:
    """select(x > c, x, c) is how ReLU arrives, and its likes how clamps do."""
    if not isinstance(op, arith.SelectOp) or not isinstance(op.cond.owner, arith.CmpfOp):
        return None
    compare = op.cond.owner
    predicate = compare.predicate.value.data
    if _same(compare.lhs, op.lhs) and _same(compare.rhs, op.rhs):
        takes_larger = predicate in _GREATER
    elif _same(compare.lhs, op.rhs) and _same(compare.rhs, op.lhs):
        takes_larger = predicate in _LESS
    else:
        return None
    if predicate not in _GREATER | _LESS:
        return None
    return (arith.MaximumfOp if takes_larger else arith.MinimumfOp)(op.lhs, op.rhs)


def _same(x: SSAValue, y: SSAValue) -> bool:
    if x is y:
        return True
    left, right = scalar_constant(x), scalar_constant(y)
    return left is not None and right is not None and bool(np.array_equal(left, right))


def _key(op: Operation) -> tuple[Any, ...]:
    if isinstance(op, arith.ConstantOp):
        return op.name, str(op.value)  # as text: 0.0 equals -0.0, and is another constant
    operands, types = (id(operand) for operand in op.operands), (result.type for result in op.results)
    return op.name, *operands, frozenset(op.properties.items()), *types


def _accumulator_first(op: linalg.GenericOp) -> None:
    """A reduction combines its running result with the next term, in this order."""
    combine, accumulator = yielded(op).owner, op.body.block.args[-1]
    if isinstance(combine, REDUCTIONS) and combine.operands[1] is accumulator and is_reduction(op):
        combine.operands[0], combine.operands[1] = accumulator, combine.operands[0]


def _remove_repeated(op: linalg.GenericOp) -> None:
    seen: dict[tuple[Any, ...], Operation] = {}
    for inner in body_ops(op):
        first = seen.setdefault(_key(inner), inner)
        if first is not inner:
            inner.results[0].replace_all_uses_with(first.results[0])
