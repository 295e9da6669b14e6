"""From a kernel's schedule to its loops: which loops there are, when an operand is read, what must be kept.

Everything about a task's order is derived here, once: itensor types, guards, buffer shapes and
addresses. The rules, for loops ordered from the outermost in:

- An operand is read when every loop that it does not depend on ("reuse loop") is in its first trip.
- What must be kept for reuse lies behind the operand's loops inside the outermost reuse loop.
- A reduction starts when all its reduction loops are in their first trip, and is written in their last.
- Partial results lie behind the parallel loops inside the outermost reduction loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineExpr, AffineMap

from penstock.compiler.dialects.affine import linear_sum, projected_dims
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.dialects.nest import Loop, Term
from penstock.compiler.errors import PenstockError


@dataclass(frozen=True)
class TileLoop:
    """One loop of a kernel: it moves along iteration dim `dim` by `stride` elements a trip."""

    name: str
    dim: int
    trip: int
    stride: int


@dataclass(frozen=True)
class OperandAccess:
    """How a task meets one operand or its result, in terms of the task's loops."""

    element: tuple[int, ...]
    """Lanes along each data dim: the token's shape."""
    guard: tuple[Term, ...]
    """When a token is read (operand) or written (result)."""
    kept: tuple[int, ...]
    """The shape of the local memory that keeps it for reuse or accumulation."""
    address: AffineMap
    """Where in that memory this iteration's element lies."""
    offset: AffineMap
    """Where in the whole tensor this iteration's element lies."""
    reused: bool
    """Whether it has to be kept at all."""


