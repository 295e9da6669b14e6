"""ResNet-50 (He et al., 2016): four stages of three, four, six and three bottlenecks."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded
from penstock.compiler.zoo._residual import ResNet, bottleneck, large_stem


def build(
    batch: int = 1, side: int = 224, channels: int = 64, outputs: int = 1000, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """Bottlenecks of the first stage are `channels` wide, and give four times as many."""
    sizes = {"batch": batch, "channels": channels, "outputs": outputs, "side": side - 31}
    width = max(channels, 1)
    module = ResNet(large_stem(width), width, bottleneck, 4 * width, (3, 4, 6, 3), max(outputs, 1))
    return seeded("zoo:resnet50", module, sizes, (batch, 3, side, side), seed)
