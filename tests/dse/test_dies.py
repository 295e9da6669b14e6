"""Dies in the search: only what the exact partition refuses is refused, and nothing where no design can be divided."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import DieLink, Platform, Resources, load_platform
from penstock.dse.evaluation.choosing import choosable, nearest_miss, select_best
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.explaining.sensitivity import explain
from penstock.dse.finishing.placement import place
from penstock.dse.partition.quick import DieCheck, amounts_of
from penstock.dse.rungs.promotion import promote
from penstock.dse.search.explore import explore
from penstock.dse.search.fill import LANES, fill
from tests.compiler.designs import Dense, build_network

U55C = load_platform("u55c")


def narrow(dsp: int) -> Platform:
    """Three dies with so few DSPs."""
    dies = tuple(replace(d, resources=replace(d.resources, dsp=d.reserved.dsp + dsp)) for d in U55C.dies)
    return replace(U55C, dies=dies)


def evaluator_on(platform: Platform, *limits: str) -> Evaluator:
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    return Evaluator(program, platform, platform.clock_mhz, goal=Goal.of([], limits).on(platform))


def is_divisible(evaluator: Evaluator, one: Evaluation) -> bool:
    network = evaluator.assembler.network(one.design)
    try:
        place(network, evaluator.platform, evaluator.assembler.library, one.design, divide=True)
    except PenstockError:
        return False
    return True


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1, max_size=6))
@settings(max_examples=60)
def test_a_division_is_missed_by_none_of_both_walks(sizes: list[tuple[int, int]]) -> None:
    """Against all divisions of a few tasks, one by one; a few tasks are decided for sure."""
    resources = [Resources(lut=lut, dsp=dsp) for lut, dsp in sizes]
    board = replace(U55C, fill=tuple((name, 1.0) for name, _ in U55C.fill))
    little = tuple(replace(die, resources=Resources(lut=100, dsp=100), reserved=Resources()) for die in board.dies)
    check = DieCheck(replace(board, dies=little))
    best = min(
        max(
            sum(size[kind] for size, on in zip(sizes, dies, strict=True) if on == die)
            for die in range(3)
            for kind in (0, 1)
        )
        for dies in itertools.product(range(3), repeat=len(sizes))
    )
    things = [amounts_of(one) for one in resources]
    assert check.spread(things) >= best / 100 - 1e-9
    assert check.may_fit(things) == (best <= 100)


@pytest.mark.parametrize("dsp", [10, 18, 60])
def test_what_it_refuses_the_exact_partition_refuses_too(dsp: int) -> None:
    evaluator = evaluator_on(narrow(dsp))
    found = [evaluator.evaluate({LANES: lanes}) for lanes in (8, 16, 32, 64)]
    fitting = [one for one in found if max(one.shares.values()) <= 1]
    for one in fitting:
        assert one.measures["die_share"] == one.fullest_die
        assert (one.constraints["dies"] > 0) == (not is_divisible(evaluator, one))
    assert any(one.feasible for one in fitting)
    assert dsp != 18 or not all(one.feasible for one in fitting)


def test_the_search_chooses_what_can_be_divided() -> None:
    found = explore(evaluator_on(narrow(18)), 12, seed=1, fixed=["multipliers=dsp"])
    best = found.best.evaluation
    assert is_divisible(evaluator_on(narrow(18)), best)
    evaluator = evaluator_on(narrow(18))
    guesses = [evaluator.evaluate({**params, "multipliers": "dsp"}) for params in evaluator.space.first_settings()]
    faster = [one for one in guesses if one.values < best.values]
    missed = [{name for name, excess in one.constraints.items() if excess > 0} for one in faster]
    assert {"dies"} in missed


def test_where_nothing_can_be_divided_the_chip_as_a_whole_decides() -> None:
    """Six dies of one multiplier each, of which a task takes two."""
    board = narrow(2)
    dies = tuple(replace(board.dies[0], name=f"slr{place}") for place in range(6))
    links = tuple(DieLink((one.name, other.name), 1000) for one, other in itertools.pairwise(dies))
    evaluator = evaluator_on(replace(board, dies=dies, links=links))
    tried = [evaluator.evaluate({LANES: lanes}) for lanes in evaluator.space.choices[LANES][:6]]
    undivided = [one for one in tried if max(one.shares.values()) <= 1]
    assert 1 <= len(undivided) < len(tried)
    assert not any(one.feasible for one in tried)
    assert choosable(tried) == undivided
    best = select_best(tried)
    assert best.values == min(one.values for one in undivided)
    assert promote(tried, "modelled", 2)[0].design == best.design
    filled = fill(evaluator, {})
    assert filled is not None
    assert max(evaluator.evaluate(filled).shares.values()) <= 1
    assert "cannot be divided among the dies" in " ".join(explain(evaluator, best, []).sentences)


def test_dies_are_no_nearest_miss() -> None:
    """The tools may divide a task; a limit that is missed is missed."""
    evaluator = evaluator_on(narrow(18), "latency_cycles<=3")
    tried = [evaluator.evaluate({LANES: n}) for n in (8, 64)]
    assert nearest_miss(tried) is tried[1]
    with pytest.raises(PenstockError, match="times the latency_cycles that is allowed"):
        select_best(tried)


def test_one_die_has_no_such_figure() -> None:
    evaluator = evaluator_on(load_platform("zcu104"))
    one = evaluator.evaluate({})
    assert one.fullest_die is None
    assert "die_share" not in one.measures
    assert "dies" not in one.constraints
