"""MobileNet (Howard et al., 2017): thirteen pairs of a depthwise convolution and one of 1 x 1."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import Mean, seeded
from penstock.compiler.zoo._residual import normed

_PAIRS = ((2, 1), (4, 2), (4, 1), (8, 2), (8, 1), (16, 2), *[(16, 1)] * 5, (32, 2), (32, 1))
"""Channels as multiples of the stem's, and strides."""


def build(
    batch: int = 1, side: int = 224, channels: int = 32, outputs: int = 1000, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The stem has `channels`."""
    sizes = {"batch": batch, "channels": channels, "outputs": outputs, "side": side - 31}
    width = max(channels, 1)
    layers: list[nn.Module] = [normed(3, width, 3, 2), nn.ReLU()]
    for multiple, stride in _PAIRS:
        wider = multiple * max(channels, 1)
        layers += [normed(width, width, 3, stride, width), nn.ReLU(), normed(width, wider, 1), nn.ReLU()]
        width = wider
    module = nn.Sequential(*layers, Mean(), nn.Linear(width, max(outputs, 1)))
    return seeded("zoo:mobilenet_v1", module, sizes, (batch, 3, side, side), seed)
