"""Converters that need one block and one nest: the finer side sets the pace, the other joins in its slots.

Where one side's slices are made of the other's, and both walk the data in the same order but for loops that vanish
in the larger slice (or that repeat it), no second block is needed. Rows that become tiles are the example: each
slot stores a piece of a row, and in the last row of a band each slot also sends a tile. It is the line buffer.

The price is coupling: the larger side's slices come in bursts of `burst`, in which the finer side waits for it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from math import prod

from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.walks import LoopOf, SliceWalk, read_walk
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.dialects.nest import Loop, Term


@dataclass(frozen=True)
class OnePassPlan:
    """One nest. In each slot: where `read` holds, take a source slice and store it; where `write` holds, send one."""

    loops: tuple[Loop, ...]
    read: tuple[Term, ...]
    store: AffineMap
    """Where a source slice goes in the memory."""
    memory: tuple[int, ...]
    load: AffineMap
    """Where a target slice comes from; what was stored in the same slot is seen."""
    write: tuple[Term, ...]
    burst: int
    """How many of the larger side's slices pass in neighbouring slots before a pause; 1 is a register."""

    @property
    def elements(self) -> int:
        """What the memory holds; there is no second block."""
        return prod(self.memory)


@dataclass(frozen=True)
class _Step:
    """One loop of the nest. An extra loop is the finer side's alone."""

    trip: int
    step: int
    dim: int | None
    extra: bool


def plan_one_pass(source: ITensorType, target: ITensorType) -> OnePassPlan | None:
    """The plan, or None where the orders differ in more than the size of their slices and in repeats."""
    sent, wanted = read_walk(source), read_walk(target)
    if source == target or not (sent.tiles and wanted.tiles) or sent.extents != wanted.extents:
        return None
    if (steps := _align(sent, wanted)) is not None:
        last = tuple(Term(i, "eq", 0 if s.dim is None else s.trip - 1) for i, s in enumerate(steps) if s.extra)
        return _plan(steps, [s.extra and s.dim is not None for s in steps], wanted.element, sent.element, (), last)
    if (steps := _align(wanted, sent)) is not None:
        first = tuple(Term(i, "eq", 0) for i, s in enumerate(steps) if s.extra)
        return _plan(steps, [s.extra for s in steps], sent.element, sent.element, first, ())
    return None


def _align(fine: SliceWalk, coarse: SliceWalk) -> list[_Step] | None:
    """The finer side's loops, split so that the coarser side's are among them, in the same order."""
    if any(large % small for small, large in zip(fine.element, coarse.element, strict=True)):
        return None
    steps: list[_Step] = []
    left, right = deque(fine.loops), deque(coarse.loops)
    while left:
        trip, step, dim = left.popleft()
        if dim is None:
            shared = right[0][0] if right and right[0][2] is None else 1
            if trip % shared:
                return None
            if shared > 1:
                steps.append(_Step(shared, 1, None, extra=False))
                right.popleft()
            if trip > shared:
                steps.append(_Step(trip // shared, 1, None, extra=True))
        elif step * trip <= coarse.element[dim]:
            steps.append(_Step(trip, step, dim, extra=True))
        elif step < coarse.element[dim]:
            size = coarse.element[dim]
            if size % step or trip * step % size:
                return None
            left.extendleft([(size // step, step, dim), (trip * step // size, size, dim)])
        else:
            outer = _outer_part((trip, step, dim), right)
            if outer is None:
                return None
            steps.append(_Step(*outer, extra=False))
            if trip > outer[0]:
                left.appendleft((trip // outer[0], step, dim))
    return None if right else steps


def _outer_part(loop: LoopOf, others: deque[LoopOf]) -> LoopOf | None:
    """The outer part that a loop has in common with the first of the others, which is taken off there."""
    if not others:
        return None
    (trip, step, dim), (other_trip, other_step, other) = loop, others[0]
    coarse = max(step, other_step)
    if dim != other or trip * step != other_trip * other_step or coarse % min(step, other_step):
        return None
    others.popleft()
    if other_step < coarse:
        others.appendleft((coarse // other_step, other_step, dim))
    return trip * step // coarse, coarse, dim


def _plan(
    steps: list[_Step],
    keeps: list[bool],
    large: tuple[int, ...],
    sent: tuple[int, ...],
    read: tuple[Term, ...],
    write: tuple[Term, ...],
) -> OnePassPlan:
    """Memory for the slices of the larger side that lie inside the outermost loop over which one is kept."""
    inside = range(keeps.index(True), len(steps)) if any(keeps) else range(0)
    memory = tuple(
        size + sum((s.trip - 1) * s.step for s in (steps[i] for i in inside) if s.dim == dim and not s.extra)
        for dim, size in enumerate(large)
    )
    whole = [[(i, steps[i].step) for i in inside if steps[i].dim == dim and not steps[i].extra]
             for dim in range(len(large))]  # fmt: skip
    part = [[(i, steps[i].step) for i in inside if steps[i].dim == dim] for dim in range(len(large))]
    of_source, of_target = (whole, part) if sent == large else (part, whole)
    store, load = (
        AffineMap(len(steps), 0, tuple(linear_sum(terms) for terms in dims)) for dims in (of_source, of_target)
    )
    loops = tuple(Loop(f"w{i}", s.trip) for i, s in enumerate(steps))
    burst = prod(steps[i].trip for i in inside if not steps[i].extra)
    return OnePassPlan(loops, read, store, memory, load, write, burst)
