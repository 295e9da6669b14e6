"""Self-attention alone: one head or many, all tokens seeing each other through a mask that is an input."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.errors import PenstockError
from penstock.compiler.zoo._blocks import ModuleAndInputs, causal_mask, finish
from penstock.compiler.zoo._transformer import TransformerSizes, attend


def build(d: int = 16, heads: int = 2, seq: int = 4, bias: bool = True, seed: int = 0) -> ModuleAndInputs:
    if min(d, heads, seq) < 1 or d % heads:
        raise PenstockError(
            code="bad-option", what=f"d={d}, heads={heads}, seq={seq}", where="zoo:attention",
            limit="whole numbers of at least 1, d a multiple of heads", hint="for example zoo:attention?d=16&heads=2",
        )  # fmt: skip
    sizes = TransformerSizes(d=d, heads=heads, kv=heads, head=d // heads, ffn=d, seq=seq, cache=0)
    x = torch.randn(seq, d, generator=torch.Generator().manual_seed(seed + 1))
    return finish(Attention(sizes, bias=bias), (x, causal_mask(sizes)), seed)


class Attention(nn.Module):
    def __init__(self, sizes: TransformerSizes, *, bias: bool) -> None:
        super().__init__()
        self.heads, self.head = sizes.heads, sizes.head
        self.q, self.k, self.v, self.o = (nn.Linear(sizes.d, sizes.d, bias=bias) for _ in range(4))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        q, k, v = (part(x).view(x.shape[0], self.heads, self.head) for part in (self.q, self.k, self.v))
        return self.o(attend(q, k, v, mask, self.head**-0.5))
