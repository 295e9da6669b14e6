"""What the dies nearly hold is made smaller: kernels that are alike change together."""

from __future__ import annotations

import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.neighbours import alike
from penstock.dse.search.dies import DiesHold
from penstock.dse.space.fitted import FAVOUR, FAVOURS

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
