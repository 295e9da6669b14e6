"""The default sampler: the same under a seed, never what was tried, and at the optimum of known spaces soon."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import product

import pytest

from benchmarks.dse_optimum import CASES, SEEDS, enumerate_designs
from penstock.compiler.errors import PenstockError
from penstock.dse.search.explore import explore
from penstock.dse.search.local import Meaning
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Choices, Conditions, Params

CHOICES: Choices = {
    "size": (1, 2, 4, 8, 16, 32),
    "lanes": (1, 2, 4, 8, 16, 32, 64, 128),
    "order": ("in", "out", "across"),
    "connect": (True, False),
    "boost": (0, 1, 2),
}
CONDITIONS: Conditions = {"boost": {"connect": (True,)}}


def answer(params: Params) -> tuple[tuple[float, float], dict[str, float]]:
    """Faster with lanes up to a limit that depends on the size; boosting pays with one order only."""
    lanes, size = int(params["lanes"]), int(params["size"])
    boost = 1 + 0.2 * int(params.get("boost", 0)) * (params["order"] == "across")
    cycles = 4096 / lanes / boost + 3 * abs(size - 8) + 5 * (params["order"] == "in")
    area = lanes * (1 + size / 16) * boost / 70
    return (cycles, area), {"lut": area - 1}


def same(params: Params) -> Hashable:
    """Two of the orders are the same design while nothing is boosted."""
    order = "out" if params["order"] == "in" and not params.get("boost") else params["order"]
    return (params["size"], params["lanes"], order, params["connect"], params.get("boost"))


def searched(seed: int, trials: int, meaning: Meaning | None = same, worker: int = 0) -> list[Params]:
    study = Study.create_or_load("s", CHOICES, conditions=CONDITIONS, seed=seed, worker=worker, meaning=meaning)
    found: list[Params] = []
    for _ in range(trials):
        asked = study.ask()
        study.tell(asked.number, *answer(asked.params))
        found.append(asked.params)
    return found


def test_equal_seeds_propose_equally_and_others_otherwise():
    assert searched(3, 16) == searched(3, 16)
    assert searched(3, 16) != searched(4, 16)
    assert searched(3, 16) != searched(3, 16, worker=1)


def test_no_design_is_tried_twice():
    found = searched(0, 60)
    assert len({same(params) for params in found}) == len(found)
    assert all(("boost" in params) == (params["connect"] is True) for params in found)


def test_a_space_that_was_tried_whole_still_answers():
    tiny: Choices = {"size": (1, 2), "order": ("in", "out")}
    study = Study.create_or_load("tiny", tiny)
    asked = [study.ask().params for _ in range(6)]
    assert len({tuple(sorted(params.items())) for params in asked[:4]}) == 4
    assert all(params in asked[:4] for params in asked[4:])


def test_the_optimum_is_near_after_a_tenth_of_all_settings():
    every = [dict(zip(CHOICES, values, strict=True)) for values in product(*CHOICES.values())]
    best = min(answer(p)[0][0] for p in every if answer(p)[1]["lut"] <= 0)
    for seed in range(2):
        tried = [answer(p) for p in searched(seed, len(every) // 10)]
        assert min(values[0] for values, over in tried if over["lut"] <= 0) <= 1.05 * best


def test_a_setting_that_means_no_design_is_proposed_and_fails_by_itself():
    def refuses(params: Params) -> Hashable:
        if params["order"] == "in":
            raise PenstockError(code="bad-design", what="it cannot be")
        return same(params)

    found = searched(1, 30, meaning=refuses)
    assert any(params["order"] == "in" for params in found)


def test_trials_that_others_asked_for_are_not_asked_for_again():
    """Nobody has answered yet: what is being tried elsewhere counts as tried."""
    study = Study.create_or_load("s", CHOICES, conditions=CONDITIONS, meaning=same)
    for _ in range(6):
        asked = study.ask()
        study.tell(asked.number, *answer(asked.params))
    waiting = [same(study.ask().params) for _ in range(20)]
    assert len(set(waiting)) == len(waiting)


@pytest.mark.slow
def test_searches_with_ten_seeds_come_near_the_enumerated_optimum():
    part, whole = CASES[-1].evaluator(), CASES[-1].evaluator(whole=True)
    known = enumerate_designs(part)
    trials = len(known.answers) // 50
    inside = [explore(part, trials, seed=seed) for seed in range(SEEDS)]
    assert max(one.best.evaluation.values[0] for one in inside) <= 1.01 * known.best
    assert max(known.sample(seed, trials) for seed in range(SEEDS)) <= 1.01 * known.best
    assert explore(whole).best.evaluation.values[0] <= known.best
