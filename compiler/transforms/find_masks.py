"""Finds tensors whose very negative numbers only say "leave this out of the softmax": they must not set a scale.

A number that flows into exponentials alone, through sums, positive factors, choices and maxima, may as well be minus
infinity if it lies far enough below all others. Such a tensor gets its scale from the others, and one code of its own
for "left out" (`Mask`). Where the numbers flow anywhere else, or no gap parts them from the others, there is no mask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import networkx as nx
import numpy as np
from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.transforms.calibrate import Spread
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import is_reduction, scalar_constant, yielded
from penstock.compiler.transforms.parts import moves_data

DEPTH = 30.0
"""exp(-30) is 1e-13: a million of them do not change the last place of a float32 sum that has a one in it."""


@dataclass(frozen=True)
class Mask:
    """`largest` is the largest magnitude of the numbers that count; what is more than `gap` below -largest stands for
    `left_out`."""

    largest: float
    gap: float
    left_out: float


def find_masks(editor: Editor, spreads: Mapping[SSAValue, Spread]) -> dict[SSAValue, Mask]:
    """The mask of each tensor that has one. Tensors that are cut from each other or joined have one together."""
    low = {value for value, spread in spreads.items() if spread.below.size}
    families = _families(editor)
    for family in families:
        if low & family:
            low |= family
    while True:
        factors = ExponentFactors(editor, low)
        unsafe = {value for value in low if factors.of(value) is None}
        for family in families:
            if unsafe & family:
                unsafe |= family & low
        masks: dict[SSAValue, Mask] = {}
        for members in _apart(low - unsafe, families):
            factor = min(f for value in members if (f := factors.of(value)) is not None)
            mask = _gap([spreads[v] for v in members if v in spreads], DEPTH / factor)
            if mask is None:
                unsafe |= members
            else:
                masks.update(dict.fromkeys(members, mask))
        if not unsafe:
            return masks
        low -= unsafe


def _families(editor: Editor) -> list[set[SSAValue]]:
    linked: nx.Graph[SSAValue] = nx.Graph()
    for op in editor.block.ops:
        if moves_data(op):
            linked.add_edges_from((source, op.results[0]) for source in op.operands)
    return [set(family) for family in nx.connected_components(linked)]


def _apart(values: set[SSAValue], families: Iterable[set[SSAValue]]) -> list[set[SSAValue]]:
    """The values, those of one family together."""
    found = [family & values for family in families if family & values]
    together = set[SSAValue]().union(*found)
    return [*found, *({value} for value in values - together)]


def _gap(spreads: list[Spread], gap: float) -> Mask | None:
    """The numbers that count, where everything else lies more than `gap` below the least that they may be."""
    largest = max(spread.highest for spread in spreads)
    below: Array = np.unique(np.concatenate([spread.below for spread in spreads]))[::-1]
    largest = max(largest, *(spread.lowest_near for spread in spreads), 0.0)
    for number in below:
        if number < -largest - gap:
            return Mask(largest, gap, float(below[-1]))
        largest = max(largest, float(-number))
    return None


class ExponentFactors:
    """By how much what is `low` in a tensor counts in exponentials at least; None where it flows anywhere else."""

    def __init__(self, editor: Editor, low: set[SSAValue]) -> None:
        self._editor, self._low = editor, low
        self._known: dict[SSAValue, float | None] = {}

    def of(self, value: SSAValue) -> float | None:
        if value not in self._known:
            self._known[value] = None  # nothing flows in circles
            found = [self._through(use.operation, value) for use in value.uses]
            known = [factor for factor in found if factor is not None]
            self._known[value] = min(known) if known and len(known) == len(found) else None
        return self._known[value]

    def _through(self, user: Operation, value: SSAValue) -> float | None:
        if moves_data(user):
            return self.of(user.results[0])
        if not isinstance(user, linalg.GenericOp):
            return None
        if is_reduction(user):
            return self.of(user.results[0]) if isinstance(yielded(user).owner, arith.MaximumfOp) else None
        return self._body(user, value)

    def _body(self, op: linalg.GenericOp, value: SSAValue) -> float | None:
        """Follow what is low through the body of an elementwise operation, and on from its result."""
        low: dict[SSAValue, float] = {}
        for argument, x in zip(op.body.block.args, op.inputs, strict=False):
            if x is value or x in self._low:
                low[argument] = 1.0
        counts = list[float]()
        for inner in list(op.body.block.ops)[:-1]:
            if not any(x in low for x in inner.operands):
                continue
            factor = _passed_on(inner, low)
            if factor is None:
                return None
            if isinstance(inner, math_dialect.ExpOp | math_dialect.Exp2Op):
                counts.append(factor)
            elif not isinstance(inner, arith.CmpfOp):
                low[inner.results[0]] = factor
        result = yielded(op)
        if result in low:
            further = self.of(op.results[0])
            if further is None:
                return None
            counts.append(low[result] * further)
        return min(counts, default=1.0)


def _passed_on(op: Operation, low: Mapping[SSAValue, float]) -> float | None:
    """The factor of what an operation makes of low operands; None where very negative is not just left out."""
    factor = min(low[x] for x in op.operands if x in low)
    match op:
        case arith.AddfOp() | arith.CmpfOp() | math_dialect.ExpOp() | math_dialect.Exp2Op():
            return factor
        case arith.SubfOp() if op.lhs in low:
            return factor
        case arith.SelectOp() if op.cond not in low:
            return factor
        case arith.MulfOp() | arith.DivfOp():
            number = scalar_constant(op.rhs if op.lhs in low else op.lhs)
            if number is None or number <= 0 or (isinstance(op, arith.DivfOp) and op.lhs not in low):
                return None
            return factor * (float(number) if isinstance(op, arith.MulfOp) else 1.0 / float(number))
        case _:
            return None