@dataclass(frozen=True)
class LoopPlan:
    """The loops of one kernel, from its trip counts, tile and unroll sizes."""

    trips: tuple[int, ...]
    tile: tuple[int, ...]
    unroll: tuple[int, ...]
    order: tuple[int, ...]
    reductions: frozenset[int]

    @staticmethod
    def of(
        layer: str,
        trips: Sequence[int],
        iterators: Sequence[IteratorTypeAttr],
        tile: Sequence[int],
        unroll: Sequence[int],
        order: Sequence[int],
    ) -> LoopPlan:
        """Check a schedule against the operation it is for."""
        if not len(trips) == len(tile) == len(unroll) == len(order):
            raise PenstockError(
                code="bad-design", what=f"{len(tile)} tile sizes for {len(trips)} iteration dims", where=layer,
                hint=f"give one tile, unroll and order entry for each of the trip counts {list(trips)}",
            )  # fmt: skip
        for dim, (trip, size, lanes) in enumerate(zip(trips, tile, unroll, strict=True)):
            if trip % size:
                raise PenstockError(
                    code="tile-does-not-divide", what=f"cannot tile dim {dim} of {trip} by {size}", where=layer,
                    limit=f"{trip} % {size} = {trip % size}", hint=f"use a divisor of {trip}",
                )  # fmt: skip
            if size % lanes:
                raise PenstockError(
                    code="unroll-does-not-divide", what=f"cannot unroll tile {size} of dim {dim} by {lanes}",
                    where=layer, limit=f"{size} % {lanes} = {size % lanes}", hint=f"use a divisor of {size}",
                )  # fmt: skip
        reductions = frozenset(d for d, kind in enumerate(iterators) if kind == IteratorTypeAttr.reduction())
        return LoopPlan(tuple(trips), tuple(tile), tuple(unroll), tuple(order), reductions)

    @cached_property
    def steps(self) -> tuple[TileLoop, ...]:
        """Tile loops in `order`, then point loops with reductions outside: partial sums rest while others run."""
        tiles = [TileLoop(f"t{d}", d, self.trips[d] // self.tile[d], self.tile[d]) for d in self.order]
        inside = [d for d in self.order if d in self.reductions] + [d for d in self.order if d not in self.reductions]
        points = [TileLoop(f"p{d}", d, self.tile[d] // self.unroll[d], self.unroll[d]) for d in inside]
        return tuple(step for step in (*tiles, *points) if step.trip > 1)

    @property
    def loops(self) -> tuple[Loop, ...]:
        return tuple(Loop(step.name, step.trip) for step in self.steps)

    def operand(self, indexing_map: AffineMap, *, reread: bool = False) -> OperandAccess:
        """An operand is kept over the loops that it does not depend on; with `reread`, over point loops only."""
        dims = _dims(indexing_map)
        reuse = [i for i, s in enumerate(self.steps) if s.dim not in dims and not (reread and s.name[0] == "t")]
        guard = tuple(Term(i, "eq", 0) for i in reuse)
        return self._access(dims, guard, reuse[0] if reuse else None)

    def result(self, indexing_map: AffineMap) -> OperandAccess:
        """A result is accumulated over the reduction loops and written in their last trip."""
        dims = _dims(indexing_map)
        reducing = [i for i, s in enumerate(self.steps) if s.dim in self.reductions]
        guard = tuple(Term(i, "eq", self.steps[i].trip - 1) for i in reducing)
        return self._access(dims, guard, reducing[0] if reducing else None)

    @property
    def reduction_starts(self) -> tuple[Term, ...]:
        return tuple(Term(i, "eq", 0) for i, s in enumerate(self.steps) if s.dim in self.reductions)

    def place(self, dim: int) -> AffineExpr:
        """Where along a dim an iteration's first lane lies."""
        return self._sum(dim, range(len(self.steps)))

    def itensor(self, indexing_map: AffineMap, dtype: Attribute, *, reread: bool = False) -> ITensorType:
        """The type of the stream that feeds an operand (or leaves as the result) in this order."""
        dims = _dims(indexing_map)
        moving = [s for s in self.steps if s.dim in dims or (reread and s.name[0] == "t")]
        element = [1 if d is None else self.unroll[d] for d in dims]
        return canonical_itensor(element, dtype, [(s.trip, s.stride, _target(dims, s.dim)) for s in moving])

    def _access(self, dims: tuple[int | None, ...], guard: tuple[Term, ...], outermost: int | None) -> OperandAccess:
        inside = range(outermost, len(self.steps)) if outermost is not None else range(0)
        element = tuple(1 if d is None else self.unroll[d] for d in dims)
        kept = list(element)
        for position in inside:
            step = self.steps[position]
            target = _target(dims, step.dim)
            if target is not None:
                kept[target] += (step.trip - 1) * step.stride
        count = len(self.steps)
        address = [self._sum(d, inside) for d in dims]
        offset = [self._sum(d, range(count)) for d in dims]
        return OperandAccess(
            element, guard, tuple(kept), AffineMap(count, 0, tuple(address)), AffineMap(count, 0, tuple(offset)),
            outermost is not None,
        )  # fmt: skip

    def _sum(self, dim: int | None, positions: Sequence[int]) -> AffineExpr:
        return linear_sum([(p, self.steps[p].stride) for p in positions if self.steps[p].dim == dim])


def shortest_loops(loops: Sequence[tuple[int, int, int | None]]) -> list[tuple[int, int, int | None]]:
    """The same walk in as few loops as can be; they are (trips, step, data dim or None).

    Loops of one trip vanish; two neighbours that walk one data dim without a gap are one loop.
    """
    merged: list[tuple[int, int, int | None]] = []
    for trip, step, target in loops:
        if trip == 1:
            continue
        if target is None:
            step = 1
        if merged:
            outer_trip, outer_step, outer_target = merged[-1]
            if outer_target == target and (target is None or outer_step == trip * step):
                merged[-1] = (outer_trip * trip, step, target)
                continue
        merged.append((trip, step, target))
    return merged


def canonical_itensor(
    element: Sequence[int], dtype: Attribute, loops: Sequence[tuple[int, int, int | None]]
) -> ITensorType:
    """The shortest type of a stream order, so that equal orders have equal types."""
    merged = shortest_loops(loops)
    coordinates = [
        linear_sum([(i, 1) for i, (_, _, target) in enumerate(merged) if target == dim]) for dim in range(len(element))
    ]
    iter_map = AffineMap(len(merged), 0, tuple(coordinates))
    return ITensorType.of(element, dtype, [m[0] for m in merged], [m[1] for m in merged], iter_map)


def itensor_loops(kind: ITensorType) -> list[tuple[int, int, int | None]]:
    """The loops of a type as (trips, step, data dim or None), the form that `canonical_itensor` takes."""
    targets: list[int | None] = [None] * len(kind.trip_counts)
    for dim, expression in enumerate(kind.iter_map.data.results):
        for position in expression.used_dims():
            targets[position] = dim
    return list(zip(kind.trip_counts, kind.step_sizes, targets, strict=True))


def _dims(indexing_map: AffineMap) -> tuple[int | None, ...]:
    return projected_dims(indexing_map)


def _target(dims: tuple[int | None, ...], dim: int) -> int | None:
    return dims.index(dim) if dim in dims else None
