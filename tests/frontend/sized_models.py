"""A language model of two layers of which each call says how many tokens it takes and how much of the caches it sees.

Without functions that cores round otherwise than numpy: for the bits of the SystemVerilog.
"""

from __future__ import annotations

import torch
from torch import nn

WIDTH, TOKENS = 4, 8
Sized = tuple[nn.Module, tuple[torch.Tensor, ...]]


class Kept(nn.Module):
    """Attention without exponentials: what scores below zero is not attended to."""

    def __init__(self, cache: int) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.keys: torch.Tensor
        self.values: torch.Tensor
        self.register_buffer("keys", torch.zeros(cache, WIDTH))
        self.register_buffer("values", torch.zeros(cache, WIDTH))

    def forward(self, x: torch.Tensor, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(0, place, self.k(x))
        self.values.index_copy_(0, place, self.v(x))
        return x + self.o((torch.relu(self.q(x) @ self.keys.T) * mask) @ self.values)


class Decoder(nn.Module):
    def __init__(self, cache: int) -> None:
        super().__init__()
        self.cache = cache
        self.rows = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Kept(cache) for _ in range(2))
        self.head = nn.Linear(WIDTH, TOKENS)

    def forward(self, token: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """The scores of the token behind the last of these."""
        x = self.rows(token)
        mask = (torch.arange(self.cache) <= place[:, None]).to(torch.float32)
        for block in self.blocks:
            x = block(x, place, mask)
        return self.head(x[-1:])


def model(chunk: int = 3, cache: int = 6) -> Sized:
    torch.manual_seed(5)
    return Decoder(cache).eval(), (torch.arange(chunk) + 1, torch.arange(chunk))
