"""Where eight bits do not suffice, it is said before a search, with the layer that is at fault."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline.check_quantised import check_quantised, layer_errors
from penstock.compiler.transforms.canonicalise import quantise, simplify
from tests.frontend.models import Lambda, import_module, make, seeded


class Unlike(nn.Module):
    """One feature of a thousand beside fifteen of a hundredth, which are all that the next layer wants."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.scaled, self.last = nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 4)
        self.register_buffer("sizes", torch.tensor([1000.0] + [0.01] * 15))
        with torch.no_grad():
            self.last.weight[:, 0] = 0
            self.last.weight[:, 1:] *= 100

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.scaled(self.first(x)) * self.sizes)


def test_the_layer_whose_numbers_are_too_unlike_is_named() -> None:
    program = import_module(make(Unlike), seeded((4, 16)))
    prepared = quantise(simplify(program))
    with pytest.raises(PenstockError) as caught:
        check_quantised(program, prepared)
    error = caught.value
    assert error.code == "eight-bits-too-few"
    assert error.where.startswith("layer 'last")
    assert "10% of the largest output" in (error.limit or "")
    assert "without --quantize" in (error.hint or "")


def test_a_model_that_eight_bits_suffice_for_passes_with_small_errors_in_each_layer() -> None:
    program = import_module(
        make(lambda: nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()), seeded((1, 8, 16))
    )
    check_quantised(program, quantise(simplify(program)))
    assert program.samples is not None
    errors = layer_errors(simplify(program), program.samples)
    assert len(errors) > 10
    assert 0 < max(e.share for e in errors) < 0.1


def test_a_euclidean_norm_is_a_sum_of_products() -> None:
    x = seeded((4, 16))
    program = import_module(make(lambda: Lambda(lambda _, x: x / x.norm(dim=-1, keepdim=True))), x)
    prepared = quantise(simplify(program))
    check_quantised(program, prepared)
    assert "math.absf" not in str(prepared.module)


def test_a_row_of_zeros_costs_the_other_rows_of_a_norm_nothing() -> None:
    """As padding tokens are: the factor of such a row is 1/sqrt(eps), three hundred times that of the others."""
    x = seeded((6, 16))
    x[2] = x[4] = 0
    program = import_module(make(lambda: nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 4))), x)
    check_quantised(program, quantise(simplify(program)))
    assert program.samples is not None
    assert max(e.share for e in layer_errors(simplify(program), program.samples)) < 0.05


class Windowed(nn.Module):
    """Attention that looks back three tokens: a mask of distances that are counted, not computed with floats."""

    def __init__(self) -> None:
        super().__init__()
        self.packed = nn.Linear(8, 24)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.packed(x).chunk(3, -1)
        places = torch.arange(6)
        apart = places[None] - places[:, None]
        scores = queries @ keys.transpose(-1, -2) + 0.25 * apart
        return scores.masked_fill((apart > 0) | (apart < -3), torch.finfo(scores.dtype).min).softmax(-1) @ values


def test_distances_between_places_are_whole_numbers_without_a_scale() -> None:
    program = import_module(make(Windowed), seeded((1, 6, 8)))
    check_quantised(program, quantise(simplify(program)))
