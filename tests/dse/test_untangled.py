"""Kernels of attention, which are small each, are turned together where whole tensors wait between them."""

from __future__ import annotations

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import converters_of
from penstock.dse.search import descent
from penstock.dse.search.descent import descend
from penstock.dse.search.untangled import untangled
from penstock.dse.space.fitted import WALK

SCORES = [f"{WALK}.self_attn.{layer}" for layer in ("bmm", "amax", "sum", "bmm_2")]


def evaluator_of(model: str) -> Evaluator:
    return Evaluator.create(prepare(import_model(model), "w8a8"), "u55c", quantize="w8a8")


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return evaluator_of("zoo:qwen?seq=32")


@pytest.fixture(scope="module")
def best(evaluator: Evaluator) -> Evaluation:
    """The simplest walks, with which scores wait for all that groups of heads have."""
    return evaluator.assume(evaluator.space.fitted_setting())


def held(evaluator: Evaluator, one: Evaluation) -> int:
    return sum(converters_of(evaluator.assembler.network(one.design)).values())


def test_what_makes_scores_and_what_reads_them_turn_together(evaluator: Evaluator, best: Evaluation) -> None:
    found = untangled(evaluator, evaluator.space.choices, best)
    assert found
    first = evaluator.assume(found[0])
    assert held(evaluator, first) < held(evaluator, best) / 4
    assert first.values[0] < best.values[0] * 0.9
    assert all(found[0][name] != best.params[name] for name in SCORES), "one alone makes nothing better"


def test_the_fewest_bits_come_first_and_none_has_more(evaluator: Evaluator, best: Evaluation) -> None:
    looks = [evaluator.assume(state) for state in untangled(evaluator, evaluator.space.choices, best)]
    bits = [held(evaluator, one) for one in looks]
    assert bits == sorted(bits)
    assert bits[-1] < held(evaluator, best)


def test_nothing_is_turned_where_little_waits_in_converters(evaluator: Evaluator, best: Evaluation) -> None:
    found = evaluator.assume(untangled(evaluator, evaluator.space.choices, best)[0])
    assert not untangled(evaluator, evaluator.space.choices, found)


def test_walks_that_the_user_fixed_stay(evaluator: Evaluator, best: Evaluation) -> None:
    fixed = {name: (best.params[name],) if name in best.params else v for name, v in evaluator.space.choices.items()}
    assert all(state == dict(best.params) for state in untangled(evaluator, fixed, best))


@pytest.mark.slow
def test_a_search_of_a_real_block_is_faster_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Qwen's prefill of 128 tokens: its descent comes to the largest kernels alone."""
    model = "zoo:qwen?size=real&mode=prefill&seq=128"
    found = descend(evaluator_of(model))
    monkeypatch.setattr(descent, "untangled", lambda *_: [])
    plain = descend(evaluator_of(model))
    assert found is not None
    assert plain is not None
    assert found.best.values[0] < 0.9 * plain.best.values[0]
