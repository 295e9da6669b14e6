"""A small U-Net (Ronneberger et al., 2015): down by pooling, up by repeating pixels, joined at each size."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded
from penstock.compiler.zoo._residual import normed

_MOST_LEVELS = 31
"""No side can be halved as often: options are numbers of 31 bits."""


def build(
    batch: int = 1, side: int = 64, channels: int = 16, depth: int = 2, outputs: int = 2, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """`depth` times half as large; the largest size has `channels`, each smaller one twice as many."""
    fits = 0 < depth < _MOST_LEVELS and side % (1 << depth) == 0
    sizes = {"batch": batch, "channels": channels, "outputs": outputs, "side": side if fits else 0}
    if min(sizes.values()) < 1:
        return seeded("zoo:unet", nn.Identity(), sizes, (1,), seed)
    return seeded("zoo:unet", UNet(channels, depth, outputs), sizes, (batch, 1, side, side), seed)


class UNet(nn.Module):
    """`depth` levels around the smallest one."""

    def __init__(self, channels: int, depth: int, outputs: int) -> None:
        super().__init__()
        widths = [channels << level for level in range(depth + 1)]
        self.down = nn.ModuleList(_twice(widths[n - 1] if n else 1, width) for n, width in enumerate(widths))
        self.up = nn.ModuleList(_twice(3 * width, width) for width in widths[:-1])
        self.pool, self.larger = nn.MaxPool2d(2), nn.Upsample(scale_factor=2)
        self.head = nn.Conv2d(channels, outputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        beside: list[torch.Tensor] = []
        for level, layer in enumerate(self.down):
            x = layer(self.pool(x) if level else x)
            beside.append(x)
        for layer, earlier in zip(reversed(self.up), reversed(beside[:-1]), strict=True):
            x = layer(torch.cat([earlier, self.larger(x)], 1))
        return self.head(x)


def _twice(inputs: int, outputs: int) -> nn.Module:
    return nn.Sequential(normed(inputs, outputs, 3), nn.ReLU(), normed(outputs, outputs, 3), nn.ReLU())
