"""Weights in four bits: their numbers, their scales, and every level on them."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program

MODEL = "zoo:mlp?inputs=24&hidden=16&seed=3"


@pytest.fixture(scope="module")
def imported() -> Program:
    return import_model(MODEL)


def answers(program: Program) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    assert program.samples is not None
    exact = run(program, program.quantise_inputs(program.samples.inputs))
    return np.asarray(program.dequantise_outputs(exact)[0], np.float32)


def test_weights_fill_four_bits_a_channel(imported: Program) -> None:
    prepared = prepare(imported, "w4a8")
    weights = prepared.params["head.weight"]
    assert "tensor<16x10xi4>" in str(prepared.module)
    assert weights.dtype == np.int8
    assert (np.abs(weights).max(axis=0) == 7).all()  # every channel has its own scale
    assert prepared.params["head.bias"].dtype == np.int32


def test_answers_are_near_the_floats_but_not_as_near_as_eight_bits(imported: Program) -> None:
    assert imported.samples is not None
    wanted = imported.samples.outputs[0].reshape(-1)
    four, eight = (np.abs(answers(prepare(imported, q)).reshape(-1) - wanted).max() for q in ("w4a8", "w8a8"))
    assert eight < four < 0.2 * np.abs(wanted).max()


def test_an_unknown_quantisation_is_refused_with_those_that_there_are(imported: Program) -> None:
    with pytest.raises(PenstockError, match="w4a8"):
        prepare(imported, "w3a8")
