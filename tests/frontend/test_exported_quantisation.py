"""Graphs that PyTorch's quantisation of exported models leaves (pt2e) are read bit for bit, as integers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.reference import parse_reference

import_module("torch.ao.quantization.fx._decomposed")  # registers what a quantised graph calls
Q: Any = torch.ops.quantized_decomposed
INT8 = (-128, 127, torch.int8)


def stepped(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    """As a quantiser writes an activation: to eight bits and back."""
    return Q.dequantize_per_tensor.default(Q.quantize_per_tensor.default(x, scale, zero, *INT8), scale, zero, *INT8)


class Folded(nn.Module):
    """Weights stored in eight bits, a scale a channel, as `fold_quantize` leaves them."""

    weight: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor

    def __init__(self, groups: int = 1) -> None:
        super().__init__()
        self.groups, self.bias = groups, nn.Parameter(torch.randn(4))
        self.register_buffer("weight", torch.randint(-127, 128, (4, 4 // groups, 3, 3), dtype=torch.int8))
        self.register_buffer("scales", 2.0 ** -torch.tensor([7.0, 6, 7, 8]))
        self.register_buffer("zeros", torch.zeros(4, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = stepped(x, 2.0**-5, 3)
        weight = Q.dequantize_per_channel.default(self.weight, self.scales, self.zeros, 0, *INT8)
        y = stepped(torch.conv2d(x, weight, self.bias, padding=(1, 1), groups=self.groups), 0.25, 0)
        return stepped(torch.relu(y + x), 0.125, -128)


class Unfolded(nn.Module):
    """Weights in float32 that the graph quantises each time, tensor by tensor or channel by channel."""

    scales: torch.Tensor
    zeros: torch.Tensor

    def __init__(self, per_channel: bool) -> None:
        super().__init__()
        self.dense, self.per_channel = nn.Linear(6, 5), per_channel
        self.register_buffer("scales", 2.0 ** -torch.tensor([7.0, 6, 7, 8, 6]))
        self.register_buffer("zeros", torch.zeros(5, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.dense.weight
        if self.per_channel:
            whole = Q.quantize_per_channel.default(weight, self.scales, self.zeros, 0, *INT8)
            weight = Q.dequantize_per_channel.default(whole, self.scales, self.zeros, 0, *INT8)
        else:
            scale, zero = torch.tensor(2.0**-7), torch.tensor(0)
            whole = Q.quantize_per_tensor.tensor(weight, scale, zero, *INT8)
            weight = Q.dequantize_per_tensor.tensor(whole, scale, zero, *INT8)
        y = torch.nn.functional.linear(stepped(x, 2.0**-4, 0), weight, self.dense.bias)
        return stepped(y, 2.0**-5, 5)


class Adds(nn.Module):
    """Numbers of eight bits that no quantiser left."""

    weight: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.arange(-2, 2, dtype=torch.int8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.weight)


def imported(make: Callable[[], nn.Module], shape: tuple[int, ...], *, exported: bool = False) -> Program:
    torch.manual_seed(0)
    module, x = make().eval(), torch.randn(shape)
    if exported:
        module = torch.export.export(module, (x,)).module()
    return import_loaded(LoadedModel("pt2e", "pt2e.py:model", module, (x,)))


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (Folded, (1, 4, 6, 6)), (lambda: Folded(groups=4), (1, 4, 6, 6)),
        (lambda: Unfolded(True), (3, 6)), (lambda: Unfolded(False), (3, 6)),
    ],
    ids=["folded", "depthwise", "channels", "tensors"],
)  # fmt: skip
@pytest.mark.parametrize("exported", [False, True], ids=["module", "graph"])
def test_the_bits_are_pytorchs(make: Callable[[], nn.Module], shape: tuple[int, ...], exported: bool) -> None:
    program = prepare(imported(make, shape, exported=exported))
    assert program.samples is not None
    (found,) = run(program, program.samples.inputs)
    np.testing.assert_array_equal(found, program.samples.outputs[0])
    assert len(np.unique(found)) > 4, "the numbers tell something"
    sums = [op for op in read_graph(program.module).operations if op.reductions]
    assert sums
    assert all("i32" in str(op.result.type) for op in sums), "products of integers"


def test_its_own_scales_are_used_and_no_others() -> None:
    with pytest.raises(PenstockError, match="quantised already"):
        prepare(imported(Folded, (1, 4, 6, 6)), "w8a8")


def test_eight_bits_that_are_added_to_floats_are_numbers_too() -> None:
    program = prepare(imported(Adds, (3, 4)))
    assert program.samples is not None
    np.testing.assert_array_equal(run(program, program.samples.inputs)[0], program.samples.outputs[0])


def test_an_exported_graph_is_a_model_of_a_file(tmp_path: Any) -> None:
    """It refuses to change its mode, and is taken as it was traced."""
    (tmp_path / "net.py").write_text(
        "import torch\n\n\ndef model():\n    x = torch.ones(2, 3)\n"
        "    return torch.export.export(torch.nn.Linear(3, 2).eval(), (x,)).module(), (x,)\n"
    )
    program = import_loaded(load_model(parse_reference(f"{tmp_path / 'net.py'}:model")))
    assert program.samples is not None
    np.testing.assert_allclose(run(prepare(program), program.samples.inputs)[0], program.samples.outputs[0], rtol=1e-5)
