"""Tiles of flat tensors as slices: which dims a tensor has, and where along each of them a tile begins."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.mesh.mapping import Mapping as Placement
from penstock.compiler.mesh.program import MeshAccess, TileProgram
from penstock.compiler.tasks.affine import Affine


class NotSliced(Exception):
    """Why a tile is no slice."""


@dataclass(frozen=True)
class TensorDims:
    """`strides` of a tensor's dims, outermost first, the last of which is 1."""

    strides: tuple[int, ...]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class TileSlice:
    """By dim of the tensor: where the first core's tile begins, how long a tile is, how far on each core's is."""

    starts: tuple[Affine, ...]
    block: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    """By dim of the tensor, by dim of the cores."""
    order: tuple[int | None, ...]
    """By dim of the tile: the tensor's dim it lies along; none for a dim of one place."""

    def across(self, cores: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
        """How long a slice is that has the tiles of all cores along `dims`."""
        return tuple(
            size + sum(step[d] * (cores[d] - 1) for d in dims)
            for size, step in zip(self.block, self.steps, strict=True)
        )  # fmt: skip

    def dense(self, cores: Sequence[int], dims: Sequence[int]) -> bool:
        """Whether the tiles along `dims` lie side by side, with nothing between them."""
        tiles = math.prod(cores[d] for d in dims if any(step[d] for step in self.steps))
        return math.prod(self.across(cores, dims)) == tiles * math.prod(self.block)


def dims_of(program: TileProgram, tensor: str, accesses: Iterable[MeshAccess]) -> TensorDims:
    strides = {s for access in accesses for s, n in zip(access.strides, access.shape, strict=True) if s or n > 1} | {1}
    ordered = sorted(strides, reverse=True)
    elements = program.tensors[tensor].elements
    if min(ordered) < 1 or any(a % b for a, b in zip([elements, *ordered], ordered, strict=False)):
        raise NotSliced(f"strides of {', '.join(map(str, ordered))} do not cut its {elements:,} elements into dims")
    return TensorDims(tuple(ordered), tuple(a // b for a, b in zip([elements, *ordered], ordered, strict=False)))


def slice_of(program: TileProgram, access: MeshAccess, dims: TensorDims, mapping: Placement) -> TileSlice:
    """A tile of a tensor; `starts` are in the grid's counters of a wave's first core, and in loops' counters."""
    if access.mask:
        raise NotSliced("a mask cuts its tiles")
    order: list[int | None] = []
    block = [1] * len(dims.strides)
    for stride, size in zip(access.strides, access.shape, strict=True):
        if size == 1:
            order.append(None)
            continue
        at = dims.strides.index(stride)
        if block[at] > 1:
            raise NotSliced("two dims of a tile go along one of the tensor")
        order.append(at)
        block[at] = size
    starts = [Affine(n) for n in _split(access.base.const, dims)]
    for counter, factor in access.base.terms:
        for at, by in enumerate(_split(factor, dims)):
            starts[at] = starts[at].plus(Affine(0, ((counter, by),)))
    steps = [[0] * len(mapping.cores) for _ in starts]
    for d, dim in enumerate(mapping.spatial):
        if dim is None:
            continue
        ahead = mapping.width_behind(d)
        for at, start in enumerate(starts):
            steps[at][d] = dict(start.terms).get(program.grid[dim].counter, 0) * ahead
    return TileSlice(tuple(starts), tuple(block), tuple(tuple(row) for row in steps), tuple(order))


def _split(number: int, dims: TensorDims) -> list[int]:
    """A flat distance as places along the dims."""
    if number < 0:
        raise NotSliced("its tiles go backwards")
    found: list[int] = []
    for stride in dims.strides:
        at, number = divmod(number, stride)
        found.append(at)
    return found


CounterNames = Mapping[int, tuple[str, int]]
"""What stands for a counter in a program, and how much one of it is."""


def place_text(start: Affine, counters: CounterNames, more: Sequence[tuple[str, int]] = ()) -> str:
    """A place as a sum, with `more` names times numbers; counters that stand still are not in it."""
    terms = [(counters[k][0], by * counters[k][1]) for k, by in start.terms if k in counters]
    texts = [name if by == 1 else f"{name} * {by}" for name, by in (*terms, *more) if by]
    return " + ".join([*texts, *([str(start.const)] if start.const or not texts else [])])


def range_text(low: str, size: int) -> str:
    if low.isdecimal():
        return f"{low}:{int(low) + size}"
    return f"{low} : {low} + {size}"


def lanes_text(name: str, tile: TileSlice, places: Mapping[int, str]) -> str:
    """One core's part of a word that has those of all cores along the dims of `places`."""
    lows = [place_text(Affine(0), {}, [(p, step[d]) for d, p in places.items()]) for step in tile.steps]
    return f"{name}[{', '.join(map(range_text, lows, tile.block))}]"


def shape_text(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
