"""What of GPT-2-medium is compiled beside its layers: the head, and the part of a layer that one of several cards has.

`benchmarks/language/models.py:head` and so on are references like any user's. A card of several has its share of the
heads and of the hidden units of every layer; the sums over cards, which travel over the link, are not in it.
"""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._blocks import ModuleAndInputs, finish
from penstock.compiler.zoo._transformer import Conv1d, Gpt2FeedForward, attend

WIDTH, HEADS, FFN, TOKENS = 1024, 16, 4096, 50304
CACHE = 64
"""Places of the shares' caches: as many as [32:32] has."""


class Head(nn.Module):
    """The last norm, and the scores of every token of the vocabulary."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.norm, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, tokens, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(self.norm(x))


class ShareOfLayer(nn.Module):
    """A layer's heads and hidden units over `cards`."""

    def __init__(self, cards: int) -> None:
        super().__init__()
        self.heads, width = HEADS // cards, WIDTH // cards
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.q, self.k, self.v = (Conv1d(WIDTH, width) for _ in range(3))
        self.out, self.mlp = Conv1d(width, WIDTH), Gpt2FeedForward(WIDTH, FFN // cards)
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self.register_buffer("keys", torch.zeros(CACHE, self.heads, WIDTH // HEADS), persistent=False)
        self.register_buffer("values", torch.zeros(CACHE, self.heads, WIDTH // HEADS), persistent=False)

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        y = self.ln_1(x)
        q, k, v = (part(y).view(x.shape[0], self.heads, -1) for part in (self.q, self.k, self.v))
        self.keys.index_copy_(0, place, k)
        self.values.index_copy_(0, place, v)
        mask = (torch.arange(CACHE) <= place[:, None]).to(torch.float32)
        x = x + self.out(attend(q, self.keys, self.values, mask, q.shape[-1] ** -0.5))
        return x + self.mlp(self.ln_2(x))


class Shares(nn.Module):
    """Layers that share one accelerator, as those of the whole model do."""

    def __init__(self, cards: int) -> None:
        super().__init__()
        self.h = nn.ModuleList(ShareOfLayer(cards) for _ in range(2))

    def forward(self, x: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        for layer in self.h:
            x = layer(x, place)
        return x


def head() -> ModuleAndInputs:
    generator = torch.Generator().manual_seed(1)
    return finish(Head(TOKENS), (torch.randn(1, WIDTH, generator=generator),), 0)


def half(rows: int = 1) -> ModuleAndInputs:
    return _share(2, rows)


def quarter(rows: int = 1) -> ModuleAndInputs:
    return _share(4, rows)


def _share(cards: int, rows: int) -> ModuleAndInputs:
    generator = torch.Generator().manual_seed(1)
    return finish(Shares(cards), (torch.randn(rows, WIDTH, generator=generator), torch.arange(rows)), 0)
