"""The examples in the repository import, simplify, quantise, and keep their meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run, run_rows
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import quantise, simplify

EXAMPLES = Path(__file__).parents[2] / "examples"


def accuracy(program: Program) -> float:
    assert program.evaluation is not None
    scores = run_rows(program, program.evaluation.inputs)
    return float(np.mean(scores.argmax(axis=1) == program.evaluation.labels))


def test_digits_are_read_as_well_by_integers_as_by_pytorch() -> None:
    program = simplify(import_model(f"{EXAMPLES}/digits_mlp.py:model"))
    assert program.evaluation is not None
    pytorch = float(np.mean(program.evaluation.outputs.argmax(axis=1) == program.evaluation.labels))
    assert pytorch > 0.93
    assert accuracy(program) == pytorch
    assert accuracy(quantise(program)) > pytorch - 0.02


def test_streams_that_part_and_meet() -> None:
    program = simplify(import_model(f"{EXAMPLES}/residual_mlp.py:model"))
    integers = quantise(program)
    assert program.samples is not None
    (expected,) = program.samples.outputs
    np.testing.assert_allclose(run(program, program.samples.inputs)[0], expected, rtol=1e-4, atol=1e-5)
    (ours,) = integers.dequantise_outputs(run(integers, integers.quantise_inputs(program.samples.inputs)))
    assert np.max(np.abs(ours - expected)) < 0.05 * np.max(np.abs(expected))
