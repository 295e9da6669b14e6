"""What residual networks are made of: convolutions with batch norms, blocks with shortcuts, stages of blocks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn


def normed(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution that keeps the frame but for its stride, and a batch norm that is folded into it."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    )


class Residual(nn.Module):
    """A body beside a shortcut, which is a 1 x 1 convolution where the shape changes."""

    def __init__(self, body: nn.Module, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = body
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else normed(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


BlockMaker = Callable[[int, int, int], nn.Module]


def block(inputs: int, outputs: int, stride: int) -> Residual:
    """Two convolutions of 3 x 3."""
    body = nn.Sequential(normed(inputs, outputs, 3, stride), nn.ReLU(), normed(outputs, outputs, 3))
    return Residual(body, inputs, outputs, stride)


def bottleneck(inputs: int, outputs: int, stride: int) -> Residual:
    """A convolution of 3 x 3 on a quarter of the channels, between two of 1 x 1."""
    narrow = max(outputs // 4, 1)
    body = nn.Sequential(
        normed(inputs, narrow, 1), nn.ReLU(), normed(narrow, narrow, 3, stride), nn.ReLU(), normed(narrow, outputs, 1)
    )
    return Residual(body, inputs, outputs, stride)


class ResNet(nn.Module):
    """A stem, stages of blocks that halve the frame and double the channels but the first, means, a dense layer."""

    def __init__(self, stem: nn.Module, width: int, make: BlockMaker, first: int, depths: Sequence[int], outputs: int):
        super().__init__()
        self.stem = stem
        blocks: list[nn.Module] = []
        for stage, depth in enumerate(depths):
            for number in range(depth):
                out = first << stage
                blocks.append(make(width, out, 2 if stage and not number else 1))
                width = out
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(width, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def small_stem(channels: int) -> nn.Module:
    """That of networks for frames of 32 x 32."""
    return nn.Sequential(normed(3, channels, 3), nn.ReLU())


def large_stem(channels: int) -> nn.Module:
    """That of networks for photographs: the frame is a quarter as high and wide behind it."""
    return nn.Sequential(normed(3, channels, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
