"""Inputs that are loaded once more for late readers: through the same port, with the same results, and little held."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.space.reloading import RELOAD, late_readers
from penstock.profiling.bandwidth import external_bits
from tests.compiler.test_chain import check_csim

MODEL = f"{Path(__file__).parent / 'residual.py'}:model"
SUM = "wide.add"


@cache
def program() -> Program:
    return prepare(import_model(MODEL), "w8a8")


@cache
def evaluator(*objectives: str) -> Evaluator:
    return Evaluator.create(program(), "u55c", quantize="w8a8", goal=Goal.of(objectives or ("latency", "fifo_bits")))


@cache
def found(again: bool, stripes: int = 1) -> Evaluation:
    """The plainest walks, FIFOs sized for one input."""
    start = evaluator().space.design({**evaluator().space.fitted_setting(), "limit_share": 5, RELOAD: again})
    design = replace(start, stripes=stripes, prefetch_bits=0)
    return evaluator().tightened(evaluator().evaluate_design(design))


def held(evaluation: Evaluation) -> int:
    """Bits of what waits for the sum, but for what its own load fetches ahead."""
    into = [c for c in evaluation.figures.channels if c.kind == "stream" and c.prefetch is None]
    return sum(c.bits * evaluation.design.fifo_depths[c.name] for c in into)


def test_late_readers_are_those_behind_a_product_and_asked_where_bits_matter() -> None:
    assert late_readers(evaluator().space.graph) == {SUM}
    assert evaluator().space.choices[RELOAD] == (True, False)
    assert RELOAD not in evaluator("latency").space.choices
    small = prepare(import_model("zoo:llama?size=tiny&mode=prefill&seq=4"), "w8a8")
    assert not late_readers(Evaluator.create(small, "u55c", quantize="w8a8").space.graph)


@pytest.mark.parametrize("stripes", [1, 4])
def test_less_waits_for_more_traffic_and_no_time(stripes: int) -> None:
    once, again = found(False, stripes), found(True, stripes)
    assert again.design.kernels[SUM].reload
    assert not once.design.kernels[SUM].reload
    whole = 48 * 384 * 8
    assert held(once) - held(again) > whole / 2
    networks = [evaluator().assembler.network(one.design) for one in (once, again)]
    assert external_bits(networks[1]) - external_bits(networks[0]) == whole
    assert again.figures.latency <= once.figures.latency * 1.01


@pytest.mark.parametrize("stripes", [1, 4])
def test_one_task_brings_both_and_every_level_computes_the_same(stripes: int, tmp_path: Path) -> None:
    design = found(True, stripes).design
    lowered = lower(program(), design)
    x = lowered.top.body.block.args[0]
    readers = {task.sym_name.data for task in lowered.tasks for op in task.walk() if x in op.operands}
    assert len(readers) == 1, "a port of HLS belongs to one task"
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
    check_csim([lowered], tmp_path)


def test_the_record_keeps_it_and_refuses_what_is_neither() -> None:
    design = Design("u55c", 300.0, {"a": KernelDesign((2,), (1,), (0,), reload=True)})
    document = design.to_json()
    assert document["kernels"]["a"]["reload"] is True
    assert Design.from_json(document) == design
    document["kernels"]["a"]["reload"] = "yes"
    with pytest.raises(PenstockError, match=r"kernels\.a\.reload"):
        Design.from_json(document)
