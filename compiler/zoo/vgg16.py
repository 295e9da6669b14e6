"""VGG-16 (Simonyan and Zisserman, 2014): thirteen convolutions of 3 x 3 in five stages, three dense layers."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded

_STAGES = ((1, 2), (2, 2), (4, 3), (8, 3), (8, 3))
"""Channels as multiples of the first stage's, and how many convolutions."""


def build(
    batch: int = 1, side: int = 224, channels: int = 64, dense: int = 4096, outputs: int = 1000, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first stage has `channels`, the hidden dense layers are `dense` wide."""
    sizes = {"batch": batch, "channels": channels, "dense": dense, "outputs": outputs, "side": side - 31}
    if min(sizes.values()) < 1:
        return seeded("zoo:vgg16", nn.Identity(), sizes, (1,), seed)
    layers: list[nn.Module] = []
    width = 3
    for multiple, convolutions in _STAGES:
        for _ in range(convolutions):
            layers += [nn.Conv2d(width, multiple * channels, 3, padding=1), nn.ReLU()]
            width = multiple * channels
        layers.append(nn.MaxPool2d(2))
    layers.append(nn.Flatten())
    for inputs, results in pairwise((width * (side // 32) ** 2, dense, dense, outputs)):
        layers += [nn.Linear(inputs, results), nn.ReLU()]
    return seeded("zoo:vgg16", nn.Sequential(*layers[:-1]), sizes, (batch, 3, side, side), seed)
