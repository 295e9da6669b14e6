"""ResNet-18 (He et al., 2016): four stages of two residual blocks each."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded
from penstock.compiler.zoo._residual import ResNet, block, large_stem


def build(
    batch: int = 1, side: int = 224, channels: int = 64, outputs: int = 1000, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first stage has `channels`, each further one twice as many on a quarter of the places."""
    sizes = {"batch": batch, "channels": channels, "outputs": outputs, "side": side - 31}
    width = max(channels, 1)
    module = ResNet(large_stem(width), width, block, width, (2, 2, 2, 2), max(outputs, 1))
    return seeded("zoo:resnet18", module, sizes, (batch, 3, side, side), seed)
