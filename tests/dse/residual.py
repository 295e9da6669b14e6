"""A residual block: what it adds its input to is made of all of this input's rows and columns."""

import torch
from torch import nn

from penstock.compiler.zoo._transformer import RmsNorm

ROWS, WIDE = 48, 384


class Residual(nn.Module):
    """Rows meet each other in the middle, as in attention: no row leaves before the last one has come."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.narrow, self.wide = RmsNorm(WIDE), nn.Linear(WIDE, 8), nn.Linear(8, WIDE)
        self.mixed = nn.Parameter(torch.eye(ROWS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.wide(self.mixed @ torch.relu(self.narrow(self.norm(x))))


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torch.manual_seed(0)
    return Residual(), (torch.randn(ROWS, WIDE),)
