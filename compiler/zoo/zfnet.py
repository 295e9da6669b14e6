"""ZFNet (Zeiler and Fergus, 2013): five convolutions, the first of 7 x 7, and three dense layers."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded


def build(
    batch: int = 1, side: int = 224, channels: int = 96, dense: int = 4096, outputs: int = 1000, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first layer has `channels`; those behind it a multiple of a third of that."""
    third = channels // 3
    sizes = {"batch": batch, "channels / 3": third, "dense": dense, "outputs": outputs, "side": side - 62}
    if min(sizes.values()) < 1:
        return seeded("zoo:zfnet", nn.Identity(), sizes, (1,), seed)
    body = nn.Sequential(
        nn.Conv2d(3, channels, 7, 2, 1), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(channels, 8 * third, 5, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(8 * third, 12 * third, 3, padding=1), nn.ReLU(),
        nn.Conv2d(12 * third, 12 * third, 3, padding=1), nn.ReLU(),
        nn.Conv2d(12 * third, 8 * third, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2), nn.Flatten(),
    )  # fmt: skip
    features = body(torch.zeros(1, 3, side, side)).shape[1]
    head = nn.Sequential(
        nn.Linear(features, dense), nn.ReLU(), nn.Linear(dense, dense), nn.ReLU(), nn.Linear(dense, outputs)
    )
    return seeded("zoo:zfnet", nn.Sequential(*body, *head), sizes, (batch, 3, side, side), seed)
