"""Where the dies do not hold the best of a search by far, another one is searched for that they hold."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.search import descent, start
from penstock.dse.search import held as holding
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.held import held
from penstock.dse.search.start import starting_settings
from penstock.dse.space.external import FEW_BANKS, STRIPES
from penstock.dse.space.fitted import SHARE, WALK
from penstock.dse.space.tiling import Choices, Params, TilingOptions
from tests.compiler.designs import Dense, build_network

MOST_BANKS = 16


class FewWires(DiesHold):
    """Dies with wires for half of the banks, and with room for a part of what the chip may hold."""

    def excess(self, one: Evaluation) -> float:
        return float(one.design.stripes > MOST_BANKS or int(one.params[SHARE]) > 90)


class WiresForWords(DiesHold):
    """Dies whose wires pass the words of all kernels, and no more banks for one of them than it takes words."""

    def excess(self, one: Evaluation) -> float:
        return float(not one.design.few_banks)


class NoWires(DiesHold):
    def excess(self, one: Evaluation) -> float:
        return 1.0


@pytest.fixture
def evaluator(monkeypatch: pytest.MonkeyPatch) -> Evaluator:
    """Two products whose weights come through banks."""
    monkeypatch.setattr(descent, "_MOST_TRIED", 30)
    program = build_network("int8", None, 512, (Dense(1024, True, True), Dense(512, True, False)), seed=1)
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))


def widest(evaluator: Evaluator) -> Evaluation:
    return evaluator.assume({**evaluator.space.fitted_setting(), STRIPES: 32})


def test_what_is_searched_for_has_fewer_banks_and_takes_less(evaluator: Evaluator) -> None:
    dies = FewWires(evaluator)
    found = held(evaluator, evaluator.space.choices, widest(evaluator), dies)
    assert found
    for one in found:
        assert one.feasible
        assert dies.excess(one) <= 0
        assert int(one.params[STRIPES]) == MOST_BANKS
    assert [one.values for one in found] == sorted(one.values for one in found)
    plain = evaluator.assume({**evaluator.space.fitted_setting(), STRIPES: MOST_BANKS, SHARE: 85})
    assert found[0].values <= plain.values, "walks and lanes are those that suit it"


def test_tensors_may_each_lie_in_fewer_of_all_banks(evaluator: Evaluator) -> None:
    found = held(evaluator, evaluator.space.choices, widest(evaluator), WiresForWords(evaluator))
    assert found
    for one in found:
        assert (one.feasible, one.design.few_banks, one.design.stripes) == (True, True, 32)
        everywhere = evaluator.assume({**one.params, FEW_BANKS: False})
        assert banks_of(evaluator, one) < banks_of(evaluator, everywhere)
    fixed = {**evaluator.space.choices, FEW_BANKS: (False,)}
    assert held(evaluator, fixed, widest(evaluator), WiresForWords(evaluator)) == []


def banks_of(evaluator: Evaluator, one: Evaluation) -> int:
    """Of all tensors together."""
    return sum("__stripe" in name for name in evaluator.assembler.network(one.design).channels)


def test_nothing_is_found_where_nothing_is_held_or_the_user_wants_all_banks(evaluator: Evaluator) -> None:
    choices, best = evaluator.space.choices, widest(evaluator)
    assert held(evaluator, choices, best, NoWires(evaluator)) == []
    assert held(evaluator, {**choices, STRIPES: (32,)}, best, FewWires(evaluator)) == []


def test_where_the_dies_hold_nothing_found_anew_a_search_begins_at_the_best(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two starts mostly one leads to what the dies hold."""
    best, searches = widest(evaluator), list[tuple[int, Params | None]]()

    class FromTheBest(DiesHold):
        def excess(self, one: Evaluation) -> float:
            return float(searches[-1][1] is None)

    def told(evaluator: Evaluator, choices: Choices, **named: Any) -> descent.Descended | None:
        searches.append((int(choices[SHARE][0]), named["start"]))
        return descent.descend(evaluator, choices, **named)

    monkeypatch.setattr(holding, "descend", told)
    assert held(evaluator, evaluator.space.choices, best, FromTheBest(evaluator))
    assert searches[:2] == [(85, None), (85, best.params)]


def test_a_descent_may_begin_at_a_setting(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "_MOST_TRIED", 1)
    (op, *_), choices = evaluator.space.fitting.leading, evaluator.space.choices
    given = {**widest(evaluator).params, f"{WALK}.{op.layer}": choices[f"{WALK}.{op.layer}"][-1]}
    within = {**choices, STRIPES: (MOST_BANKS,)}
    for begun_at in (given, None):
        found = descent.descend(evaluator, within, start=begun_at, rounds=0)
        assert found is not None
        assert ({**given, STRIPES: MOST_BANKS} in [dict(one.params) for one in found.timed]) == (begun_at is not None)


def test_a_search_tries_it_where_its_best_is_not_held(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Params] = []

    def finds_a_place(_: Evaluator, params: Params) -> bool:
        asked.append(params)
        return True

    monkeypatch.setattr(start, "DiesHold", FewWires)
    monkeypatch.setattr(start, "_finds_a_place", finds_a_place)
    settings, _ = starting_settings(evaluator)
    assert asked
    assert FewWires(evaluator).excess(evaluator.assume(asked[0])) <= 0
    chosen = evaluator.assume(asked[-1])  # the held one, or what has been found to be better
    assert chosen.values <= evaluator.assume(asked[0]).values
    assert chosen.design.digest() in [evaluator.assume(params).design.digest() for params in settings]
