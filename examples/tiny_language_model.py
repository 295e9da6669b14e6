"""A language model with one Llama block: token numbers in, the next token at every place out.

The look-up of the tokens' rows and the choice of the largest score run on the host, the block and the product with the
vocabulary on the accelerator. The weights are random: it shows the way, it knows no language.
"""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo.llama import build

VOCABULARY, WIDTH, LENGTH = 32, 16, 8


class LanguageModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        block, inputs = build(d=WIDTH, heads=2, kv=1, head=8, ffn=24, seq=LENGTH)
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.block = block
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for name, table in zip(("mask", "cos", "sin"), inputs[1:], strict=True):
            self.register_buffer(name, table)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x, _, _ = self.block(self.tokens(ids), self.mask, self.cos, self.sin)
        return self.head(x).argmax(-1)


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return LanguageModel(), (torch.randint(0, VOCABULARY, (LENGTH,)),)
