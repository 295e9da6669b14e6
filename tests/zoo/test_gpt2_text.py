"""GPT-2 as a whole, a token a call: what it keeps in its caches is what attention over all tokens would see."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.reference import parse_reference
from penstock.compiler.zoo.gpt2_text import Gpt2Text

SIZES = "layers=2&d=16&heads=2&tokens=32&cache=6"


def built(options: str) -> Gpt2Text:
    module = load_model(parse_reference(f"zoo:gpt2_text?{options}")).module
    assert isinstance(module, Gpt2Text)
    return module


def all_at_once(model: Gpt2Text, tokens: torch.Tensor) -> torch.Tensor:
    """The scores behind every token, from the same weights without any cache."""
    w = model.state_dict()
    count, d = len(tokens), w["wte.weight"].shape[1]

    def normed(x: torch.Tensor, name: str) -> torch.Tensor:
        return layer_norm(x, (d,), w[f"{name}.weight"], w[f"{name}.bias"])

    def linear(x: torch.Tensor, name: str) -> torch.Tensor:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][:count]
    for layer in (f"h.{n}" for n in range(len(model.h))):
        parts = linear(normed(x, f"{layer}.ln_1"), f"{layer}.attn.c_attn")
        q, k, v = parts.view(count, 3, 2, d // 2).permute(1, 2, 0, 3)
        seen = scaled_dot_product_attention(q, k, v, is_causal=True).transpose(0, 1).reshape(count, d)
        x = x + linear(seen, f"{layer}.attn.c_proj")
        y = gelu(linear(normed(x, f"{layer}.ln_2"), f"{layer}.mlp.c_fc"), approximate="tanh")
        x = x + linear(y, f"{layer}.mlp.c_proj")
    return normed(x, "ln_f") @ w["wte.weight"].T


@torch.no_grad()
def test_token_by_token_is_all_at_once() -> None:
    model, tokens = built(SIZES), torch.tensor([3, 1, 4, 1, 5, 9])
    wanted = all_at_once(model, tokens)
    for place, token in enumerate(tokens):
        scores = model(token[None], torch.tensor([place]))
        torch.testing.assert_close(scores[0], wanted[place], rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_what_stood_in_the_cache_before_is_not_seen() -> None:
    model = built(SIZES)
    first = model(torch.tensor([7]), torch.tensor([0]))
    for place in range(1, 6):
        model(torch.tensor([place]), torch.tensor([place]))
    torch.testing.assert_close(model(torch.tensor([7]), torch.tensor([0])), first)


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ("size=huge", "medium"),
        ("d=10&heads=4", "a multiple of heads"),
        ("cache=2000", "1024 places"),
        ("layers=-1", "1"),
        ("cache=4&chunk=5", "room there for a chunk"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(options: str, limit: str) -> None:
    with pytest.raises(PenstockError) as caught:
        built(options)
    assert caught.value.code == "bad-option"
    assert limit in (caught.value.limit or "")
