"""W8A8: within a derived error bound of the float model, in integers only where it can be, canonical after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.loaded import LoadedEvaluation
from penstock.compiler.interpreter.linalg import run, run_rows
from penstock.compiler.program import Program
from penstock.compiler.transforms import fixed_point, quantise_elementwise
from penstock.compiler.transforms.canonicalise import quantise, simplify
from penstock.compiler.transforms.fixed_point import TooWide
from penstock.compiler.transforms.generics import is_reduction
from penstock.compiler.zoo.mlp import Mlp
from tests.frontend.models import Lambda, import_module, make, seeded
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "goldens"


def quantised(module: nn.Module, *inputs: torch.Tensor) -> Program:
    return quantise(simplify(import_module(module, *inputs)))


def answers(program: Program) -> list[np.ndarray]:
    assert program.samples is not None
    return program.dequantise_outputs(run(program, program.quantise_inputs(program.samples.inputs)))


def uses_floats(program: Program) -> bool:
    return any(op.name in ("arith.sitofp", "arith.mulf") for op in program.module.walk())


def error_bound(module: Mlp, inputs: torch.Tensor) -> np.ndarray:
    """How far W8A8 may be from the float MLP on the inputs that it was calibrated on (nothing is clipped there).

    Half a step is lost wherever a number is rounded, and 1/256 where it is multiplied; what a layer is given wrong it
    passes on times its weights.
    """
    with torch.no_grad():
        x = inputs.double()
        error = torch.full_like(x, float(x.abs().max() or 1.0) / 127 / 2)
        for layer in [*module.hidden, module.head]:
            assert isinstance(layer, nn.Linear)
            weight = layer.weight.double()
            step_w = weight.abs().amax(1) / 127
            spread = error @ weight.abs().t() + (x.abs() + error).sum(1, keepdim=True) * step_w / 2
            step_x = float(x.abs().max() or 1.0) / 127
            y = x @ weight.t()
            if layer.bias is not None:
                y = y + layer.bias.double()
                spread = spread + step_x * step_w / 2
            if layer is not module.head:
                if module.residual and y.shape == x.shape:
                    y, spread = y + x, spread + error
                y = torch.relu(y)
                spread = spread + float(y.abs().max() or 1.0) / 127 * (1 / 2 + 2 / 256)
            x, error = y, spread
        return (error * 1.001 + 1e-5).numpy()  # scales are rounded to f32


@given(
    st.lists(st.integers(2, 12), min_size=2, max_size=4),  # one input is no sum: its columns share a scale
    st.booleans(),
    st.booleans(),
    st.integers(1, 3),
    st.integers(0, 1000),
)
@settings(max_examples=8)
def test_random_mlps_stay_within_the_derived_bound(
    widths: list[int], bias: bool, residual: bool, batch: int, seed: int
) -> None:
    torch.manual_seed(seed)
    module, inputs = Mlp(widths, bias=bias, residual=residual), seeded((batch, widths[0]), seed)
    program = quantised(module, inputs)
    assert program.samples is not None
    (ours,), (theirs,) = answers(program), program.samples.outputs
    assert np.all(np.abs(ours - theirs) <= error_bound(module, inputs))


def test_dense_layers_are_integers_throughout() -> None:
    program = quantised(make(lambda: Mlp([8, 6, 6, 3], bias=True, residual=True)), seeded((2, 8)))
    assert not uses_floats(program)
    assert {name: value.dtype.name for name, value in program.params.items() if "weight" in name} == {
        "hidden.0.weight": "int8",
        "hidden.1.weight": "int8",
        "head.weight": "int8",
    }
    (given_port,), (result,) = program.signature.inputs, program.signature.outputs
    assert (given_port.dtype, result.dtype) == ("int8", "int32")
    assert given_port.quant is not None
    assert isinstance(given_port.quant.scale, float)
    assert result.quant is not None
    assert isinstance(result.quant.scale, tuple)
    assert len(result.quant.scale) == 3


def test_it_is_deterministic() -> None:
    module = make(lambda: Mlp([8, 6, 3], bias=True, residual=False))
    program = simplify(import_module(module, seeded((1, 8))))
    first, second = quantise(program), quantise(program)
    assert str(first.module) == str(second.module)
    assert first.signature == second.signature
    assert all(np.array_equal(first.params[name], second.params[name]) for name in first.params)


def dense(*between: nn.Module, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 4, bias=bias), *between, nn.Linear(4, 3))


MODELS: dict[str, Any] = {
    "tanh": (lambda: dense(nn.Tanh()), (2, 8), False, "int32"),
    "clamp": (lambda: dense(nn.ReLU6()), (2, 8), False, "int32"),
    "leaky": (lambda: dense(nn.LeakyReLU(0.1)), (2, 8), False, "int32"),
    "batch norm": (
        lambda: dense(nn.BatchNorm1d(4), nn.ReLU()),
        (2, 8),
        False,
        "int32",
    ),
    "linear after linear": (
        lambda: dense(bias=False),
        (2, 8),
        False,
        "int32",
    ),
    "ends in relu": (lambda: nn.Sequential(nn.Linear(8, 4), nn.ReLU()), (2, 8), False, "int32"),
    "ends in softmax": (lambda: nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)), (2, 8), True, "float32"),
    "maximum": (lambda: Lambda(lambda m, x: m.a(x.amax(1)), a=nn.Linear(8, 4)), (2, 5, 8), False, "int32"),
    "mean": (lambda: Lambda(lambda m, x: m.a(x.mean(1)), a=nn.Linear(8, 4)), (2, 5, 8), False, "int32"),
    "transposed result": (lambda: Lambda(lambda m, x: m.a(x).t(), a=nn.Linear(8, 4)), (2, 8), False, "int32"),
    "transposed result without bias": (
        lambda: Lambda(lambda m, x: m.a(x).t(), a=nn.Linear(8, 4, bias=False)),
        (2, 8),
        False,
        "int32",
    ),
    "result in another shape": (
        lambda: Lambda(lambda m, x: m.a(x).view(2, 2, 2), a=nn.Linear(8, 4, bias=False)),
        (2, 8),
        False,
        "int32",
    ),
    "product of activations": (
        lambda: Lambda(lambda m, x: m.a(x) @ m.b(x).t(), a=nn.Linear(8, 4), b=nn.Linear(8, 4)),
        (3, 8),
        False,
        "int32",
    ),
    "two branches": (
        lambda: Lambda(lambda m, x: torch.relu(m.a(x)) - torch.relu(m.b(x)), a=nn.Linear(8, 8), b=nn.Linear(8, 8)),
        (1, 8),
        False,
        "int32",
    ),
    "a result that is also used": (
        lambda: Lambda(lambda m, x: (lambda h: (m.b(h), h))(torch.relu(m.a(x))), a=nn.Linear(8, 8), b=nn.Linear(8, 4)),
        (1, 8),
        False,
        "int32",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_are_close_to_pytorch(name: str) -> None:
    build, shape, floats, dtype = MODELS[name]
    program = quantised(make(build), seeded(shape))
    assert program.samples is not None
    assert uses_floats(program) == floats
    assert program.signature.outputs[0].dtype == dtype
    for ours, theirs in zip(answers(program), program.samples.outputs, strict=True):
        assert ours.shape == theirs.shape
        assert np.max(np.abs(ours - theirs)) <= 0.03 * np.max(np.abs(theirs))


def test_a_channel_of_zeros_keeps_its_bias() -> None:
    layer = make(lambda: nn.Linear(8, 3))
    assert isinstance(layer, nn.Linear)
    with torch.no_grad():
        layer.weight[1] = 0
        layer.bias[1] = 0.7
    (ours,) = answers(quantised(layer, seeded((2, 8))))
    np.testing.assert_allclose(ours[:, 1], 0.7, rtol=0.01)


def test_a_model_of_zeros_is_zero() -> None:
    layer = nn.Linear(8, 3)
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
    (ours,) = answers(quantised(layer, torch.zeros(2, 8)))
    assert not ours.any()


class Choosing(nn.Module):
    """Rows of one tensor or another, as a cache is written; with `loud` the other's numbers are larger."""

    def __init__(self, *, loud: bool) -> None:
        super().__init__()
        self.loud, self.last = loud, nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, other: torch.Tensor, where: torch.Tensor) -> torch.Tensor:
        rows = torch.where(where[:, None] > 0, x, other * 4 if self.loud else other)
        return self.last(rows)


