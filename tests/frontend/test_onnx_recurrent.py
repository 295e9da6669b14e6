"""ONNX's recurrent operators: as its own evaluator answers, and as PyTorch's layers that were exported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from onnx import helper
from torch import nn

from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from tests.frontend.models import make
from tests.frontend.onnx_files import export, graph
from tests.frontend.test_onnx import same_as_reference

STEPS, HIDDEN = (3, 2, 4), 3
RECURRENT: dict[str, tuple[str, str, int, dict[str, Any]]] = {
    "LSTM": ("LSTM", "x w r b", 4, {}),
    "LSTM with a state": ("LSTM", "x w r b lengths h c", 4, {}),
    "GRU": ("GRU", "x w r b", 3, {}),
    "GRU, reset behind the product": ("GRU", "x w r b", 3, {"linear_before_reset": 1}),
    "RNN": ("RNN", "x w r", 1, {}),
    "RNN with a state": ("RNN", "x w r b lengths h", 1, {}),
}


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_operators_mean_what_onnx_says(name: str, tmp_path: Path) -> None:
    op, inputs, gates, attributes = RECURRENT[name]
    draw = np.random.default_rng(3)
    shapes = {"w": (1, gates * HIDDEN, 4), "r": (1, gates * HIDDEN, HIDDEN), "b": (1, 2 * gates * HIDDEN),
              "h": (1, 2, HIDDEN), "c": (1, 2, HIDDEN)}  # fmt: skip
    given = inputs.replace("lengths", "").split(" ")  # not given, though later inputs are
    constants = {x: draw.uniform(-1, 1, shapes[x]).astype(np.float32) for x in given if x in shapes}
    made = helper.make_node(op, given, ["y", "last"], f"/net/{op}", hidden_size=HIDDEN, **attributes)
    same_as_reference(graph([made], {"x": STEPS}, ["y", "last"], constants), tmp_path)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_both_ways_are_pytorchs(kind: Callable[..., nn.Module], tmp_path: Path) -> None:
    layer = make(lambda: kind(4, HIDDEN, 2, bidirectional=True))
    path = export(layer, (torch.zeros(2, 1, 4),), tmp_path / "net.onnx", opset_version=17)
    program = prepare(import_model(str(path)))
    assert program.samples is not None
    with torch.no_grad():
        wanted, _ = layer(torch.tensor(program.samples.inputs[0]))
    np.testing.assert_allclose(run(program, program.samples.inputs)[0], wanted, rtol=1e-4, atol=1e-5)
