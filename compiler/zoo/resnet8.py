"""ResNet-8 for small colour frames, as MLPerf Tiny has it: three stages of one residual block each."""

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
    module = ResNet(small_stem(width), width, block, width, (1, 1, 1), max(outputs, 1))
    return seeded("zoo:resnet8", module, sizes, (batch, 3, side, side), seed)
