"""GPT-2 as a whole: `zoo:gpt2_text?size=medium&cache=512#h` shares one accelerator among its layers.

Parameters have the names of the published checkpoints; scores come from the table of tokens, as there. Keys and values
are buffers, so they stay from call to call. A call takes one token, or with `chunk` several that follow each other, and
where each stands; a chunk that is not full repeats its last token at the same place, which writes the same row again.
"""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._blocks import ModuleAndInputs, finish
from penstock.compiler.zoo._sizes import bad_size
from penstock.compiler.zoo._transformer import Conv1d, Gpt2FeedForward, attend

_SIZES = {"tiny": (2, 64, 2, 96, 16), "small": (12, 768, 12, 50257, 64), "medium": (24, 1024, 16, 50257, 64)}
"""Layers, width, heads, tokens that it knows, places in the cache."""
_PLACES = 1024
_MOST_LAYERS = 256
"""Each is built before its size is known; the largest GPT-2 has 48."""


class CachedAttention(nn.Module):
    def __init__(self, d: int, heads: int, cache: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Conv1d(d, 3 * d), Conv1d(d, d)
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self.register_buffer("keys", torch.zeros(cache, heads, d // heads), persistent=False)
        self.register_buffer("values", torch.zeros(cache, heads, d // heads), persistent=False)

    def forward(self, x: torch.Tensor, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        parts = zip(self.c_attn.weight.chunk(3, 1), self.c_attn.bias.chunk(3), strict=True)
        q, k, v = ((x @ weight + bias).view(x.shape[0], self.heads, -1) for weight, bias in parts)
        self.keys.index_copy_(0, place, k)
        self.values.index_copy_(0, place, v)
        return self.c_proj(attend(q, self.keys, self.values, mask, q.shape[-1] ** -0.5))


class CachedBlock(nn.Module):
    def __init__(self, d: int, heads: int, cache: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn, self.mlp = CachedAttention(d, heads, cache), Gpt2FeedForward(d, 4 * d)

    def forward(self, x: torch.Tensor, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.ln_1(x), place, mask)
        return x + self.mlp(self.ln_2(x))


class Gpt2Text(nn.Module):
    base_model_prefix = "transformer"
    _keys_to_ignore_on_load_unexpected = (r"^h\.\d+\.attn\.(bias|masked_bias)$", r"^lm_head\.weight$")
    """What else files of transformers hold: masks, and the table of tokens under its other name."""

    def __init__(self, layers: int, d: int, heads: int, tokens: int, cache: int) -> None:
        super().__init__()
        self.cache = cache
        self.wte, self.wpe = nn.Embedding(tokens, d), nn.Embedding(_PLACES, d)
        self.h = nn.ModuleList(CachedBlock(d, heads, cache) for _ in range(layers))
        self.ln_f = nn.LayerNorm(d)

    def forward(self, token: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """The scores of the token behind the last of these."""
        x = self.wte(token) + self.wpe(place)
        mask = (torch.arange(self.cache) <= place[:, None]).to(torch.float32)
        for block in self.h:
            x = block(x, place, mask)
        return self.ln_f(x[-1:]) @ self.wte.weight.T


def build(
    size: str = "tiny",
    layers: int = 0,
    d: int = 0,
    heads: int = 0,
    tokens: int = 0,
    cache: int = 0,
    chunk: int = 1,
    seed: int = 0,
) -> ModuleAndInputs:
    """What is not given comes from the size."""
    if size not in _SIZES:
        raise bad_size("gpt2_text", f"size={size!r}", f"sizes: {', '.join(_SIZES)}")
    given = (layers, d, heads, tokens, cache)
    layers, d, heads, tokens, cache = (own or usual for own, usual in zip(given, _SIZES[size], strict=True))
    if (
        min(layers, d, heads, tokens, cache, chunk) < 1
        or d % heads
        or not chunk <= cache <= _PLACES
        or layers > _MOST_LAYERS
    ):
        raise bad_size(
            "gpt2_text", f"layers={layers}, d={d}, heads={heads}, tokens={tokens}, cache={cache}, chunk={chunk}",
            f"at least 1 of each, d a multiple of heads, at most {_MOST_LAYERS} layers and {_PLACES} places in the "
            "cache, room there for a chunk",
        )  # fmt: skip
    module = Gpt2Text(layers, d, heads, tokens, cache)
    made, inputs = finish(module, (torch.arange(1, chunk + 1) % tokens, torch.arange(chunk)), seed)
    with torch.no_grad():
        for block in module.h:
            assert isinstance(block, CachedBlock)
            for last in (block.attn.c_proj, block.mlp.c_proj):  # as GPT-2 begins: its layers add up to one
                last.weight.mul_((2 * layers) ** -0.5)
    return made, inputs
