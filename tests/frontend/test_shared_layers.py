"""Layers of one form as one accelerator: found, held against PyTorch layer by layer, and refused where they differ."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.frontend.context import make_context
from penstock.compiler.interpreter.calls import example_calls, run_calls
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.reference import LayersReference, parse_reference
from penstock.compiler.saved_program import load_checked
from penstock.services.jobs.foretelling import run_quantised
from tests.frontend import held_models

MODELS = Path(__file__).with_name("held_models.py")


def test_each_layer_answers_as_pytorch_does_with_its_own_weights_as_inputs(tmp_path: Path) -> None:
    imported = import_model(f"{MODELS}:between#blocks")
    imported.save(tmp_path)
    program = prepare(load_checked(tmp_path, make_context(), 1 << 24))
    layers = program.layers
    assert layers is not None
    assert layers.names == ("blocks.0", "blocks.1", "blocks.2")
    assert [n["op"] for n in layers.graph["nodes"] if n["op"] != "getitem"] == [
        "aten.embedding.default", *["penstock.layer"] * 3, "aten.linear.default"
    ]  # fmt: skip
    assert [n["number"] for n in layers.graph["nodes"] if n["op"] == "penstock.layer"] == [0, 1, 2]
    assert set(program.held_inputs(0)) == {f"layer.{n}.{k}" for n in ("up", "down") for k in ("weight", "bias")}
    assert not program.params
    for number, (given, answered) in enumerate(layers.calls):
        found = run(program, program.all_inputs(number, given))
        np.testing.assert_allclose(found[0], answered[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("reference", "code", "said"),
    [
        ("between#block", "no-layers", "did you mean 'blocks'"),
        ("between#head", "no-layers", "nothing repeats in head"),
        ("running#", "no-layers", "nothing repeats in the model"),
        ("shapes#", "no-layers", "nothing repeats"),
        ("twice#blocks", "layers-differ", "layer 'blocks.0' cannot be a call .* calls it 2 times"),
        ("traced_of_input#", "layers-differ", "is not given the tensors that it was given on the example inputs"),
        ("unlike#", "layers-differ", "layer '1' cannot be a call .* gives other answers"),
    ],
)
def test_what_cannot_share_is_named(reference: str, code: str, said: str) -> None:
    with pytest.raises(PenstockError, match=said) as refused:
        import_model(f"{MODELS}:{reference}")
    assert refused.value.code == code


def test_what_a_layer_is_given_only_in_a_trace_is_no_input_of_it() -> None:
    program = prepare(import_model(f"{MODELS}:traced#"), "w8a8")
    module, (x,) = held_models.traced()
    (found,) = run_calls(program, example_calls(program), lambda one, given: run_quantised(one, [given])[0])
    with torch.no_grad():
        np.testing.assert_allclose(found[0], module(x).numpy(), rtol=0, atol=0.05)


@pytest.mark.parametrize("which", ["placed", "placed_and_read"])
def test_layers_may_be_given_whole_numbers_that_they_do_not_read_or_do(which: str) -> None:
    """They follow from the model's inputs, so they are no constants; where they are read, the host does it."""
    program = prepare(import_model(f"{MODELS}:{which}#"))
    module, (x,) = getattr(held_models, which)()
    assert program.layers is not None
    turns = iter(program.layers.weights)

    def run_layer(one: Program, given: Sequence[Array]) -> list[Array]:
        held, rest = next(turns), iter(given)
        return run(one, [held[p.name] if p.name in held else next(rest) for p in one.signature.inputs])

    (found,) = run_calls(program, [[-x.numpy()]], run_layer)
    with torch.no_grad():
        np.testing.assert_allclose(found[0], module(-x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("reference", ["residuals#", "decoder#"])
def test_quantised_layers_share_scales_and_have_weights_of_their_own(reference: str) -> None:
    program = prepare(import_model(f"{MODELS}:{reference}"), "w8a8")
    module, (x,) = getattr(held_models, reference.rstrip("#"))()
    assert program.layers is not None
    dtypes = {port.dtype for port in program.signature.inputs if not port.name.startswith("tensors_")}
    assert dtypes == {"int8", "int16", "int32"}, "weights, multipliers, and what is added to sums"
    for weights in zip(*(layer.items() for layer in program.layers.weights), strict=True):
        assert any(not np.array_equal(one[1], weights[0][1]) for one in weights[1:])
    turns = itertools.cycle(program.layers.weights)

    def run_layer(one: Program, given: Sequence[Array]) -> list[Array]:
        held, rest = next(turns), iter(given)
        inputs = one.quantise_inputs([held[p.name] if p.name in held else next(rest) for p in one.signature.inputs])
        answers = run(one, inputs)
        return one.dequantise_outputs([a.reshape(p.shape) for a, p in zip(answers, one.signature.outputs, strict=True)])

    calls = [[x.roll(call, -1).numpy()] for call in range(held_models.PLACES)]
    with torch.no_grad():
        wanted = [module(torch.as_tensor(given)).numpy() for (given,) in calls]
    found = [answer for (answer,) in run_calls(program, calls, run_layer)]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=0.05 * np.max(np.abs(wanted)))


def test_references_with_layers() -> None:
    found = parse_reference("zoo:mlp?hidden=8#layers.0")
    assert isinstance(found, LayersReference)
    assert (str(found.model), found.path, str(found)) == ("zoo:mlp?hidden=8", "layers.0", "zoo:mlp?hidden=8#layers.0")
    assert str(parse_reference("a.py:model#")) == "a.py:model#"
    with pytest.raises(PenstockError, match="only a PyTorch module"):
        parse_reference("model.onnx#layers")
