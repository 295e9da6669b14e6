"""What must hold for every nest: patterns against the guards themselves, distances against replay, bounds."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir.affine import AffineMap

from penstock.compiler.analysis.extents import Extents
from penstock.compiler.dialects.affine import evaluate_map, linear_sum
from penstock.compiler.dialects.nest import GuardAttr, Term
from penstock.compiler.pipeline import lower
from penstock.compiler.schedule import TokenPattern, load_library, schedule_nest
from penstock.compiler.schedule.carried import reuse_distance, stands_still
from tests.compiler.designs import designs, networks
from tests.schedule.gemms import OPEN, VITIS_300, gemm_schedule

TRIPS = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@st.composite
def guards(draw: st.DrawFn, trips: list[int]) -> GuardAttr:
    def term() -> Term:
        loop = draw(st.integers(0, len(trips) - 1))
        comparison = draw(st.sampled_from(["eq", "ne", "ge", "le"]))
        return Term(loop, comparison, draw(st.integers(0, trips[loop] - 1)))

    return GuardAttr(tuple(term() for _ in range(draw(st.integers(0, 3)))))


@given(st.data())
def test_a_pattern_is_where_the_guard_holds(data: st.DataObject):
    trips = data.draw(TRIPS)
    guard = data.draw(guards(trips))
    space = itertools.product(*(range(t) for t in trips))
    expected = [i for i, counters in enumerate(space) if guard.holds(counters)]
    pattern = TokenPattern.of(guard, trips)
    assert pattern.count == len(expected)
    assert [pattern.iteration(t) for t in range(pattern.count)] == expected


@given(st.data())
def test_the_distance_of_a_dependence_is_never_too_long(data: st.DataObject):
    """Against replay: no word is loaded again sooner than the distance says, and often exactly then."""
    trips = data.draw(TRIPS)
    lanes = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    steps = st.integers(0, 4)
    results = [linear_sum([(i, s) for i in range(len(trips)) if (s := data.draw(steps))]) for _ in lanes]
    address = AffineMap(len(trips), 0, tuple(results))
    distance = reuse_distance(address, address, lanes, Extents.of_trips(trips))
    seen: dict[tuple[int, ...], int] = {}
    least: int | None = None
    for i, counters in enumerate(itertools.product(*(range(t) for t in trips))):
        corner = evaluate_map(address, counters)
        for word in itertools.product(*(range(c, c + n) for c, n in zip(corner, lanes, strict=True))):
            if word in seen:
                gap = i - seen[word]
                least = gap if least is None else min(least, gap)
            seen[word] = i
    if least is None:
        assert distance is None or distance >= 1
    else:
        assert distance is not None
        assert 1 <= distance <= least
    if stands_still(address, Extents.of_trips(trips)) and max(trips) > 1:
        assert distance == 1


@given(st.data())
@settings(max_examples=20)
def test_every_channel_gets_as_many_tokens_as_are_taken(data: st.DataObject):
    program = data.draw(networks())
    lowered = lower(program, data.draw(designs(program.module)))
    library = load_library(*data.draw(st.sampled_from([OPEN, VITIS_300])))
    put: Counter[str] = Counter()
    got: Counter[str] = Counter()
    for _, op in lowered.nests:
        schedule = schedule_nest(op, library)
        assert schedule.ii >= 1
        assert schedule.latency >= schedule.iterations
        assert schedule.ii == max(b.ii for b in schedule.bounds)
        assert 0 <= schedule.initial_delay <= schedule.latency
        for stage in schedule.stages:
            assert 0 <= stage.start <= stage.end < schedule.depth
        for port in schedule.ports:
            assert 0 <= port.stage < schedule.depth
            if port.kind == "stream":
                (put if port.direction == "write" else got)[port.channel] += port.tokens
        for _, area in (*schedule.logic.items(), *schedule.area.items()):
            assert area >= 0
    assert put == got
    assert sum(put.values()) > 0


@pytest.mark.parametrize("kind", ["int8", "float32"])
@pytest.mark.parametrize("library", [OPEN, VITIS_300])
@given(st.data())
@settings(max_examples=25)
def test_more_lanes_need_no_fewer_resources_and_no_more_time(
    kind: str, library: tuple[str, float], data: st.DataObject
):
    dim = data.draw(st.integers(0, 2))
    base = tuple(data.draw(st.sampled_from([1, 2])) for _ in range(3))
    wide = tuple(2 * u if d == dim else u for d, u in enumerate(base))
    tile = (8, 8, 16)
    narrow = gemm_schedule((8, 16, 16), tile, (base[0], base[1], base[2]), kind=kind, library=library)
    wider = gemm_schedule((8, 16, 16), tile, (wide[0], wide[1], wide[2]), kind=kind, library=library)
    assert wider.logic.dsp >= narrow.logic.dsp
    assert wider.logic.lut >= narrow.logic.lut
    assert wider.iterations * 2 == narrow.iterations
    assert wider.latency <= narrow.latency + wider.depth
