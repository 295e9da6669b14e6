"""Finds tensors that eight bits spoil for a norm: some rows are far below the others, and it divides by a row's size.

A class token that starts at zero is such a row: one scale for the tensor leaves it a few levels, and LayerNorm makes of
those few as large numbers as of all other rows. Such tensors stay f32 from where they are computed to the norm's sums.
"""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects import arith
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import SSAValue

from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.generics import REDUCTION, is_elementwise, is_reduction, maps_of, yielded


def find_norm_rows(editor: Editor, uneven: Set[SSAValue]) -> set[SSAValue]:
    """Results of elementwise operations, of those with uneven rows, that only elementwise operations and sums read."""
    found: set[SSAValue] = set()
    for op in reversed(list(editor.block.ops)):
        if not is_elementwise(op) or op.results[0] not in uneven:
            continue
        readers = [use.operation for use in op.results[0].uses]
        sums = [sums_rows(reader) for reader in readers]
        simple = all(is_elementwise(reader) or summed for reader, summed in zip(readers, sums, strict=True))
        if simple and (any(sums) or any(reader.results[0] in found for reader in readers)):
            found.add(op.results[0])
    return found


def sums_rows(op: object) -> bool:
    """Whether it adds up a tensor's rows, or their squares: what norms do."""
    if not isinstance(op, linalg.GenericOp) or not is_reduction(op) or len(set(op.inputs)) != 1:
        return False
    if not isinstance(yielded(op).owner, arith.AddfOp):
        return False
    layouts = maps_of(op)[:-1]
    last = len(shape_of(op.inputs[0])) - 1
    kinds = list(op.iterator_types)
    reduced = [n for n, kind in enumerate(kinds) if kind == REDUCTION]
    return all(
        reduced == [n for n in layout.used_dims() if layout.results[last].used_dims() == {n}] for layout in layouts
    )
