"""The local exploration: the same under a seed, better than its start, and what is selected."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.explore import ExploreCase
from penstock.compiler.errors import PenstockError
from penstock.dse.bounds.bound import lower_bound
from penstock.dse.evaluation.choosing import nearest_miss, pareto_front, select_best
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search.descent import descend
from penstock.dse.search.effort import settings_of
from penstock.dse.search.explore import Tried, explore
from penstock.dse.search.start import plan
from penstock.dse.search.walk_moves import anchors, capped, other_walks, small_moves
from penstock.dse.space.tiling import TilingOptions
from penstock.dse.support.budgets import QUICKLY_MODELLED
from tests.compiler.designs import Dense, build_network


@dataclass
class Point:
    values: tuple[float, float] | None
    constraints: dict[str, float] = field(default_factory=lambda: {"dsp": -0.5})
    params: dict[str, int | str | bool] = field(default_factory=dict)

    @property
    def feasible(self) -> bool:
        return self.values is not None and all(v <= 0 for v in self.constraints.values())


def over(latency: float, **excess: float) -> Point:
    return Point((latency, 1.0), excess)


def test_the_fastest_feasible_design_is_selected():
    points = [Point((30.0, 0.1)), Point((10.0, 0.9)), over(1.0, dsp=0.01), Point((20.0, 0.5))]
    assert select_best(points) is points[1]


def test_ties_go_to_the_smaller_then_by_the_setting_whoever_was_first():
    points = [Point((10.0, 0.9)), Point((10.0, 0.3), params={"a": 2}), Point((10.0, 0.3), params={"a": 1})]
    assert select_best(points) is points[2]
    assert select_best(points[::-1]) is points[2]
    assert pareto_front(points) == pareto_front(points[::-1]) == [points[2]]


def test_where_nothing_fits_the_nearest_miss_and_what_is_short_are_named():
    points = [over(1.0, dsp=4.0, lut=0.2), over(9.0, dsp=0.5, lut=0.1), over(2.0, dsp=-0.5, lut=0.7)]
    assert nearest_miss(points) is points[1]
    with pytest.raises(PenstockError, match=r"1\.50 times the dsp") as caught:
        select_best(points)
    assert caught.value.code == "nothing-fits"


def test_where_nothing_was_evaluated_it_says_so():
    for points in ([], [Point(None)]):
        with pytest.raises(PenstockError) as caught:
            select_best(points)
        assert caught.value.code == "nothing-evaluated"


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.booleans()), max_size=30))
def test_the_front_is_what_nothing_beats(drawn: list[tuple[int, int, bool]]):
    points = [Point((a, b), {"dsp": -1.0 if ok else 1.0}) for a, b, ok in drawn]
    front = pareto_front(points)
    feasible = [p for p in points if p.feasible]
    for p in front:
        assert p.feasible
        assert p.values is not None
        rivals = [q.values for q in feasible if q.values is not None and q.values != p.values]
        assert not any(a <= p.values[0] and b <= p.values[1] for a, b in rivals)
    best = {p.values for p in front if p.values is not None}
    for p in feasible:
        assert p.values is not None
        assert any(a <= p.values[0] and b <= p.values[1] for a, b in best)
    assert len(best) == len(front)


def evaluator(platform: str = "ecp5-45k", max_lanes: int | None = None) -> Evaluator:
    layers = (Dense(8, False, False), Dense(8, False, False))
    return Evaluator.create(
        build_network("int8", None, 16, layers, seed=1), platform, options=TilingOptions(max_lanes=max_lanes)
    )


def test_equal_seeds_explore_equally():
    first, again = explore(evaluator(), 12, seed=3), explore(evaluator(), 12, seed=3)
    assert [t.evaluation for t in first.tried] == [t.evaluation for t in again.tried]
    assert first.best.evaluation.design.digest() == again.best.evaluation.design.digest()


def test_progress_the_front_and_the_best():
    seen: list[Tried] = []
    result = explore(evaluator(), 15, gap=0, progress=lambda tried, total: seen.append(tried) or None)
    assert seen == list(result.tried)
    assert len(seen) == 15
    assert result.best in result.front
    guess = evaluator().evaluate(evaluator().space.default_params())
    assert result.best.evaluation.values <= guess.values
    assert result.best.evaluation.feasible
    assert result.bound.value <= result.best.evaluation.values[0]
    assert len({t.evaluation.design.digest() for t in seen}) == len(seen), "nothing equal is tried twice"


def test_asking_for_nothing_is_refused():
    with pytest.raises(PenstockError, match="0 trials"):
        explore(evaluator(), 0)


def test_an_exploration_in_which_nothing_fits_says_what_is_short():
    """A megabit of weights, and 1,008 kbit of block RAM: no tiling helps."""
    heavy = build_network("float32", None, 64, (Dense(512, False, False),), seed=1)
    with pytest.raises(PenstockError, match="bram18") as caught:
        explore(Evaluator.create(heavy, "ecp5-25k", options=TilingOptions(max_lanes=4)), 3)
    assert caught.value.code == "nothing-fits"


@pytest.mark.parametrize(
    ("objectives", "sampler", "guessed", "more"),
    [
        (("latency",), "local", False, 0),
        (("latency", "resources"), "local", True, 4),
        (("latency",), "random", False, 4),
    ],
)
def test_of_many_kernels_nothing_is_guessed_or_proposed_after_the_descent_to_one_best(
    objectives: tuple[str, ...], sampler: str, guessed: bool, more: int
):
    program = build_network("int8", None, 16, tuple(Dense(16, True, False) for _ in range(QUICKLY_MODELLED)), seed=1)
    evaluator = Evaluator.create(program, "kv260", goal=Goal.of(objectives, ()))
    assert len(evaluator.space.graph.operations) > QUICKLY_MODELLED
    planned = plan(evaluator, evaluator.space.choices, sampler)
    assert not planned.near_enough
    assert any(params["allocation"] != "fitted" for params in planned.first) == guessed
    assert planned.trials == len(planned.first) + more
    assert plan(evaluator, evaluator.space.choices, sampler, 40).trials == 40


@pytest.mark.slow
def test_dims_that_are_primes_are_padded_together() -> None:
    """No one of them makes anything faster; each with the most divisors that it can have, the best was 310 cycles."""
    evaluator = ExploreCase("mlp-primes", 3000).evaluator()
    found = descend(evaluator)
    assert found is not None
    assert found.best.values[0] < 290


def test_of_each_dim_the_few_paddings_with_the_most_divisors_are_known() -> None:
    evaluator = ExploreCase("mlp-primes", 3000).evaluator()
    even = evaluator.space.fitting.even
    assert (3, 5, 1, 2) in even.values(), "of 97 columns: 100, 102, 98 and 99"
    assert (1, 0) in even.values(), "of 17 rows 18, and as they are"
    assert {name: few[0] for name, few in even.items()} == evaluator.space.fitting.smooth


def test_fewer_settings_are_looked_at_where_each_takes_longer() -> None:
    """Of a dozen kernels with 9,000 DSPs a third of what a few with few have; of more kernels as many as they may."""
    assert settings_of(4, 1000) > 3000 > settings_of(3, 9000) > settings_of(12, 9000) > 1000
    assert settings_of(QUICKLY_MODELLED + 3, 100) == settings_of(QUICKLY_MODELLED + 3, 9000) > settings_of(40, 100)


def test_every_move_of_walks_is_a_setting_of_the_space_and_anchors_take_all_kernels_along() -> None:
    evaluator = ExploreCase("attention-small", 320).evaluator()
    space = evaluator.space
    here = space.fitted_setting()
    walked = {name for name in here if name.startswith("walk.")}
    for op in space.fitting.leading:
        for moves in (anchors, other_walks, small_moves):
            for state in moves(space, space.choices, op, here):
                assert all(value in space.choices[name] for name, value in state.items()), (moves, op.layer)
    for state in capped(space.choices, here):
        assert all(value in space.choices[name] for name, value in state.items())
    query = next(op for op in space.fitting.leading if op.layer == "query")
    heads = next(one for one in anchors(space, space.choices, query, here) if one["walk.query"] == "1-fine")
    assert {name for name in walked if heads[name] != here[name]} >= {"walk.query", "walk.bmm", "walk.bmm_2"}
    assert {name for name in heads if heads[name] != here[name]} <= walked


@pytest.mark.slow
def test_what_stays_far_above_its_bound_is_descended_to_from_each_way_to_walk_all_kernels() -> None:
    """From the fastest start alone, an attention of 3,000 DSPs took 8,898 cycles."""
    evaluator = ExploreCase("MultiHeadSelfAttention1", 3000).evaluator()
    found = descend(evaluator, enough=lower_bound(evaluator).value)
    assert found is not None
    assert found.best.values[0] < 7600
