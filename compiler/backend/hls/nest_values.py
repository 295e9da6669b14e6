"""What an emitter asks of a nest's values: their lanes, and what they are there for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from penstock.compiler.dialects import nest
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.nest import GuardAttr
from penstock.compiler.dialects.nest_attributes import SIGNS
from penstock.compiler.dialects.stream import BlocksType
from penstock.compiler.scalars.index_text import times, total


def is_single_slot(op: nest.NestOp) -> bool:
    """Whether the nest runs once and hands over no block: then its function is the pipeline, not a loop in it."""
    memories = [o.memory for o in op.body.block.ops if isinstance(o, nest.LoadOp | nest.StoreOp)]
    return op.iterations == 1 and not any(isinstance(memory.type, BlocksType) for memory in memories)


def is_start(value: SSAValue) -> bool:
    """Whether a partial result comes in here."""
    owner = value.owner
    if isinstance(owner, nest.SelectOp):
        return isinstance(owner.inside.owner, nest.ConstantOp)
    return isinstance(owner, nest.ConstantOp)


def is_reduced(value: SSAValue) -> bool:
    return any(isinstance(use.operation, nest.ReduceOp) for use in value.uses)


def twin(index: str) -> str:
    """The odd neighbour of an even place."""
    return "1" if index == "0" else total([times(index, 2), "1"])


def project(expression: AffineExpr, index: Sequence[str]) -> str:
    if isinstance(expression, AffineDimExpr):
        return index[expression.position]
    assert isinstance(expression, AffineConstantExpr)
    return str(expression.value)


def linear_place(
    names: Sequence[str], expressions: Sequence[AffineExpr], strides: Sequence[int], divisor: int = 1
) -> str:
    """`sum(stride * expression) / divisor` in loop counters of these names; every part is a multiple of it."""
    factors, offset = [0] * len(names), 0
    for expression, stride in zip(expressions, strides, strict=True):
        offset += stride * expression.eval([0] * len(names), [])
        for loop, factor in enumerate(coefficients(expression, len(names))):
            factors[loop] += stride * factor
    terms = [times(name, factor // divisor) for name, factor in zip(names, factors, strict=True) if factor]
    return total([*terms, str(offset // divisor)])


def condition(guard: GuardAttr, names: Sequence[str], lengths: Mapping[str, str]) -> str:
    """A guard on loops of these names."""
    terms: list[str] = []
    for term in guard.terms:
        counter = f"{names[term.loop]} % {term.every}" if term.every else names[term.loop]
        listed = f"({term.value}LL >> {counter} & 1)"
        value = term.count.text(lengths) if term.count else str(term.value)
        terms.append(listed if term.comparison == "in" else f"{counter} {SIGNS[term.comparison]} {value}")
    return "(" + " && ".join(terms) + ")" if terms else "true"
