"""What the dies nearly hold is made smaller: kernels that are alike change together."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.neighbours import alike
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.second import Foretold, Rank
from penstock.dse.space.fitted import FAVOUR, FAVOURS, WALK
from penstock.dse.space.tiling import Params

GATE, UP = "mlp.gate_proj", "mlp.up_proj"


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return Evaluator.create(prepare(import_model("zoo:llama?size=tiny&mode=decode&seq=1&cache=16"), "w8a8"), "u55c")


def test_products_of_equal_work_on_one_tensor_are_alike(evaluator: Evaluator) -> None:
    graph = evaluator.space.graph
    groups = {frozenset(op.layer for op in group) for group in alike(graph.operations, graph)}
    assert {frozenset({GATE, UP}), frozenset({"self_attn.k_proj", "self_attn.v_proj"})} <= groups
    assert frozenset({"mlp.down_proj"}) in groups, "it reads another tensor"


class Favoured(DiesHold):
    """Dies that hold one of both only if the other one has few lanes as well."""

    def excess(self, one: Evaluation) -> float:
        return 0.0 if {one.params[f"{FAVOUR}.{layer}"] for layer in (GATE, UP)} == {FAVOURS[0]} else 0.05


def test_they_are_favoured_less_together(evaluator: Evaluator) -> None:
    best = evaluator.assume(evaluator.space.fitted_setting())
    smaller = Favoured(evaluator).eased(best, evaluator.space.choices, rewalked=False)
    assert smaller is not None
    assert [smaller.params[f"{FAVOUR}.{layer}"] for layer in (GATE, UP)] == [FAVOURS[0]] * 2


class TooFull(DiesHold):
    """Dies that hold nothing, and almost everything."""

    def excess(self, one: Evaluation) -> float:
        return 0.05


def test_walks_that_mean_the_same_design_are_looked_at_once(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few lanes are some more, where there are no more."""
    best = evaluator.assume(evaluator.space.fitted_setting())
    named = [name for name in evaluator.space.choices if name.startswith(f"{WALK}.")]
    choices = {name: evaluator.space.choices[name][:12] for name in named}
    states = [{**best.params, name: walk} for name, walks in choices.items() for walk in walks]
    looked = list[Hashable]()

    def look(evaluator: Evaluator, params: Params, below: Rank) -> Foretold:
        looked.append(evaluator.means(params))
        return Foretold(None, None, None)

    monkeypatch.setattr("penstock.dse.search.dies.foretell", look)
    assert TooFull(evaluator).eased(best, choices) is None
    assert len(states) > len({evaluator.means(state) for state in states})
    assert len(looked) == len(set(looked)) > 0
