"""Builds the nest of a slide: a line buffer that lays out the windows along one dim as the tensor passes.

Every slot takes the slice at one place of the dim, or its padding, and knows the slices at the places before it that
windows still want: `reach` of them, each in a memory that holds what lies inside the dim. The windows that end there
leave at once. So the memories hold exactly what is alive when a slice arrives, and nothing waits for a whole frame.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.loops import itensor_loops
from penstock.compiler.analysis.nests import (
    Constant,
    Load,
    NestFacts,
    NestValue,
    Place,
    Read,
    Select,
    Statement,
    StoreFact,
)
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.nest import ALWAYS, GuardAttr, Loop, Term
from penstock.compiler.dialects.window import Slide
from penstock.compiler.plan.converter_nests import push, stack


def build_slide(
    kinds: tuple[ITensorType, ITensorType], by: Slide, fill: Attribute, source: Place, targets: Sequence[Place]
) -> NestFacts:
    """From the FIFO `source` into the FIFOs `targets`. Both walk alike, but for how far they go along the dim."""
    given, made = (itensor_loops(kind) for kind in kinds)
    at = slide_position(kinds, by)
    inner = [loop for loop in given[at:] if loop[2] != by.dim]
    outer = [loop for loop in given[:at] if loop[2] != by.dim]
    assert [loop for loop in made if loop[2] != by.dim] == [*outer, *inner], "windows leave in the order of the source"
    extent = kinds[0].data_shape()[by.dim]
    places = max(by.end, by.before + extent)
    loops = [*_named(outer, 0), Loop("at", places), *_named(inner, len(outer))]
    taken = GuardAttr(_between(len(outer), by.before, by.before + extent - 1, places))
    sent = GuardAttr(_windows_end(len(outer), by, places))
    token = NestValue(source.shape, source.dtype)
    statements: list[Statement] = [Read(source, taken, token)]
    if places > extent:
        nothing, passing = NestValue(source.shape, source.dtype), NestValue(source.shape, source.dtype)
        statements += [Constant(fill, nothing), Select(token, nothing, taken, passing)]
        token = passing
    shape, address = _memory(source.shape, inner, len(outer) + 1, len(loops))
    lines = [Place(f"line_{i}", "buffer", shape, source.dtype) for i in range(by.reach)]
    before = [NestValue(source.shape, source.dtype) for _ in lines]
    statements += [Load(line, address, ALWAYS, value) for line, value in zip(lines, before, strict=True)]
    known = [*before, token]
    statements += [StoreFact(value, line, address, ALWAYS) for line, value in zip(lines, known[1:], strict=True)]
    window = token
    if by.size > 1:
        window = NestValue((*source.shape, by.size), source.dtype)
        statements.append(stack(known[:: by.apart], window))
    return NestFacts("slide", tuple(loops), [*statements, *push(window, targets, sent)])


def slide_position(kinds: tuple[ITensorType, ITensorType], by: Slide) -> int:
    """Which of the source's loops goes along the dim; where a dim of one element has none, where it would be."""
    for loops in map(itensor_loops, kinds):
        for position, (_, _, dim) in enumerate(loops):
            if dim == by.dim:
                return position
    return 0


def _named(loops: Sequence[LoopOf], first: int) -> list[Loop]:
    return [Loop(f"w{first + i}", trip) for i, (trip, _, _) in enumerate(loops)]


def _between(loop: int, first: int, last: int, trip: int) -> tuple[Term, ...]:
    terms = [Term(loop, "ge", first)] if first > 0 else []
    return (*terms, *([Term(loop, "le", last)] if last < trip - 1 else []))


def _windows_end(loop: int, by: Slide, trip: int) -> tuple[Term, ...]:
    """At the last place of each window."""
    if by.count == 1:
        return (Term(loop, "eq", by.reach),) if trip > 1 else ()
    terms = _between(loop, by.reach, by.end - 1, trip)
    return terms if by.step == 1 else (*terms, Term(loop, "eq", by.reach % by.step, by.step))


def _memory(
    token: tuple[int, ...], inner: Sequence[LoopOf], first: int, count: int
) -> tuple[tuple[int, ...], AffineMap]:
    """For what passes at one place of the dim: its shape, and where in it each slot is."""
    shape = tuple(
        size + sum((trip - 1) * step for trip, step, target in inner if target == dim) for dim, size in enumerate(token)
    )
    corner = [
        linear_sum([(first + i, step) for i, (_, step, target) in enumerate(inner) if target == dim])
        for dim in range(len(token))
    ]
    return shape, AffineMap(count, 0, tuple(corner))
