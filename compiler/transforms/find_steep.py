"""Finds what exponentials read at steps so coarse that one changes them by a quarter: sharp softmaxes of trained heads.

A softmax that decides between many places may read numbers in the hundreds. Eight bits leave steps of several there,
several places share the largest, and the answer is spread over all of them. Such numbers stay f32, and so does their
maximum.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.transforms.calibrate import Spread
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.find_masks import ExponentFactors
from penstock.compiler.transforms.generics import is_elementwise, is_reduction
from penstock.compiler.transforms.quantiser import LEVELS

_STEEP = 0.25
"""Of an exponent, by which one step changes it."""


def find_steep(editor: Editor, spreads: Mapping[SSAValue, Spread], masks: Container[SSAValue]) -> set[SSAValue]:
    """Results of elementwise operations that only exponentials and maxima read, too coarsely in eight bits."""
    found: set[SSAValue] = set()
    for op in editor.generics():
        value = op.results[0]
        spread = spreads.get(value)
        if spread is None or value in masks or not is_elementwise(op) or spread.largest <= _STEEP * LEVELS:
            continue
        if not all(_reads_reals(use.operation) for use in value.uses):
            continue
        factor = ExponentFactors(editor, {value}).of(value)
        if factor is not None and spread.largest * factor > _STEEP * LEVELS:
            found.add(value)
    return found


def _reads_reals(op: Operation) -> bool:
    """Whether it is elementwise, or a maximum that only such operations read."""
    if not isinstance(op, linalg.GenericOp):
        return False
    if is_elementwise(op):
        return True
    return is_reduction(op) and all(
        isinstance(use.operation, linalg.GenericOp) and is_elementwise(use.operation) for use in op.results[0].uses
    )
