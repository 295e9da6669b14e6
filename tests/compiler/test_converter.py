"""Converters against brute force: random pairs of stream orders replayed through the planned blocks."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i8
from xdsl.ir.affine import AffineMap

from compiler.analysis.converter import LoopOf, plan_converter
from compiler.analysis.loops import canonical_itensor, itensor_loops
from compiler.dialects.itensor import ITensorType

Element = tuple[int, ...]


@st.composite
def orders(draw: st.DrawFn, shape: tuple[int, ...]) -> ITensorType:
    """A way to stream a tensor of this shape: nested divisions of each dim, shuffled, some of it repeated."""
    loops: list[tuple[int, int, int | None]] = []
    element: list[int] = []
    for dim, extent in enumerate(shape):
        lanes = draw(st.sampled_from([d for d in range(1, extent + 1) if extent % d == 0]))
        inner = draw(st.sampled_from([d for d in range(lanes, extent + 1) if extent % d == 0 and d % lanes == 0]))
        element.append(lanes)
        loops += [(extent // inner, inner, dim), (inner // lanes, lanes, dim)]
    positions = draw(st.permutations(range(len(loops))))
    chosen = [loops[p] for p in positions]
    for dim in range(len(shape)):  # the coarse loop of a dim stays outside its fine loop, as tiling makes them
        first, second = (i for i, loop in enumerate(chosen) if loop[2] == dim)
        coarse, fine = loops[2 * dim], loops[2 * dim + 1]
        chosen[first], chosen[second] = coarse, fine
    if draw(st.booleans()):
        chosen.insert(draw(st.integers(0, len(chosen))), (2, 1, None))
    return canonical_itensor(element, i8, chosen)


def elements(kind: ITensorType) -> Iterator[list[Element]]:
    """The elements of each token, in the order of the stream."""
    for corner in kind.offsets():
        spans = [range(c, c + e) for c, e in zip(corner, kind.element_shape, strict=True)]
        yield list(itertools.product(*spans))


def walk(loops: tuple[LoopOf, ...], rank: int) -> Iterator[Element]:
    for counters in itertools.product(*(range(trip) for trip, _, _ in loops)):
        corner = [0] * rank
        for counter, (_, step, dim) in zip(counters, loops, strict=True):
            if dim is not None:
                corner[dim] += counter * step
        yield tuple(corner)


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_replay(data: st.DataObject) -> None:
    """Writing blocks in the source's order and reading them in the target's gives the target's stream."""
    shape = data.draw(st.sampled_from([(8,), (12,), (4, 6), (8, 8), (2, 4, 4)]))
    source, target = data.draw(orders(shape)), data.draw(orders(shape))
    plan, rank = plan_converter(source, target), len(shape)
    incoming, outgoing = elements(source), elements(target)
    for _ in walk(plan.shared, rank):
        block: dict[Element, Element] = {}
        for corner in walk(plan.source, rank):
            token = next(incoming)
            spans = [range(c, c + e) for c, e in zip(corner, source.element_shape, strict=True)]
            for place, element in zip(itertools.product(*spans), token, strict=True):
                assert all(p < extent for p, extent in zip(place, plan.block, strict=True))
                block[place] = element
        for corner in walk(plan.target, rank):
            spans = [range(c, c + e) for c, e in zip(corner, target.element_shape, strict=True)]
            assert [block[place] for place in itertools.product(*spans)] == next(outgoing)
    assert next(incoming, None) is None
    assert next(outgoing, None) is None


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_equal_orders_have_equal_types(data: st.DataObject) -> None:
    """The canonical type depends on the order of the tokens only, not on how the loops were written."""
    kind = data.draw(orders((8, 8)))
    split: list[tuple[int, int, int | None]] = []
    for trip, step, dim in itensor_loops(kind):
        factor = data.draw(st.sampled_from([d for d in range(1, trip + 1) if trip % d == 0]))
        split += [(trip // factor, step * factor, dim), (factor, step, dim)]
    assert canonical_itensor(kind.element_shape, i8, split) == kind


def test_figure_5() -> None:
    """Order (b) to order (c): an 8x2 block, two tiles, one shared loop."""
    b = ITensorType.of([4, 2], i8, [4, 2], [2, 4], AffineMap.from_callable(lambda d0, d1: (d1, d0)))
    c = ITensorType.of([4, 2], i8, [4, 2, 2], [2, 1, 4], AffineMap.from_callable(lambda d0, d1, d2: (d2, d0)))
    plan = plan_converter(b, c)
    assert plan.block == (8, 2)
    assert plan.shared == ((4, 2, 1),)


def test_width_changes_need_one_wide_token() -> None:
    """From 4 lanes to 16 of one row: the shared loop is split off and the block is one target token."""
    narrow = canonical_itensor([1, 4], i8, [(8, 1, 0), (16, 4, 1)])
    wide = canonical_itensor([1, 16], i8, [(8, 1, 0), (4, 16, 1)])
    assert plan_converter(narrow, wide).block == (1, 16)
    assert plan_converter(wide, narrow).block == (1, 16)
