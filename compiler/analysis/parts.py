"""Stream orders of slices and concatenations: which part of a stream's loops is which part of the tensor.

A part along a dim can be cut out of a passing stream when exactly one loop moves along that dim and the part
begins and ends between two of its trips. Where an order does not allow it, the row-major one with small
enough elements does, and a converter leads there.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from xdsl.ir import Attribute

from penstock.compiler.analysis.converter import LoopOf
from penstock.compiler.analysis.loops import canonical_itensor, itensor_loops
from penstock.compiler.dialects.itensor import ITensorType

Extent = tuple[int, int]
"""Start and size along the dim."""


def row_major(shape: Sequence[int], dtype: Attribute, element: Sequence[int] | None = None) -> ITensorType:
    """The order of a tensor in memory, with these elements (by default single ones)."""
    sizes = tuple(element) if element is not None else (1,) * len(shape)
    loops = [(extent // size, size, dim) for dim, (extent, size) in enumerate(zip(shape, sizes, strict=True))]
    return canonical_itensor(sizes, dtype, loops)


def row_major_words(shape: Sequence[int], dtype: Attribute, lanes: int, grains: Sequence[int] = ()) -> ITensorType:
    """The order of a tensor in memory, in runs of a power of two of at most so many elements, none across its rows.

    `grains` are of dims whose size each call says what it is always a multiple of, and 0 of others.
    """
    element = [1] * len(shape)
    for dim in range(len(shape) - 1, -1, -1):
        room = lanes // prod(element)
        grain = grains[dim] if grains else 0
        element[dim] = gcd(shape[dim], 1 << (max(room, 1).bit_length() - 1), grain)
        if element[dim] != shape[dim]:
            break
    return row_major(shape, dtype, element)


def allows_parts(kind: ITensorType, dim: int, parts: Sequence[Extent]) -> bool:
    """Whether the parts can be cut out of the stream as it passes."""
    steps = [step for _, step, target in itensor_loops(kind) if target == dim]
    element = kind.element_shape[dim]
    return steps in ([element], []) and all(start % element == 0 and size % element == 0 for start, size in parts)


def divisible(kind: ITensorType, dim: int, parts: Sequence[Extent]) -> ITensorType:
    """The order itself if it allows the parts, else the row-major one that does."""
    if allows_parts(kind, dim, parts):
        return kind
    element = list(kind.element_shape)
    for start, size in parts:
        element[dim] = gcd(element[dim], start, size)
    return row_major(kind.data_shape(), kind.dtype, element)


def part_of(kind: ITensorType, dim: int, size: int) -> ITensorType:
    """The order of a part of a stream that allows it."""
    element = kind.element_shape[dim]
    return with_extent(kind, dim, size // element)


def with_extent(kind: ITensorType, dim: int, trips: int) -> ITensorType:
    """The same order with another number of trips along `dim`; a loop that was not there becomes the innermost."""
    loops = itensor_loops(kind)
    if any(target == dim for _, _, target in loops):
        loops = [(trips if target == dim else trip, step, target) for trip, step, target in loops]
    else:
        loops.append((trips, kind.element_shape[dim], dim))
    return canonical_itensor(kind.element_shape, kind.dtype, loops)


def joined(first: ITensorType, dim: int, parts: Sequence[Extent]) -> ITensorType:
    """The order of a concatenation, after the order of its first part where that one can be continued."""
    total = sum(size for _, size in parts)
    base = divisible(first, dim, [(0, first.data_shape()[dim])])
    if allows_parts(base, dim, parts):
        return with_extent(base, dim, total // base.element_shape[dim])
    shape, element = list(first.data_shape()), list(first.element_shape)
    shape[dim] = total
    for start, size in parts:
        element[dim] = gcd(element[dim], start, size)
    return row_major(shape, first.dtype, element)


def range_loops(kind: ITensorType, dim: int) -> tuple[list[LoopOf], int]:
    """The loops of a stream that allows parts, and the position of the one along `dim` (added if it has one trip)."""
    loops = itensor_loops(kind)
    for position, (_, _, target) in enumerate(loops):
        if target == dim:
            return loops, position
    return [*loops, (1, kind.element_shape[dim], dim)], len(loops)
