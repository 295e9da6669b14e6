"""MobileNetV2 (Sandler et al., 2018): inverted residual blocks, wide where they are depthwise."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import Mean, seeded
from penstock.compiler.zoo._residual import normed

_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""How much wider within, channels, blocks, and the stride of the first."""


def build(
    batch: int = 1, side: int = 224, divide: int = 1, outputs: int = 1000, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """All channels are divided by `divide`."""
    sizes = {"batch": batch, "divide": divide, "16 / divide": 16 // max(divide, 1), "side": side - 31}
    sizes["outputs"] = outputs

    def channels(full: int) -> int:
        return max(full // max(divide, 1), 1)

    width = channels(32)
    layers: list[nn.Module] = [normed(3, width, 3, 2), nn.ReLU6()]
    for wider, full, blocks, stride in _STAGES:
        for number in range(blocks):
            layers.append(InvertedBlock(width, channels(full), wider, 1 if number else stride))
            width = channels(full)
    last = channels(1280)
    module = nn.Sequential(*layers, normed(width, last, 1), nn.ReLU6(), Mean(), nn.Linear(last, max(outputs, 1)))
    return seeded("zoo:mobilenet_v2", module, sizes, (batch, 3, side, side), seed)


class InvertedBlock(nn.Module):
    """Wider, depthwise, narrow again; beside itself where the shape stays."""

    def __init__(self, inputs: int, outputs: int, wider: int, stride: int) -> None:
        super().__init__()
        wide = wider * inputs
        widen = [normed(inputs, wide, 1), nn.ReLU6()] if wider > 1 else []
        self.body = nn.Sequential(*widen, normed(wide, wide, 3, stride, wide), nn.ReLU6(), normed(wide, outputs, 1))
        self.same = inputs == outputs and stride == 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.same else self.body(x)
