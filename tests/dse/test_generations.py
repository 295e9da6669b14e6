"""The same trials whoever makes them: several processes that ask and answer in any order, and die meanwhile."""

from __future__ import annotations

import random

import pytest

from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER
from penstock.dse.search.study import Study
from tests.dse.test_local import CHOICES, CONDITIONS, Params, answer, same

FIRST = [
    {"size": 8, "lanes": 4, "order": "out", "connect": False},
    {"size": 2, "lanes": 1, "order": "in", "connect": True, "boost": 0},
]
TRIALS = 34


def study_of(seed: int, sampler: str = DEFAULT_SAMPLER) -> Study:
    first = [(one, "run trial 3") for one in FIRST]
    return Study.create_or_load(
        "s", CHOICES, conditions=CONDITIONS, seed=seed, meaning=same, first=first, sampler=sampler
    )


def in_one_process(seed: int, sampler: str = DEFAULT_SAMPLER) -> list[Params]:
    study, found = study_of(seed, sampler), list[Params]()
    for index in range(TRIALS):
        asked = study.ask(index, answer)
        study.tell(asked.number, *answer(asked.params))
        found.append(asked.params)
    return found


def by_workers(seed: int, workers: int, sampler: str = DEFAULT_SAMPLER) -> list[Params]:
    """Each holds a trial for a while; some die with theirs, which is then asked for again."""
    chance = random.Random(workers)
    study, found = study_of(seed, sampler), dict[int, Params]()
    waiting, held = list(range(TRIALS)), list[tuple[int, int]]()
    while waiting or held:
        if waiting and len(held) < workers:
            index = waiting.pop(0)
            asked = study.ask(index, answer)
            assert found.setdefault(index, asked.params) == asked.params, "a second attempt has the same setting"
            held.append((index, asked.number))
            continue
        index, number = held.pop(chance.randrange(len(held)))
        if chance.random() < 0.2:
            study.fail(number, retry=True)
            waiting.insert(0, index)
        else:
            study.tell(number, *answer(found[index]))
    return [found[index] for index in range(TRIALS)]


@pytest.mark.parametrize("seed", [0, 5])
def test_trials_are_the_same_for_any_number_of_workers_and_any_order_of_ends(seed: int) -> None:
    alone = in_one_process(seed)
    assert alone == in_one_process(seed)
    assert alone[:2] == FIRST
    for workers in (1, 2, 4):
        assert by_workers(seed, workers) == alone
    assert len({same(params) for params in alone}) == TRIALS, "nothing equal is tried twice"


def test_where_a_first_setting_was_found_is_told() -> None:
    study = study_of(1)
    assert study.trial(study.ask(1, answer).number).origin == "run trial 3"
    assert study.trial(study.ask(2, answer).number).origin == ""


def test_chance_is_the_same_for_any_number_of_workers_and_tries_nothing_twice() -> None:
    alone = in_one_process(3, "random")
    assert alone == in_one_process(3, "random") != in_one_process(4, "random")
    assert by_workers(3, 4, "random") == alone
    meanings = [same(one) for one in alone]
    assert len(set(meanings)) == len(meanings)
    study = study_of(3, "random")

    def never(_: object) -> tuple[tuple[float, ...], dict[str, float]]:
        raise AssertionError("chance learns nothing")

    assert [study.ask(index, never).params for index in range(TRIALS)] == alone


def test_settings_that_are_seen_to_miss_a_limit_are_not_tried_where_others_fit() -> None:
    """Without a look at what a proposal comes to, a third and more of these trials miss the limit."""
    for seed in range(3):
        missed = [answer(params)[1]["lut"] > 0 for params in in_one_process(seed)]
        assert sum(missed) <= 1, missed
