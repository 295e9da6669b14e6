"""Every pass keeps the numbers, and all together reach the canonical form."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.program import Program
from penstock.compiler.transforms.canonicalise import simplify
from penstock.compiler.transforms.editor import Editor, layer_of
from penstock.compiler.transforms.generics import maps_of, rebuild
from penstock.compiler.transforms.rewrite import Rewrite, run_rewrites
from penstock.compiler.zoo.mlp import Mlp
from tests.frontend.models import Lambda, import_module, make, seeded
from tests.goldens import check_golden

GOLDENS = Path(__file__).parent / "goldens"


def layers(program: Program) -> list[str]:
    return [layer_of(op) for op in program.module.walk() if isinstance(op, linalg.GenericOp)]


def assert_matches_pytorch(program: Program) -> None:
    assert program.samples is not None
    outputs = run(program, program.samples.inputs)
    for ours, theirs in zip(outputs, program.samples.outputs, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


MODELS: dict[str, Any] = {
    "one value": (lambda: nn.Sequential(nn.Linear(1, 1), nn.ReLU(), nn.Linear(1, 1)), (1, 1)),
    "no batch dimension": (lambda: nn.Linear(8, 4), (8,)),
    "three dimensions": (lambda: nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 4)), (2, 3, 8)),
    "flatten": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(24, 4)), (2, 4, 6)),
    "flatten between layers": (
        lambda: Lambda(lambda m, x: m.b(torch.relu(m.a(x)).flatten(1)), a=nn.Linear(8, 4), b=nn.Linear(12, 5)),
        (2, 3, 8),
    ),
    "unflatten between layers": (
        lambda: Lambda(lambda m, x: m.b(torch.relu(m.a(x)).view(2, 3, 4)), a=nn.Linear(8, 12), b=nn.Linear(4, 5)),
        (2, 8),
    ),
    "result in another shape": (lambda: Lambda(lambda m, x: m.a(x).view(2, 2, 2), a=nn.Linear(8, 4)), (2, 8)),
    "transposed result": (lambda: Lambda(lambda m, x: m.a(x).t(), a=nn.Linear(8, 4)), (2, 8)),
    "transposed input": (lambda: Lambda(lambda m, x: m.a(x.t()), a=nn.Linear(8, 4)), (8, 2)),
    "batch norm": (lambda: nn.Sequential(nn.Linear(8, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3)), (2, 8)),
    "layer norm": (lambda: nn.Sequential(nn.Linear(8, 4), nn.LayerNorm(4), nn.Linear(4, 3)), (2, 8)),
    "softmax": (lambda: nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)), (2, 8)),
    "softmax of one row": (lambda: nn.Sequential(nn.Linear(8, 4), nn.Softmax(-1)), (1, 8)),
    "tanh": (lambda: nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 3)), (1, 8)),
    "gelu": (lambda: nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.Linear(4, 3)), (2, 8)),
    "clamp": (lambda: nn.Sequential(nn.Linear(8, 4), nn.ReLU6(), nn.Linear(4, 3)), (2, 8)),
    "two branches": (
        lambda: Lambda(lambda m, x: torch.relu(m.a(x)) + torch.relu(m.b(x)), a=nn.Linear(8, 8), b=nn.Linear(8, 8)),
        (1, 8),
    ),
    "two results": (lambda: Lambda(lambda m, x: (m.a(x), m.b(x)), a=nn.Linear(8, 8), b=nn.Linear(8, 4)), (1, 8)),
    "a result that is also used": (
        lambda: Lambda(lambda m, x: (lambda h: (h, m.b(h)))(torch.relu(m.a(x))), a=nn.Linear(8, 8), b=nn.Linear(8, 4)),
        (1, 8),
    ),
    "mean": (lambda: Lambda(lambda m, x: m.a(x.mean(1)), a=nn.Linear(8, 4)), (2, 5, 8)),
    "maximum": (lambda: Lambda(lambda m, x: m.a(x.amax(1)), a=nn.Linear(8, 4)), (2, 5, 8)),
    "a tensor made of constants": (lambda: Lambda(lambda m, x: m.a(x + torch.arange(8.0)), a=nn.Linear(8, 4)), (2, 8)),
    "slice": (lambda: Lambda(lambda m, x: m.a(x[:, 2:6]), a=nn.Linear(4, 8)), (2, 8)),
    "concatenation": (
        lambda: Lambda(lambda m, x: m.b(torch.cat([m.a(x), x], 1)), a=nn.Linear(8, 8), b=nn.Linear(16, 8)),
        (2, 8),
    ),
    "attention": (
        lambda: Lambda(
            lambda m, x: torch.softmax(m.q(x) @ m.k(x).t() / 8**0.5, -1) @ m.v(x),
            q=nn.Linear(8, 8),
            k=nn.Linear(8, 8),
            v=nn.Linear(8, 8),
        ),
        (5, 8),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_reach_the_canonical_form(name: str) -> None:
    build, shape = MODELS[name]
    program = import_module(make(build), seeded(shape))
    canonical = simplify(program)
    assert_matches_pytorch(canonical)
    assert canonical.signature == program.signature
    assert len(set(layers(canonical))) == len(layers(canonical))


def test_weights_that_are_shared_are_kept_once() -> None:
    module = Lambda(lambda m, x: (x @ m.w) @ m.w, w=nn.Parameter(seeded((4, 4))))
    program = simplify(import_module(module, seeded((2, 4))))
    assert list(program.params) == ["w"]
    assert_matches_pytorch(program)


def test_fusion_never_enters_a_reduction_and_never_repeats_work() -> None:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        column = torch.tanh(m.b(x))  # one number a row, read by all columns: fusing would repeat the tanh
        return m.c(torch.exp(m.a(x)) * column)

    module = make(lambda: Lambda(forward, a=nn.Linear(8, 4), b=nn.Linear(8, 1), c=nn.Linear(4, 3)))
    program = simplify(import_module(module, seeded((2, 8))))
    assert_matches_pytorch(program)
    assert layers(program) == ["b", "b.tanh", "a", "a.mul", "c", "c.bias"]


def test_golden_of_a_small_mlp() -> None:
    module = make(lambda: Mlp([4, 3, 3, 2], bias=True, residual=True))
    program = simplify(import_module(module, seeded((2, 4))))
    check_golden(GOLDENS / "residual_mlp.mlir", str(program.module) + "\n")
    assert str(simplify(program).module) == str(program.module)


REFUSED: dict[str, Any] = {
    "unchanged": lambda: nn.Identity(),
    "returns a constant": lambda: Lambda(lambda m, x: torch.ones(3)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_not_canonical_is_refused_by_name(what: str) -> None:
    with pytest.raises(PenstockError, match=what) as caught:
        simplify(import_module(make(REFUSED[what]), seeded((2, 8))))
    assert caught.value.code == "unsupported-op"
    assert "net" in caught.value.where


@dataclass(frozen=True)
class _Harmless(Rewrite):
    def rewrite(self, editor: Editor) -> None:
        pass


@dataclass(frozen=True)
class _Wrong(Rewrite):
    """Leaves a layer with one indexing map too few."""

    def rewrite(self, editor: Editor) -> None:
        op = next(editor.generics())
        rebuild(op, maps=maps_of(op)[:-1])


def test_a_pass_that_leaves_invalid_ir_is_named() -> None:
    program = import_module(make(lambda: nn.Linear(4, 3)), seeded((2, 4)))
    with pytest.raises(PenstockError, match="_Wrong left invalid IR") as caught:
        run_rewrites([_Harmless(), _Wrong(), _Harmless()], program)
    assert caught.value.code == "invalid-ir"
    program.module.verify()
