"""What a body computes in floats of one integer of eight bits becomes a look-up of its 256 results.

The entries are what the interpreter computes, so no number changes. An activation of an int8 is then a few LUTs a bit,
where its exponential and its division would be operators of f32 in every lane.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.dialects.types import integer_width
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.look_up import MOST_INDEX_BITS, LookUpOp, entries_of, every_index
from penstock.compiler.scalars.number_types import type_bits
from penstock.compiler.scalars.operations import evaluate_chain, is_constant, is_scalar_op
from penstock.compiler.transforms.chains import chain_between, leaves_chain
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import body_ops
from penstock.compiler.transforms.rewrite import Rewrite

_WIDEST = 32
"""Bits of an entry."""


@dataclass(frozen=True)
class TabulateFunctions(Rewrite):
    """A body, or its part, that follows from one small integer and from constants. Tables of tables become one."""

    name: ClassVar[str] = "tabulate-functions"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            tabulate_body(op)


def tabulate_body(op: linalg.GenericOp) -> None:
    roots = _roots(op)
    for inner in reversed(body_ops(op)):
        if not inner.results or inner.results[0].first_use is None:
            _drop(inner)
            continue
        value = inner.results[0]
        root = roots.get(value)
        if root is None or root is value or not leaves_chain(value, root, roots) or not _may_be_entry(value):
            continue
        chain = chain_between(op, root, value)
        if _is_worth_it(chain) and (entries := _entries(value, root, chain)) is not None:
            found = LookUpOp(root, entries, value.type)
            op.body.block.insert_op_before(found, inner)
            value.replace_all_uses_with(found.result)
            _drop(inner)


def _roots(op: linalg.GenericOp) -> dict[SSAValue, SSAValue]:
    """The small integer that each value follows from, where there is one: an operand's, or one made on the way."""
    roots: dict[SSAValue, SSAValue] = {a: a for a in op.body.block.args[: len(op.inputs)] if _is_small(a)}
    for inner in body_ops(op):
        if not inner.results or isinstance(inner, arith.ConstantOp):
            continue
        value, given = inner.results[0], [x for x in inner.operands if not is_constant(x)]
        found = {roots.get(x) for x in given}
        root = found.pop() if len(found) == 1 and is_scalar_op(inner) else None
        if root is not None or _is_small(value):
            roots[value] = value if root is None else root
    return roots


def _is_small(value: SSAValue) -> bool:
    width = integer_width(value.type)
    return width is not None and 1 < width <= MOST_INDEX_BITS


def _may_be_entry(value: SSAValue) -> bool:
    return isinstance(value.type, Float32Type) or (integer_width(value.type) or _WIDEST + 1) <= _WIDEST


def _is_worth_it(chain: Iterable[Operation]) -> bool:
    """Whether it computes in floats, or goes on from a table to what is no wider."""
    computing = [op for op in chain if not isinstance(op, arith.ConstantOp)]
    tables = [type_bits(op.result.type) for op in computing if isinstance(op, LookUpOp)]
    further = len(computing) > 1 and type_bits(computing[-1].results[0].type) <= max(tables, default=0)
    return further or any(map(_is_in_floats, computing))


def _is_in_floats(op: Operation) -> bool:
    values = (*op.operands, *op.results)
    return not isinstance(op, LookUpOp) and any(isinstance(value.type, AnyFloat) for value in values)


def _entries(value: SSAValue, root: SSAValue, chain: Iterable[Operation]) -> tuple[int, ...] | None:
    """The values for all integers; None where one of them has none, as a division by zero."""
    index = every_index(root.type)
    try:
        made = evaluate_chain(chain, {root: index})[value]
    except PenstockError:
        return None
    return entries_of(made if made.shape else made.repeat(index.size))


def _drop(op: Operation) -> None:
    op.detach()
    op.erase()
