"""ResNet-20 for small colour frames (He et al., 2016): three stages of three residual blocks each."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded
from penstock.compiler.zoo._residual import ResNet, block, small_stem


def build(
    batch: int = 1, side: int = 32, channels: int = 16, outputs: int = 10, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first stage has `channels`, each further one twice as many on a quarter of the places."""
    sizes = {"batch": batch, "channels": channels, "outputs": outputs, "side": side - 3}
    width = max(channels, 1)
    module = ResNet(small_stem(width), width, block, width, (3, 3, 3), max(outputs, 1))
    return seeded("zoo:resnet20", module, sizes, (batch, 3, side, side), seed)
