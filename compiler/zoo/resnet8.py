"""ResNet-8 for small colour frames, as MLPerf Tiny has it: three stages of one residual block each."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded


def build(
    batch: int = 1, side: int = 32, channels: int = 16, outputs: int = 10, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first stage has `channels`, each further one twice as many on a quarter of the places."""
    sizes = {"batch": batch, "channels": channels, "outputs": outputs, "side": side - 3}
    return seeded("zoo:resnet8", ResNet8(max(channels, 1), outputs), sizes, (batch, 3, side, side), seed)


class ResNet8(nn.Module):
    """A convolution, three blocks, the average of each channel, a dense layer."""

    def __init__(self, channels: int, outputs: int) -> None:
        super().__init__()
        self.stem = _convolution(3, channels, 3)
        widths = [channels, channels, 2 * channels, 4 * channels]
        self.blocks = nn.Sequential(*(Block(m, n, 1 if m == n else 2) for m, n in pairwise(widths)))
        self.head = nn.Linear(widths[-1], outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.blocks(torch.relu(self.stem(x)))
        return self.head(x.mean((2, 3)))


class Block(nn.Module):
    """Two convolutions beside a shortcut, which is a 1 x 1 convolution where the shape changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = _convolution(inputs, outputs, 3, stride)
        self.second = _convolution(outputs, outputs, 3)
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else _convolution(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.second(torch.relu(self.first(x))) + self.shortcut(x))


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(outputs)
    )
