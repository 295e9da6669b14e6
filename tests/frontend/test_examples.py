"""The examples in the repository import, simplify, quantise, and keep their meaning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from examples import char_lm
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run, run_rows
from penstock.compiler.pipeline import prepare
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


@pytest.mark.slow
def test_a_language_model_takes_a_character_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was trained, on whole texts; its blocks share an accelerator, and their caches are kept."""
    monkeypatch.setattr(char_lm, "STEPS", 20)
    net, _, _ = char_lm.model()
    assert isinstance(net, char_lm.CharLm)
    text = torch.tensor([char_lm.CHARACTERS.index(c) for c in char_lm.TEXT[:24]])
    with torch.no_grad():
        wanted = net.at_once(text[None])[0]
        found = torch.cat([net(text[i : i + 1], torch.tensor([i])) for i in range(len(text))])
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    program = prepare(import_model(f"{EXAMPLES}/char_lm.py:model#blocks"), "w8a8")
    assert program.layers is not None
    assert len(program.layers.names) == char_lm.LAYERS
    assert {state.name.rpartition(".")[2] for state in program.states} == {"keys", "values"}
