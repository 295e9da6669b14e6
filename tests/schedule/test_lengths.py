"""One schedule for all lengths that a call may say: what it takes as given holds at each of them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser

from penstock.compiler.analysis.extents import Extents
from penstock.compiler.dialects.affine import linear_sum
from penstock.compiler.dialects.nest import GuardAttr, Loop, Term
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.lengths import ByLength, Length
from penstock.compiler.schedule import load_library
from penstock.compiler.schedule.carried import reuse_distance
from penstock.compiler.transforms.merge_lengths import at_steps, merge_lengths
from penstock.profiling.network import network_of
from tests.schedule.sums import sums, sums_of, top

SEQ = Length("seq", 1, 5)
COUNTS = st.builds(lambda factor, offset: ByLength.of({"seq": factor}, offset), st.integers(1, 2), st.integers(0, 2))
LOOPS = st.one_of(
    st.builds(lambda trip: Loop("d", trip), st.integers(1, 4)),
    st.builds(lambda count: Loop("d", count.at({"seq": 5}), count), COUNTS),
)


@st.composite
def terms(draw: st.DrawFn, loops: list[Loop]) -> Term:
    loop = draw(st.integers(0, len(loops) - 1))
    term = Term(loop, draw(st.sampled_from(["eq", "ne", "ge", "le"])), draw(st.integers(0, 4)))
    if draw(st.booleans()):
        count = draw(st.one_of(COUNTS, st.just(loops[loop].number))).plus(-1)
        if count.factors:
            term = replace(term, value=count.at({"seq": 5}), count=count)
    return term


def at(seq: int, loops: list[Loop], guard: GuardAttr) -> tuple[list[int], GuardAttr]:
    lengths = {"seq": seq}
    return [loop.number.at(lengths) for loop in loops], GuardAttr(
        tuple(replace(term, value=term.number.at(lengths)) for term in guard.terms)
    )


@given(st.data())
def test_what_is_said_of_guards_holds_at_every_length(data: st.DataObject) -> None:
    loops = data.draw(st.lists(LOOPS, min_size=1, max_size=2))
    a, b = (GuardAttr(tuple(data.draw(st.lists(terms(loops), max_size=2)))) for _ in range(2))
    extents = Extents(loops, (SEQ,))
    for seq in range(1, 6):
        trips, one = at(seq, loops, a)
        other = at(seq, loops, b)[1]
        counters = list(itertools.product(*(range(trip) for trip in trips)))
        if extents.always_first(a):
            assert one.holds(counters[0])
        if extents.always_last(a):
            assert one.holds(counters[-1])
        if extents.exclusive(a, b):
            assert not any(one.holds(at) and other.holds(at) for at in counters)
        assert all(low <= trip <= high for low, trip, high in zip(extents.least, trips, extents.most, strict=True))


def test_a_guard_and_its_opposite_exclude_each_other_and_ends_that_may_meet_do_not() -> None:
    loops = [Loop("d", 5, ByLength.of({"seq": 1}))]
    last = ByLength.of({"seq": 1}, -1)
    at_end, before = (GuardAttr((Term(0, sign, 4, count=last),)) for sign in ("eq", "ne"))
    first = GuardAttr((Term(0, "eq", 0),))
    assert Extents(loops, (SEQ,)).exclusive(at_end, before)
    assert not Extents(loops, (SEQ,)).exclusive(at_end, first)  # at seq = 1
    assert Extents(loops, (replace(SEQ, low=2),)).exclusive(at_end, first)
    assert Extents(loops, (SEQ,)).always_last(at_end)


@given(st.data())
def test_the_distance_of_a_dependence_is_that_of_the_length_where_it_is_least_or_shorter(data: st.DataObject) -> None:
    loops = data.draw(st.lists(LOOPS, min_size=1, max_size=3))
    moves = [(i, s) for i in range(len(loops)) if (s := data.draw(st.integers(0, 2)))]
    address = AffineMap(len(loops), 0, (linear_sum(moves),))
    found = reuse_distance(address, address, [1], Extents(loops, (SEQ,)))
    for seq in range(1, 6):
        fixed = Extents.of_trips([loop.number.at({"seq": seq}) for loop in loops])
        distance = reuse_distance(address, address, [1], fixed)
        assert distance is None or (found is not None and found <= distance)


def test_a_partial_sum_that_comes_back_sooner_at_short_lengths_slows_all_of_them() -> None:
    """One pipeline does all lengths, so that its interval is that of the shortest."""
    library = load_library("open-ecp5", 100.0)
    add = next(row.latency for row in library.operators if "arith.addf" in row.ops)
    stages = library.memory.load_latency + add + library.memory.store_latency
    for low in (1, 2, stages):
        module = sums(low)
        (whole,) = network_of(top(module), library).tasks[0].nests
        assert whole.ii == max(1, -(-stages // low))
        for seq in (low, 16):
            (one,) = network_of(top(at_steps(module, {"seq": seq})), library).tasks[0].nests
            assert (one.ii, one.depth, one.stages) == (whole.ii, whole.depth, whole.stages)
            assert one.iterations == 4 * seq


def test_a_length_that_was_fixed_is_still_known_in_the_text() -> None:
    fixed = at_steps(sums(1), {"seq": 5})
    text = str(fixed)
    assert "c: 5 of seq" in text
    assert str(Parser(make_context(), text).parse_module()) == text


def test_a_loop_that_might_not_turn_is_refused() -> None:
    trips, lengths = (14, 13, 6), (Length("seq", 2, 16),)
    modules = [sums_of(n) for n in trips]
    steps = [{"seq": n + 2} for n in trips]
    with pytest.raises(PenstockError, match="loop c turns seq - 2 times, which may be none") as caught:
        merge_lengths(modules, steps, lengths, "sums")
    assert caught.value.where == "sum"
    merge_lengths(modules, steps, (Length("seq", 3, 16),), "sums")
