"""Where sums and largest values of whole numbers lie while they are added to: one is enough, in a register."""

from __future__ import annotations

import pytest

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.design import KernelDesign
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.mixing import STORED
from penstock.dse.lanes.walks import KernelWalk, kernel_design


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    program = prepare(import_model("zoo:llama?size=tiny&mode=decode&seq=1&cache=16"), "w8a8")
    return Evaluator.create(program, "u55c", quantize="w8a8")


def largest_of_rows(evaluator: Evaluator) -> TensorOp:
    return evaluator.space.graph.by_layer["self_attn.amax"]


def walked(op: TensorOp, rest: int) -> KernelDesign:
    """Result after result, one lane each."""
    return kernel_design(op, op.trips, [1] * len(op.trips), KernelWalk(tuple(results(op))), rest, "rom", {})


def results(op: TensorOp) -> list[int]:
    return [d for d in range(len(op.trips)) if d not in op.reductions]


def test_of_whole_numbers_one_row_is_done_before_the_next(evaluator: Evaluator) -> None:
    op = largest_of_rows(evaluator)
    assert [walked(op, STORED + 1).tile[d] for d in results(op)] == [1] * len(results(op))


def test_what_takes_more_than_a_cycle_to_add_to_rests_meanwhile(evaluator: Evaluator) -> None:
    op = largest_of_rows(evaluator)
    assert max(walked(op, STORED + 2).tile[d] for d in results(op)) > 1


def test_products_take_turns_since_they_meet_weights_again(evaluator: Evaluator) -> None:
    """Of one row of weights after the other, each would come in tiles of one result."""
    op = evaluator.space.graph.by_layer["mlp.gate_proj"]
    assert max(walked(op, STORED + 1).tile[d] for d in results(op)) > 1


def test_a_row_at_a_time_takes_a_token_a_cycle(evaluator: Evaluator) -> None:
    params = {**evaluator.space.fitted_setting(), "walk.self_attn.amax": "0"}
    design = evaluator.evaluate(params).design
    network = evaluator.assembler.network(design)
    (task,) = [task for task in network.tasks if task.layer == "self_attn.amax"]
    assert [nest.ii for nest in task.nests] == [1] * len(task.nests)
