"""The other end of a front: small designs, found around those at smaller shares of the limits."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import pytest

from benchmarks.explore import ExploreCase
from penstock.dse.evaluation.choosing import pareto_front
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.hypervolume import hypervolume
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search import front
from penstock.dse.search.front import smaller
from penstock.dse.space.fitted import SHARE


@pytest.fixture(scope="module")
def product() -> Evaluator:
    """Sizes that are primes: which lanes divide them, and so which are best, is another question for each budget."""
    return ExploreCase("product-primes", 320).evaluator()


def test_a_front_has_more_than_the_best_walks_at_smaller_shares(
    product: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, choices = product.space.fitted_setting(), product.space.choices
    settings, modelled = smaller(product, best, choices)
    found = [product.assume(params) for params in settings]
    monkeypatch.setattr(front, "_AROUND", 0)
    shares, fewer = smaller(product, best, choices)
    alone = [product.assume(params) for params in shares]
    assert fewer + 100 < modelled <= fewer + 400
    assert volume(found, found) > 1.05 * volume(alone, found)
    assert len(found) <= 1 + front._MOST
    assert len(pareto_front(found)) >= len(found) - 1, "none but the first is beaten by another"
    assert any(one.params["walk.mm"] != best["walk.mm"] for one in found)
    assert volume(found[:8], found) > 0.95 * volume(found, found), "what adds most comes first"


def test_the_fastest_is_the_first_and_around_it_nothing_is_faster(product: Evaluator) -> None:
    """What is found around the front may be faster than what a descent gave."""
    settings, _ = smaller(product, product.space.fitted_setting(), product.space.choices)
    found = [product.assume(params) for params in settings]
    assert all(found[0].values <= one.values for one in found)


def test_of_one_objective_there_is_no_front() -> None:
    case = ExploreCase("product-primes", 320).evaluator()
    alone = Evaluator.create(case.program, case.platform.name, goal=Goal.of(("latency",), ()))
    best = alone.space.fitted_setting()
    settings, modelled = smaller(alone, best, alone.space.choices)
    assert modelled == 0
    assert {SHARE} == {name for one in settings for name in one if one[name] != best[name]}


def volume(found: Sequence[Evaluation], among: Sequence[Evaluation]) -> float:
    """What they beat, of what the worst of all does not."""
    worst = tuple(max(log(one.values[n]) for one in among) + 1e-9 for n in range(2))
    return hypervolume([(log(one.values[0]), log(one.values[1])) for one in found], worst)