@pytest.mark.parametrize("loud", [False, True])
def test_a_choice_between_two_tensors_is_one_of_integers(loud: bool) -> None:
    """Where both have the scale of what is chosen, nothing but the choice is left: no lane takes a multiplier."""
    rows = seeded((6, 8))
    where = -torch.ones(6)
    where[int(rows.abs().amax(1).argmax())] = 1  # the largest number of both is chosen
    program = quantised(make(lambda: Choosing(loud=loud)), rows, rows.flip(0), where)
    (chosen,) = [op for op in program.module.walk() if isinstance(op, linalg.GenericOp) and _chooses(op)]
    assert not any(isinstance(inner, arith.MulfOp | arith.SIToFPOp) for inner in chosen.body.block.ops)
    if not loud:
        assert [type(inner) for inner in chosen.body.block.ops] == [arith.SelectOp, linalg.YieldOp]
    assert program.samples is not None
    wanted = program.samples.outputs[0]
    assert np.max(np.abs(answers(program)[0] - wanted)) < 0.03 * np.max(np.abs(wanted))


def _chooses(op: linalg.GenericOp) -> bool:
    return any(isinstance(inner, arith.SelectOp) for inner in op.body.block.ops)


class TokenBefore(nn.Module):
    """A class token of zeros before rows of numbers, places added, and a norm: as a vision transformer begins."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.places = nn.Parameter(torch.zeros(1, 16)), nn.Parameter(torch.randn(5, 16) * 0.02)
        self.norm, self.first, self.last = nn.LayerNorm(16), nn.Linear(16, 24), nn.Linear(24, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat((self.token, x)) + self.places
        return x + self.last(nn.functional.gelu(self.first(self.norm(x))))


def test_a_row_far_below_the_others_keeps_its_numbers_for_a_norm() -> None:
    program = quantised(make(TokenBefore), seeded((4, 16)))
    assert program.samples is not None
    wanted, got = program.samples.outputs[0], answers(program)[0]
    assert np.max(np.abs(got[0] - wanted[0])) < 0.05 * np.max(np.abs(wanted[0])), "the token's row"
    assert np.max(np.abs(got - wanted)) < 0.03 * np.max(np.abs(wanted))


def test_rows_that_are_alike_stay_in_eight_bits_for_a_norm() -> None:
    program = quantised(make(lambda: nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16))), seeded((4, 16)))
    squares = [op for op in program.module.walk() if isinstance(op, linalg.GenericOp) and is_reduction(op)]
    assert squares
    assert all(tensor_type(x).get_element_type() != f32 for op in squares for x in op.inputs)


def test_calibration_inputs_decide_the_scales() -> None:
    rows = seeded((64, 8))
    labels = torch.zeros(64, dtype=torch.int64)
    evaluation = LoadedEvaluation("rows", rows, labels, calibration=rows)
    module = make(lambda: Mlp([8, 6, 3], bias=True, residual=False))
    program = import_module(module, rows[:1] / 100, evaluation=evaluation)
    narrow = quantise(simplify(import_module(module, rows[:1] / 100)))
    wide = quantise(simplify(program))
    scales = [p.signature.inputs[0].quant for p in (narrow, wide)]
    assert scales[0] is not None
    assert scales[1] is not None
    assert scales[1].scale == pytest.approx(float(rows.abs().max()) / 127, rel=1e-5)
    assert program.evaluation is not None
    error = np.abs(run_rows(wide, program.evaluation.inputs) - program.evaluation.outputs)
    assert error.max() < 0.05 * np.abs(program.evaluation.outputs).max()


def test_shifts_that_are_passed_over_would_not_have_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum of two branches, a gate, a norm and a function, in integers: as if every shift had been tried."""
    tried: list[int] = []
    finest = quantise_elementwise._finest

    def counted(attempt: Any) -> Any:
        return finest(lambda shift: [tried.append(shift), attempt(shift)][1])

    class OneByOne(TooWide):
        def __init__(self, _places: int = 1) -> None:
            super().__init__()

    def forward(net: Any, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(net.one(x)) + 3e-5 * net.two(x) - 1e3
        return torch.softmax(y, 1) + torch.sigmoid(y) * net.norm(y) / 7 + torch.clamp(y, -0.5, 1e4)

    def model() -> Lambda:
        return Lambda(forward, one=nn.Linear(6, 5), two=nn.Linear(6, 5), norm=nn.LayerNorm(5))

    program = simplify(import_module(make(model), seeded((4, 6))))
    monkeypatch.setattr(quantise_elementwise, "_finest", counted)
    quick, attempts = str(quantise(program).module), len(tried)
    tried.clear()
    monkeypatch.setattr(fixed_point, "TooWide", OneByOne)
    assert str(quantise(program).module) == quick
    assert 0 < 3 * attempts < len(tried)


def test_golden_of_a_small_mlp() -> None:
    module = make(lambda: Mlp([4, 3, 2], bias=True, residual=False))
    program = quantised(module, seeded((2, 4)))
    check_golden(GOLDENS / "quantised_mlp.mlir", str(program.module) + "\n")


def test_sums_that_overflow_32_bits_are_refused() -> None:
    layer = nn.Linear(140_000, 1, bias=False)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    program = simplify(import_module(layer, torch.ones(1, 140_000)))
    with pytest.raises(PenstockError, match="do not fit 32 bits"):
        quantise(program)


def test_infinite_activations_are_refused() -> None:
    layer = nn.Linear(4, 2)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    program = simplify(import_module(layer, torch.full((1, 4), 3e38)))
    with pytest.raises(PenstockError, match="infinity or not-a-number"):
        quantise(program)


def test_what_is_divided_by_a_number_is_multiplied_where_eight_bits_leave() -> None:
    """Hardswish divides by six. A result of the model keeps its last bit."""
    body = nn.Sequential(nn.Linear(8, 8), nn.Hardswish(), nn.Linear(8, 4), nn.Hardswish())
    program = quantised(make(lambda: body), seeded((2, 8)))
    divided = [op for op in program.module.walk() if isinstance(op, arith.DivfOp)]
    assert len(divided) == 1
    whole = import_module(make(lambda: body), seeded((2, 8)))
    assert whole.samples is not None
    exact = run(simplify(whole), whole.samples.inputs)[0]
    assert np.abs(answers(program)[0] - exact).max() < 0.05 * np.abs(exact).max()
