"""The least buffer that turns one stream order into another (StreamTensor, Algorithm 1, derived anew).

Both orders are split into a shared prefix of outer loops and what differs inside. For every trip of the
shared loops one block passes from a writer to a reader: the block covers what the inner loops touch.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler.analysis.loops import itensor_loops
from compiler.dialects.itensor import ITensorType

LoopOf = tuple[int, int, int | None]
"""Trips, step, and the data dim that the loop moves along (None: it repeats what is below it)."""


@dataclass(frozen=True)
class ConverterPlan:
    """`shared` loops hand over a block of shape `block`; `source` and `target` are the loops inside."""

    shared: tuple[LoopOf, ...]
    source: tuple[LoopOf, ...]
    target: tuple[LoopOf, ...]
    block: tuple[int, ...]


def plan_converter(source: ITensorType, target: ITensorType) -> ConverterPlan:
    """Extend the shared prefix for as long as both orders cut the data into the same blocks."""
    from_loops, to_loops = itensor_loops(source), itensor_loops(target)
    shared: list[LoopOf] = []
    while from_loops and to_loops:
        first, second = _split(from_loops, to_loops[0]), _split(to_loops, from_loops[0])
        if first[0] != second[0] or not _same_block(first, second, source, target):
            break
        shared.append(first[0])
        from_loops, to_loops = first[1:], second[1:]
    return ConverterPlan(
        tuple(shared), tuple(from_loops), tuple(to_loops), _block(from_loops, source)
    )  # fmt: skip


def _split(loops: list[LoopOf], like: LoopOf) -> list[LoopOf]:
    """Split the outermost loop in two where the other order's step is a multiple of its own."""
    (trip, step, dim), (_, coarse, other) = loops[0], like
    if dim is None or dim != other or coarse <= step or coarse % step or trip % (coarse // step):
        return loops
    factor = coarse // step
    if trip == factor:
        return loops
    return [(trip // factor, coarse, dim), (factor, step, dim), *loops[1:]]


def _same_block(first: list[LoopOf], second: list[LoopOf], source: ITensorType, target: ITensorType) -> bool:
    """Whether one trip of the outermost loop covers the same, gapless part of its dim in both orders."""
    _, step, dim = first[0]
    if dim is None:
        return True
    return _extent(first[1:], dim, source) == _extent(second[1:], dim, target) == step


def _extent(loops: list[LoopOf], dim: int, kind: ITensorType) -> int:
    """How far the loops and the element reach along a data dim."""
    return kind.element_shape[dim] + sum((trip - 1) * step for trip, step, target in loops if target == dim)


def _block(inside: list[LoopOf], kind: ITensorType) -> tuple[int, ...]:
    return tuple(_extent(inside, dim, kind) for dim in range(len(kind.element_shape)))
