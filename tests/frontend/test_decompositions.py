"""How composite operations arrive: no f64, no powers, no index of a maximum, and PyTorch's numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.interpreter.linalg import run
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import simplify
from tests.frontend.models import Lambda, import_module, make, seeded

FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "layer norm": lambda x: functional.layer_norm(x, (8,)),
    "layer norm of two dims": lambda x: functional.layer_norm(x, (4, 8), eps=1e-3),
    "rms norm": lambda x: functional.rms_norm(x, (8,), eps=1e-5),
    "rms norm without epsilon": lambda x: functional.rms_norm(x, (8,)),
    "plain rms norm": lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
    "norm by a root": lambda x: x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6),
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax of columns": lambda x: torch.softmax(x, 0),
    "gelu": lambda x: functional.gelu(x),
    "gelu by tanh": lambda x: functional.gelu(x, approximate="tanh"),
    "gelu by hand": lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * torch.pow(x, 3.0)))),
    "silu": lambda x: functional.silu(x),
    "sigmoid": lambda x: torch.sigmoid(x),
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "seventh power": lambda x: x**7,
    "reciprocal": lambda x: (x.abs() + 1) ** -1,
    "reciprocal square": lambda x: (x.abs() + 1) ** -2,
    "square root": lambda x: x.abs() ** 0.5,
    "reciprocal root": lambda x: (x.abs() + 1) ** -0.5,
    "mean": lambda x: x.mean(0) + x.mean(),
    "variance": lambda x: x.var(-1, correction=0),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
}


def check(program: Program) -> Program:
    canonical = simplify(program)
    assert canonical.samples is not None
    for ours, theirs in zip(run(canonical, canonical.samples.inputs), canonical.samples.outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
    for op in canonical.module.walk():
        assert not isinstance(op, math.PowFOp | math.FPowIOp | arith.TruncFOp | arith.ExtFOp), op
        assert not any(isinstance(value.type, Float64Type) for value in op.results), op
        assert not isinstance(op, linalg.GenericOp) or len(op.results) == 1
    return canonical


@pytest.mark.parametrize("name", FORMS)
def test_composite_operations_become_plain_ones(name: str) -> None:
    check(import_module(Lambda(lambda m, x: FORMS[name](x)), seeded((4, 8))))


def trained(norm: Any) -> Any:
    generator = torch.Generator().manual_seed(7)
    norm.running_mean.normal_(generator=generator)
    norm.running_var.uniform_(0.5, 2, generator=generator)
    return norm


def contractions_and_rest(program: Program) -> list[str]:
    return [str(op.attributes["penstock.layer"]) for op in program.module.walk() if isinstance(op, linalg.GenericOp)]


def test_a_batch_norm_is_folded_into_the_layer_before_it() -> None:
    module = make(lambda: nn.Sequential(nn.Linear(8, 4, bias=False), trained(nn.BatchNorm1d(4)), nn.ReLU()))
    program = check(import_module(module, seeded((2, 8))))
    assert contractions_and_rest(program) == ['"0"', '"0.relu"']
    assert sorted(program.params) == ["0.bias", "0.weight"]
    assert isinstance(module.get_submodule("1"), nn.BatchNorm1d), "the user's module stays as it was"


UNFOLDED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "of another dim": (lambda: nn.Sequential(nn.Linear(8, 3), trained(nn.BatchNorm1d(3))), (2, 3, 8)),
    "of a sum": (lambda: Lambda(lambda m, x: m.n(m.a(x) + x), a=nn.Linear(8, 8), n=trained(nn.BatchNorm1d(8))), (2, 8)),
    "first": (lambda: nn.Sequential(trained(nn.BatchNorm1d(8)), nn.Linear(8, 3)), (2, 8)),
    "whose layer is read twice": (
        lambda: Lambda(lambda m, x: (lambda y: m.n(y) + y)(m.a(x)), a=nn.Linear(8, 4), n=trained(nn.BatchNorm1d(4))),
        (2, 8),
    ),
    "whose layer is called twice": (
        lambda: Lambda(lambda m, x: m.n(m.a(x)) + m.a(x * 2), a=nn.Linear(8, 4), n=trained(nn.BatchNorm1d(4))),
        (2, 8),
    ),
    "whose layer's weight is read": (
        lambda: Lambda(lambda m, x: m.n(m.a(x)) @ m.a.weight, a=nn.Linear(8, 4), n=trained(nn.BatchNorm1d(4))),
        (2, 8),
    ),
}


@pytest.mark.parametrize("name", UNFOLDED)
def test_other_batch_norms_keep_their_numbers(name: str) -> None:
    build, shape = UNFOLDED[name]
    check(import_module(make(build), seeded(shape)))


def test_a_mask_of_infinities_keeps_its_numbers() -> None:
    """MLIR writes an infinity as its bits: read as a whole number, nothing would be masked."""

    class Masked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            mask = torch.triu(torch.full((4, 4), float("-inf")), 1)
            return torch.softmax(x + mask, -1) + (x < torch.full((1, 4), float("inf"))).float()

    check(import_module(Masked(), seeded((4, 4))))
