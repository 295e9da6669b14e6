"""Finds tensors that eight bits spoil for a norm: some rows are far below the others, and it divides by a row's size.

A class token that starts at zero is such a row: one scale for the tensor leaves it a few levels, and LayerNorm makes of
those few as large numbers as of all other rows. Such tensors stay f32 from where they are computed to the norm's sums.
So do the inputs of layers that share the accelerator, where what is summed from layer to layer grows: one scale for all
layers would leave the first ones nothing.
"""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.generics import REDUCTION, is_elementwise, is_reduction, maps_of, yielded


def find_norm_rows(editor: Editor, uneven: Set[SSAValue]) -> set[SSAValue]:
    """Inputs and results of elementwise operations, with uneven rows, that only such operations and sums read."""
    found: set[SSAValue] = set()
    for op in reversed(list(editor.block.ops)):
        if is_elementwise(op) and op.results[0] in uneven and _ends_in_sums(op.results[0], found):
            found.add(op.results[0])
    kept = {state.port for state in editor.program.states}  # has the integers that it left with
    given = {a for a in editor.block.args if editor.is_input(a) and a in uneven and editor.name(a) not in kept}
    summed: set[SSAValue] = {argument for argument in given if _ends_in_sums(argument, found)}
    for op in editor.generics():  # what is added to them, and to that, is no finer than they are
        if is_elementwise(op) and _adds_to(op, summed) and _ends_in_sums(op.results[0], found):
            summed.add(op.results[0])
    return found | summed


def _adds_to(op: linalg.GenericOp, terms: Set[SSAValue]) -> bool:
    """Whether its result is a sum, and one of the terms is read off these as it stands."""
    given = {a for a, value in zip(op.body.block.args, op.inputs, strict=False) if value in terms}
    left = [yielded(op)]
    while left:
        value = left.pop()
        if value in given:
            return True
        if isinstance(value.owner, arith.AddfOp):
            left += value.owner.operands
    return False


def _ends_in_sums(value: SSAValue, found: Set[SSAValue]) -> bool:
    """Whether all that reads it is elementwise or sums its rows, and a sum is read off it, or off what is `found`."""
    readers = [use.operation for use in value.uses]
    sums = [sums_rows(reader) for reader in readers]
    simple = all(is_elementwise(reader) or summed for reader, summed in zip(readers, sums, strict=True))
    return simple and (any(sums) or any(reader.results[0] in found for reader in readers))


def sums_rows(op: object) -> bool:
    """Whether it adds up a tensor's rows, or their squares: what norms do. A group's rows are all of its dims."""
    if not isinstance(op, linalg.GenericOp) or not is_reduction(op) or len(set(op.inputs)) != 1:
        return False
    if not isinstance(yielded(op).owner, arith.AddfOp):
        return False
    layouts = maps_of(op)[:-1]
    last = len(shape_of(op.inputs[0])) - 1
    kinds = list(op.iterator_types)
    reduced = [n for n, kind in enumerate(kinds) if kind == REDUCTION]
    if all(reduced == [n for n in layout.used_dims() if layout.results[last].used_dims() == {n}] for layout in layouts):
        return True
    return len(set(layouts)) == 1 and _gives_a_size(op.results[0])


def _gives_a_size(value: SSAValue) -> bool:
    """Whether a root is taken of what follows from sums: a norm, and no mean that a layer reads."""
    seen, left = set[SSAValue](), [value]
    while left:
        for use in left.pop().uses:
            op = use.operation
            if not isinstance(op, linalg.GenericOp) or not (is_elementwise(op) or len(set(op.inputs)) == 1):
                continue
            if any(isinstance(inner, math_dialect.RsqrtOp | math_dialect.SqrtOp) for inner in op.body.block.ops):
                return True
            if op.results[0] not in seen:
                seen.add(op.results[0])
                left.append(op.results[0])
    return False
