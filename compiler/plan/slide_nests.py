"""Builds the nest of a slide: a line buffer that lays out the windows along one dim as the tensor passes.

Every slot takes the slice at one place of the dim, or at several side by side, or their padding, and knows the slices
before it that windows still want, with all that lies inside the dim (`last_tokens.py`). The windows that end there
leave at once. So the memories hold what is alive when a slice arrives, and nothing waits for a whole frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.loops import itensor_loops
from penstock.compiler.analysis.nests import (
    Constant,
    NestFacts,
    NestValue,
    Place,
    Read,
    Select,
    Statement,
)
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.itensor_types import ITensorType
from penstock.compiler.dialects.nest import GuardAttr, Loop, Term
from penstock.compiler.dialects.nest_stack import Stacking
from penstock.compiler.dialects.window import Slide
from penstock.compiler.plan.converter_nests import push
from penstock.compiler.plan.last_tokens import LastTokens, stack


def build_slide(
    kinds: tuple[ITensorType, ITensorType], by: Slide, fill: Attribute, source: Place, targets: Sequence[Place]
) -> NestFacts:
    """From the FIFO `source` into the FIFOs `targets`. Both walk alike, but for how far they go along the dim."""
    given, made = (itensor_loops(kind) for kind in kinds)
    at = slide_position(kinds, by)
    inner = [loop for loop in given[at:] if loop[2] != by.dim]
    outer = [loop for loop in given[:at] if loop[2] != by.dim]
    assert [loop for loop in made if loop[2] != by.dim] == [*outer, *inner], "windows leave in the order of the source"
    walk = SlideWalk.of(kinds, by)
    loops = [*_named(outer, 0), Loop("at", walk.slots), *_named(inner, len(outer))]
    taken = GuardAttr(_between(len(outer), walk.before, walk.before + walk.tokens - 1, walk.slots))
    sent = GuardAttr(_windows_end(len(outer), walk))
    token = NestValue(source.shape, source.dtype)
    statements: list[Statement] = [Read(source, taken, token)]
    if walk.slots > walk.tokens:
        nothing, passing = NestValue(source.shape, source.dtype), NestValue(source.shape, source.dtype)
        statements += [Constant(fill, nothing), Select(token, nothing, taken, passing)]
        token = passing
    shape, address = _memory(source.shape, inner, len(outer) + 1, len(loops))
    lines = LastTokens(source, walk.first_sent, shape, address, by.dim, len(outer))
    before, loads = lines.load()
    known = [*before, token]
    statements += [*loads, *lines.store(before, token)]
    stacking = walk.stacking
    window = token
    if by.size > 1 or len(known) > 1 or stacking.count < walk.width:
        window = NestValue(stacking.shape(source.shape), source.dtype)
        statements.append(stack(known, stacking, window))
    return NestFacts("slide", tuple(loops), [*statements, *push(window, targets, sent)])


@dataclass(frozen=True)
class SlideWalk:
    """How far source and windows go in a slot: `width` places come at once, `windows` windows leave at once.

    Slots count tokens of the source; `before` of them are padding. Windows leave from slot `first_sent` on, every
    `every` slots, `groups` times. A slot then knows the tokens of `first_sent` slots before its own.
    """

    by: Slide
    tokens: int
    width: int
    windows: int

    @staticmethod
    def of(kinds: tuple[ITensorType, ITensorType], by: Slide) -> SlideWalk:
        extent, width = kinds[0].data_shape()[by.dim], kinds[0].element_shape[by.dim]
        walk = SlideWalk(by, extent // width, width, kinds[1].element_shape[by.dim])
        assert by.paces(extent, width, walk.windows), "tokens hold whole steps of windows"
        return walk

    @property
    def before(self) -> int:
        return -(-self.by.before // self.width)

    @property
    def every(self) -> int:
        return self.windows * self.by.step // self.width

    @property
    def groups(self) -> int:
        return self.by.count // self.windows

    @property
    def _behind(self) -> int:
        """From the first token of the frame to the one that completes the first windows."""
        return ((self.windows - 1) * self.by.step + self.by.reach - self.by.before) // self.width

    @property
    def first_sent(self) -> int:
        return self.before + self._behind

    @property
    def slots(self) -> int:
        return max(self.first_sent + (self.groups - 1) * self.every + 1, self.before + self.tokens)

    @property
    def stacking(self) -> Stacking:
        first = self.before * self.width - self.by.before
        return Stacking(self.by.dim, first, self.windows, self.by.size, self.by.step, self.by.apart)


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


def _windows_end(loop: int, walk: SlideWalk) -> tuple[Term, ...]:
    """Where the last places of windows are there."""
    first, every = walk.first_sent, walk.every
    if walk.groups == 1:
        return (Term(loop, "eq", first),) if walk.slots > 1 else ()
    terms = _between(loop, first, first + (walk.groups - 1) * every, walk.slots)
    return terms if every == 1 else (*terms, Term(loop, "eq", first % every, every))


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
