"""Functions behind a layer in W8A8: where they are looked up, how exactly, and where they stay in floats."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import IntegerType

from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.scalars.look_up import LookUpOp
from penstock.compiler.transforms import quantised_functions
from tests.frontend.models import import_module

FLOATS = ("sitofp", "mulf", "math.", "divf")
FUNCTIONS: dict[str, nn.Module] = {
    "silu": nn.SiLU(), "gelu": nn.GELU(approximate="tanh"), "erf": nn.GELU(), "sigmoid": nn.Sigmoid(),
    "hardswish": nn.Hardswish(), "mish": nn.Mish(), "tanh": nn.Tanh(),
}  # fmt: skip


class Residual(nn.Module):
    """Functions that go on into sums, one of them a function of the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last, self.silu = nn.Linear(8, 8), nn.Linear(8, 4), nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.silu(x + self.silu(self.first(x))))


def imported(module: nn.Module, gain: float = 1.0, shift: float = 0.0) -> Program:
    torch.manual_seed(3)
    for name, parameter in module.named_parameters():
        nn.init.normal_(parameter, shift if name.endswith("bias") else 0.0, gain / 2)
    return import_module(module.eval(), torch.randn(16, 8, generator=torch.Generator().manual_seed(1)))


def between(function: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 8), function, nn.Linear(8, 4))


def error(program: Program) -> float:
    """Of the largest output of PyTorch."""
    assert program.samples is not None
    given = [
        port.quant.quantise(x) if port.quant else x
        for x, port in zip(program.samples.inputs, program.signature.inputs, strict=True)
    ]
    (found,), (port,) = linalg_interpreter.run(program, given), program.signature.outputs
    real = port.quant.dequantise(found) if port.quant else found
    (wanted,) = program.samples.outputs
    return float(np.max(np.abs(real - wanted)) / np.max(np.abs(wanted)))


def look_ups(program: Program) -> list[LookUpOp]:
    return [op for op in program.module.walk() if isinstance(op, LookUpOp)]


def in_floats(program: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    with monkeypatch.context() as patch:
        patch.setattr(quantised_functions, "MOST_STEPS", -1.0)
        return prepare(program, "w8a8")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shift", [0.0, -2.0])
def test_a_function_behind_a_layer_is_looked_up(name: str, shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """As near to PyTorch as in floats, but for a step of eight bits; also where most numbers are below zero."""
    program = imported(between(FUNCTIONS[name]), shift=shift)
    quantised = prepare(program, "w8a8")
    floats = in_floats(program, monkeypatch)
    assert any(word in str(floats.module) for word in FLOATS)
    if not look_ups(quantised):
        assert (name, str(quantised.module)) == (name, str(floats.module))
        assert name in ("tanh", "silu", "mish", "gelu", "erf", "hardswish")
        assert shift < 0 or name == "tanh"
        return
    (one,) = look_ups(quantised)
    assert one.result.type == IntegerType(8)
    assert not any(word in str(quantised.module) for word in FLOATS)
    assert error(quantised) < error(floats) + 0.012


def test_a_steep_function_stays_in_floats(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between -1 and 1 a tanh is so steep beside its eight bits that 256 levels of its operand are too few."""
    program = imported(between(nn.Tanh()), gain=8.0)
    quantised = prepare(program, "w8a8")
    assert not look_ups(quantised)
    assert str(quantised.module) == str(in_floats(program, monkeypatch).module)


def test_functions_go_on_into_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    program = imported(Residual())
    quantised = prepare(program, "w8a8")
    assert [one.result.type for one in look_ups(quantised)] == [IntegerType(16), IntegerType(8)]
    assert not any(word in str(quantised.module) for word in FLOATS)
    assert error(quantised) < error(in_floats(program, monkeypatch)) + 0.012


def test_no_entry_is_farther_off_than_promised() -> None:
    """Every number within reach: half a step for the result's rounding, and one for the operand's."""
    program = imported(between(nn.SiLU()))
    (one,) = look_ups(prepare(program, "w8a8"))
    entries = np.array(one.entries.data)[np.arange(-128, 128) & 255]
    assert np.all(np.abs(np.diff(entries)) <= 2 * quantised_functions.MOST_STEPS + 1)
    assert entries[-1] == 127
    assert len(np.unique(entries)) > 100


class Triangles(nn.Module):
    """Weights that follow from two rows of constants, as those of a bilinear frame do: too many to be kept."""

    wide: torch.Tensor
    narrow: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(16, 4)
        self.register_buffer("wide", torch.arange(16.0) * 0.5)
        self.register_buffer("narrow", torch.arange(8.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights = nn.functional.relu(1 - (self.wide[:, None] - self.narrow).abs())
        return self.last(nn.functional.linear(x, weights))


def test_what_follows_from_parameters_alone_needs_no_table() -> None:
    program = prepare(imported(Triangles()), "w8a8")
    assert not look_ups(program)
    assert error(program) < 0.02
