"""What the models in plain PyTorch share: numbers that are the same each time, and a multilayer perceptron."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

Model = tuple[nn.Module, tuple[torch.Tensor, ...]]


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def fixed(module: nn.Module) -> nn.Module:
    """With the same weights each time."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                bound = parameter[0].numel() ** -0.5
                parameter.copy_(torch.rand(parameter.shape, generator=generator) * 2 * bound - bound)
    return module.eval()


def mlp(*widths: int, act: type[nn.Module] = nn.ReLU, norm: bool = False) -> nn.Sequential:
    layers: list[nn.Module] = []
    for here, there in pairwise(widths):
        layers += [nn.Linear(here, there), *([nn.BatchNorm1d(there)] if norm else []), act()]
    return nn.Sequential(*layers[:-1])
