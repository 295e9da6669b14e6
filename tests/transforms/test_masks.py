"""Masks under W8A8: what is left out of a softmax sets no scale, however that is written, and is left out exactly."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from penstock.compiler.errors import PenstockError
from penstock.compiler.program import Program
from tests.frontend.models import Lambda, make, seeded
from tests.transforms.test_quantise import answers, quantised

WIDTH, TOKENS = 16, 8
ALLOWED = torch.ones(TOKENS, TOKENS).tril().bool()
LOWEST = torch.finfo(torch.float32).min
Score = Callable[[Tensor], Tensor]


class Attention(nn.Module):
    def __init__(self, score: Score) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.score = score

    def forward(self, x: Tensor) -> Tensor:
        scores = self.q(x) @ self.k(x).transpose(-1, -2)
        return torch.softmax(self.score(scores), -1) @ self.v(x)


class KeyPadding(Attention):
    """The mask is an input."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:  # type: ignore[override]
        scores = self.q(x) @ self.k(x).transpose(-1, -2) / 4
        left_out = scores.masked_fill(mask, -math.inf) if mask.dtype == torch.bool else scores + mask
        return torch.softmax(left_out, -1) @ self.v(x)


class Library(Attention):
    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.q(x)[None], self.k(x)[None], self.v(x)[None]
        return scaled_dot_product_attention(q, k, v, is_causal=True)[0]


def added(number: float, bias: Tensor | None = None, before: float = 4.0, after: float = 1.0) -> Score:
    """Scores plus a mask of one number, of which some may be biased too."""
    mask = (torch.zeros(TOKENS, TOKENS) if bias is None else bias).masked_fill(~ALLOWED, number)
    return lambda scores: (scores / before + mask) / after


WAYS: dict[str, Score] = {
    "minus 1e9": added(-1e9),
    "minus 1e4": added(-1e4),
    "the lowest float": added(LOWEST),
    "minus infinity": added(-math.inf),
    "minus 100": added(-100.0),
    "with a bias": added(-1e9, seeded((TOKENS, TOKENS))),
    "before the factor": added(-1e9, before=1.0, after=4.0),
    "filled": lambda scores: (scores / 4).masked_fill(~ALLOWED, -math.inf),
    "chosen": lambda scores: torch.where(ALLOWED, scores / 4, torch.tensor(LOWEST)),
    "multiplied": lambda scores: scores / 4 * ALLOWED.float() - 1e10 * (1 - ALLOWED.float()),
}


def error(program: Program, module: nn.Module, *inputs: Tensor) -> float:
    """Of the largest value."""
    (ours,) = answers(program)
    wanted = module(*inputs).detach().numpy()
    return float(np.max(np.abs(ours.reshape(wanted.shape) - wanted)) / np.max(np.abs(wanted)))


@pytest.mark.parametrize("way", WAYS)
def test_a_mask_costs_no_accuracy_however_it_is_written(way: str) -> None:
    module, x = make(lambda: Attention(WAYS[way])), seeded((TOKENS, WIDTH))
    assert error(quantised(module, x), module, x) < 0.03


def test_the_librarys_own_causal_attention() -> None:
    module, x = make(lambda: Library(added(0.0))), seeded((TOKENS, WIDTH))
    assert error(quantised(module, x), module, x) < 0.03


@pytest.mark.parametrize("number", [-1e9, -math.inf, LOWEST])
def test_a_mask_that_is_an_input(number: float) -> None:
    module, x = make(lambda: KeyPadding(added(0.0))), seeded((TOKENS, WIDTH))
    mask = torch.tensor([0.0] * 6 + [number] * 2)
    program = quantised(module, x, mask)
    assert error(program, module, x, mask) < 0.03
    port = program.signature.inputs[1]
    assert port.quant is not None
    assert port.quant.quantise(mask.numpy()).tolist() == [0] * 6 + [-128] * 2


def test_what_a_mask_leaves_out_has_no_weight_at_all() -> None:
    """Scores of 60 and of almost nothing in one model: each position left out is exactly zero behind the softmax."""
    mask = torch.zeros(TOKENS, TOKENS).masked_fill(~ALLOWED, -1e4)
    module = make(lambda: Lambda(lambda _, x: torch.softmax(x * 3 + mask, -1)))
    (ours,) = answers(quantised(module, seeded((TOKENS, TOKENS))))
    assert not ours.reshape(TOKENS, TOKENS)[~ALLOWED.numpy()].any()


def test_large_negative_numbers_that_are_read_elsewhere_are_no_mask() -> None:
    """The sum sees them: they must keep their scale."""
    mask = torch.zeros(TOKENS, TOKENS).masked_fill(~ALLOWED, -100.0)

    def forward(_: nn.Module, x: Tensor) -> Tensor:
        y = x + mask
        return torch.softmax(y, -1) + y.sum(-1, keepdim=True)

    module, x = make(lambda: Lambda(forward)), seeded((TOKENS, TOKENS))
    assert error(quantised(module, x), module, x) < 0.03


def test_scores_without_a_gap_are_no_mask() -> None:
    """Numbers down to -100, none far from the next: all of them count, and the scale is theirs."""
    x = -torch.arange(64.0).reshape(8, 8) * 1.6
    program = quantised(make(lambda: Lambda(lambda _, x: torch.softmax(x, -1))), x)
    quant = program.signature.inputs[0].quant
    assert quant is not None
    assert quant.scale == pytest.approx(63 * 1.6 / 127)


def test_infinity_that_is_no_mask_is_refused_with_its_layer() -> None:
    with pytest.raises(PenstockError, match="layer 'add\\.abs'") as caught:
        quantised(make(lambda: Lambda(lambda _, x: (x + torch.tensor(-math.inf)).abs())), seeded((2, 3)))
    assert caught.value.code == "not-finite"
