"""The programs of examples/tasks: equal to NumPy and at every level, and as long in hardware as simulated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import Lowered, emit, lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_csim, verify_levels, verify_pytorch
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.tasks.in_verilator import assert_equal_in_verilator
from tests.tasks.programs import ANSWERS, EXAMPLES, answered, drawn, opened

BOARD = "ecp5-85k"


def test_every_program_is_here() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("largest", [127, 3])
def test_a_program_answers_as_numpy_does(name: str, largest: int) -> None:
    network = opened(name)
    inputs = {key: x if x.dtype.kind == "f" else x & largest for key, x in drawn(network).items()}
    answer, wanted = answered(network, inputs), ANSWERS[name](inputs)
    if answer.dtype.kind == "f":
        np.testing.assert_allclose(answer, wanted, rtol=1e-4, atol=1e-5)
    else:
        np.testing.assert_array_equal(answer, wanted)


def program_of(name: str) -> Program:
    return prepare(import_model(str(EXAMPLES / f"{name}.py")))


def lowered_of(program: Program) -> Lowered:
    evaluator = Evaluator.create(program, BOARD)
    evaluation = evaluator.evaluate(evaluator.space.default_params())
    return lower(program, finish(evaluator, evaluation).design)


@pytest.mark.parametrize("name", ["systolic_1d", "gemv"])
def test_streams_equal_the_text(name: str) -> None:
    lowered = lowered_of(program_of(name))
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    compared = verify_pytorch(lowered)
    assert compared is not None
    assert compared.equal


def test_fifos_in_circles_that_run_with_one_slot_have_two_where_times_cannot_be_said_otherwise() -> None:
    depths = lowered_of(program_of("smith_waterman")).design.fifo_depths
    assert min(depths.values()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ANSWERS)
def test_hardware_equals_the_text_and_takes_the_simulated_cycles(name: str, tmp_path: Path) -> None:
    lowered = lowered_of(program_of(name))
    inputs = make_inputs(lowered, random_sets=1)
    assert all(level.equal and level.values for level in verify_levels(lowered, inputs))
    emit(lowered, tmp_path, part="x", clock_mhz=lowered.design.clock_mhz)
    assert verify_csim(lowered, build_csim(tmp_path, ToolRunner()), inputs).equal
    assert_equal_in_verilator(lowered, inputs, BOARD)
