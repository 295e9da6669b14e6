"""Kernels of one number a row hold none back: they flush, or have an interval that a design record asks for."""

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
from penstock.compiler.schedule import NestSchedule, load_library
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from tests.compiler.test_hls import emitted
from tests.schedule.gemms import OPEN, VITIS_300, gemm_schedule

MODEL = f"{Path(__file__).parent / 'normed.py'}:model"
FACTORS, SCALED, ROWS = "norm.rsqrt", "norm.mul_2", 48
WIDE = 128
APART = 8
"""Cycles between two numbers, nearly enough."""


@cache
def program() -> Program:
    return prepare(import_model(MODEL), "w8a8")


@cache
def evaluator() -> Evaluator:
    return Evaluator.create(program(), "u55c", quantize="w8a8", goal=Goal.of(("latency", "fifo_bits"), ()))


@cache
def found(interval: int | None = None) -> Evaluation:
    """The plainest walks on few lanes, FIFOs sized for one input; with another interval of what makes factors."""
    start = evaluator().evaluate({**evaluator().space.fitted_setting(), "limit_share": 5})
    if interval is not None:
        kernels = dict(start.design.kernels)
        kernels[FACTORS] = replace(kernels[FACTORS], interval=interval)
        start = evaluator().evaluate_design(replace(start.design, kernels=kernels, fifo_depths={}))
    return evaluator().tightened(start)


def made(evaluation: Evaluation) -> NestSchedule:
    """The nest that makes factors."""
    tasks = evaluator().assembler.network(evaluation.design).tasks
    (nest,) = (nest for task in tasks if task.layer == FACTORS for nest in task.nests)
    return nest


def waiting(evaluation: Evaluation) -> int:
    """Bits of the FIFO in which a row waits for its factor."""
    into = [c for c in evaluation.figures.channels if c.reader == SCALED.replace(".", "_") and c.tokens > ROWS]
    return max(c.bits * evaluation.design.fifo_depths[c.name] for c in into)


def test_what_flushes_holds_no_more_rows_back_than_what_takes_them_apart() -> None:
    assert all(k.interval == 1 for k in found().design.kernels.values())
    assert made(found()).flushes
    assert not made(found(APART)).flushes
    assert waiting(found()) <= waiting(found(APART))
    assert found().figures.latency <= found(APART).figures.latency


def test_such_a_design_computes_what_the_model_does_and_says_so_in_its_c(tmp_path: Path) -> None:
    lowered = lower(program(), found(APART).design)
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison
    text = (emitted(lowered, tmp_path) / "hls/penstock_top.cpp").read_text()
    assert made(found(APART)).ii > 1
    assert f"#pragma HLS PIPELINE II={made(found(APART)).ii}\n" in text
    assert "#pragma HLS PIPELINE II=1 style=flp\n" in text


@pytest.mark.parametrize(("interval", "ii"), [(1, 1), (3, 3), (4000, None)])
def test_pipelines_that_stop_keep_the_interval_up_to_their_depth(interval: int, ii: int | None) -> None:
    shape, tile, lanes = (4, 4, 4), (4, 4, 4), (1, 1, 1)
    stopping = gemm_schedule(shape, tile, lanes, library=VITIS_300, interval=interval)
    assert stopping.ii == (ii or stopping.depth)
    assert stopping.ii == 1 or "the design's interval" in stopping.ii_reason
    flushing = gemm_schedule(shape, tile, lanes, library=OPEN, interval=interval)
    assert flushing.ii == gemm_schedule(shape, tile, lanes, library=OPEN).ii
    assert load_library(*OPEN).flushing


def test_the_record_keeps_intervals_and_refuses_what_is_none() -> None:
    design = Design(
        "u55c", 300.0, {"a": KernelDesign((2,), (1,), (0,), interval=7), "b": KernelDesign((2,), (1,), (0,))}
    )
    document = design.to_json()
    assert document["kernels"]["a"]["interval"] == 7
    assert "interval" not in document["kernels"]["b"]
    assert Design.from_json(document) == design
    for wrong in (0, 5000, "fast"):
        document["kernels"]["a"]["interval"] = wrong
        with pytest.raises(PenstockError, match=r"kernels\.a\.interval"):
            Design.from_json(document)
