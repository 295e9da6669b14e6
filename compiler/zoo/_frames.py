"""What the models on frames have in common: seeded numbers, and sizes that fit."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from penstock.compiler.errors import PenstockError


def seeded(
    where: str, module: nn.Module, sizes: Mapping[str, int], shape: tuple[int, ...], seed: int
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The model with random weights that keep numbers in range, and a random frame."""
    if min(sizes.values()) < 1:
        raise PenstockError(
            code="bad-option", what="a size is too small: " + ", ".join(f"{k}={v}" for k, v in sizes.items()),
            where=where, limit="every size is a whole number of at least 1, and a frame holds all windows",
            hint="leave the option out",
        )  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1:
                bound = (3 / parameter[0].numel()) ** 0.5
                parameter.uniform_(-bound, bound, generator=generator)
        frame = torch.randn(shape, generator=generator)
        for part in module.modules():
            bias = getattr(part, "bias", None)
            if isinstance(part, nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d) and bias is not None:
                bound = part.weight[0].numel() ** -0.5  # PyTorch draws it from a generator of its own
                bias.uniform_(-bound, bound, generator=generator)
    return module.eval(), (frame,)


class Mean(nn.Module):
    """The average of each channel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))
