"""A norm of many rows, and what reads it."""

import torch
from torch import nn

from penstock.compiler.zoo._transformer import RmsNorm


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = RmsNorm(128), nn.Linear(128, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x))


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Normed(), (torch.randn(48, 128),)
