"""An MLP whose data takes two ways and meets again: skips around its layers, and two branches that are added.

penstock compile examples/residual_mlp.py:model --quantize w8a8 -o out/residual_mlp
"""

from __future__ import annotations

import torch
from torch import nn

WIDTH = 32


class Residual(nn.Module):
    """x + down(relu(up(x))): the skip waits in a FIFO while the layers work."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.relu(self.up(x)))


class ResidualMlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Residual(WIDTH), Residual(WIDTH))
        self.left = nn.Linear(WIDTH, 16)
        self.right = nn.Linear(WIDTH, 16)
        self.head = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(x)
        return self.head(torch.relu(self.left(x)) + torch.relu(self.right(x)))


def model() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Random weights and two rows of example inputs, the same on every run."""
    torch.manual_seed(0)
    return ResidualMlp().eval(), (torch.randn(2, WIDTH),)
