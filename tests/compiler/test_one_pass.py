"""Converters of one nest: the plan replayed slot by slot on random pairs of orders, and what it saves."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import i8
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.converter import LoopOf, plan_converter
from penstock.compiler.analysis.loops import canonical_itensor, itensor_loops
from penstock.compiler.analysis.one_pass import OnePassPlan, plan_one_pass
from penstock.compiler.analysis.walks import read_walk
from penstock.compiler.dialects.itensor import ITensorType
from tests.compiler.test_converter import Element, elements, orders, pairs

Loops = list[tuple[int, int, int | None]]


def kind(element: list[int], loops: Loops) -> ITensorType:
    return canonical_itensor(element, i8, loops)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[ITensorType, ITensorType]:
    """An order, and the same one in larger slices without some of its fine loops and with or without repeats."""
    shape = draw(st.sampled_from([(12,), (6, 6), (8, 8), (2, 4, 4)]))
    fine = draw(orders(shape))
    element = list(fine.element_shape)
    loops: Loops = []
    for trip, step, dim in itensor_loops(fine):
        if dim is not None and step == element[dim] and draw(st.booleans()):
            size = draw(st.sampled_from([d for d in range(1, trip + 1) if trip % d == 0]))
            element[dim] *= size
            loops.append((trip // size, step * size, dim))
        elif dim is not None or draw(st.booleans()):
            loops.append((trip, step, dim))
    coarse = kind(element, loops)
    assume(coarse.data_shape() == fine.data_shape())
    return (fine, coarse) if draw(st.booleans()) else (coarse, fine)


@st.composite
def coarser(draw: st.DrawFn) -> tuple[ITensorType, ITensorType]:
    """Single elements in any order, and slices of any size in some order of them."""
    shape = draw(st.sampled_from([(12,), (6, 6), (4, 6)]))
    fine, coarse = draw(orders(shape)), draw(orders(shape))
    ones = kind([1] * len(shape), [*itensor_loops(fine), *((e, 1, d) for d, e in enumerate(fine.element_shape))])
    return (ones, coarse) if draw(st.booleans()) else (coarse, ones)


def box(corner: Element, shape: tuple[int, ...]) -> list[Element]:
    return list(itertools.product(*(range(c, c + s) for c, s in zip(corner, shape, strict=True))))


def replay(plan: OnePassPlan, source: ITensorType, target: ITensorType) -> None:
    """Slot by slot on a memory of the planned size: every source slice is taken, every target slice is right."""
    incoming, outgoing = elements(source), elements(target)
    memory: dict[Element, Element] = {}
    for counters in itertools.product(*(range(loop.trip) for loop in plan.loops)):
        if all(term.holds(counters) for term in plan.read):
            places = box(plan.store.eval(list(counters), []), source.element_shape)
            assert all(p < size for place in places for p, size in zip(place, plan.memory, strict=True))
            memory |= dict(zip(places, next(incoming), strict=True))
        if all(term.holds(counters) for term in plan.write):
            places = box(plan.load.eval(list(counters), []), target.element_shape)
            assert [memory[place] for place in places] == next(outgoing)
    assert next(incoming, None) is None
    assert next(outgoing, None) is None


@settings(max_examples=400)
@given(pair=st.one_of(neighbours(), coarser(), pairs()))
def test_replay(pair: tuple[ITensorType, ITensorType]) -> None:
    source, target = pair
    plan = plan_one_pass(source, target)
    assume(plan is not None)
    assert plan is not None
    replay(plan, source, target)
    blocks = plan_converter(source, target)
    assert plan.elements <= blocks.block_elements
    slots = 1
    for loop in plan.loops:
        slots *= loop.trip
    assert slots == max(read_walk(source).tokens, read_walk(target).tokens)


ROWS: tuple[list[int], Loops] = ([1, 4], [(8, 1, 0), (16, 4, 1)])
FIGURE_B = ITensorType.of([4, 2], i8, [4, 2], [2, 4], AffineMap.from_callable(lambda d0, d1: (d1, d0)))
FIGURE_C = ITensorType.of([4, 2], i8, [4, 2, 2], [2, 1, 4], AffineMap.from_callable(lambda d0, d1, d2: (d2, d0)))


@pytest.mark.parametrize(
    ("source", "target", "memory"),
    [
        (kind(*ROWS), kind([4, 4], [(2, 4, 0), (16, 4, 1)]), (4, 64)),  # rows to tiles of 4 rows: 4 rows, not 8
        (kind([4, 4], [(2, 4, 0), (16, 4, 1)]), kind(*ROWS), (4, 64)),  # and back
        (kind(*ROWS), kind([1, 16], [(8, 1, 0), (4, 16, 1)]), (1, 16)),  # wider: one slice
        (kind([1, 16], [(8, 1, 0), (4, 16, 1)]), kind(*ROWS), (1, 16)),
        (FIGURE_B, FIGURE_C, (8, 2)),  # two tiles where ping-pong has four
        (FIGURE_C, FIGURE_B, (4, 2)),  # of what is sent twice, one passes
        (kind([8, 1], [(8, 1, 1)]), kind([4, 1], [(2, 4, 0), (3, 1, None), (8, 1, 1)]), (8, 8)),  # each half thrice
        (kind(*ROWS), kind([1, 4], [(16, 4, 1), (8, 1, 0)]), None),  # a transpose of slices
        (kind([1], [(3, 2, 0), (2, 1, 0)]), kind([3], [(2, 3, 0)]), (3,)),  # one loop, written as two
        (kind([1, 1], [(3, 2, 0), (6, 1, 1), (2, 1, 0)]), kind([3, 6], [(2, 3, 0)]), None),  # 3 is no part of 2s
        (kind([3, 5], [(6, 1, 0)]), kind([8, 5], []), None),  # windows overlap
        (kind([1, 4], [(8, 1, 0)]), kind([2, 1], [(4, 2, 0), (4, 1, 1)]), None),  # each finer along another dim
    ],
)
def test_known_pairs(source: ITensorType, target: ITensorType, memory: tuple[int, ...] | None) -> None:
    plan = plan_one_pass(source, target)
    assert (plan and plan.memory) == memory
    if plan is not None:
        replay(plan, source, target)


def test_a_line_buffer_reads_always_and_writes_in_the_last_row() -> None:
    plan = plan_one_pass(kind(*ROWS), kind([4, 4], [(2, 4, 0), (16, 4, 1)]))
    assert plan is not None
    assert [loop.trip for loop in plan.loops] == [2, 4, 16]
    assert plan.read == ()
    assert [str(term) for term in plan.write] == ["d1 eq 3"]
    assert str(plan.store) == "(d0, d1, d2) -> (d1, (d2 * 4))"
    assert str(plan.load) == "(d0, d1, d2) -> (0, (d2 * 4))"


def test_loops_that_are_split_differently_still_match() -> None:
    """The tile loop of one side and the repeat of the other lie between the parts of one loop."""
    source: list[LoopOf] = [(2, 8, 0), (2, 1, None), (2, 4, 0), (4, 1, 0)]
    plan = plan_one_pass(kind([1], source), kind([4], [(4, 4, 0)]))
    assert plan is not None
    replay(plan, kind([1], source), kind([4], [(4, 4, 0)]))
