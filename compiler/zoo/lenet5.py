"""LeNet-5 (LeCun et al., 1998) as it is built today: two convolutions with ReLU and pooling, three dense layers."""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded


def build(batch: int = 1, side: int = 28, outputs: int = 10, seed: int = 0) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """On grey frames of `side` x `side`."""
    rest = (side // 2 - 4) // 2
    module = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(16 * max(rest, 1) ** 2, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, outputs),
    )  # fmt: skip
    sizes = {"batch": batch, "outputs": outputs, "side": side - 11}
    return seeded("zoo:lenet5", module, sizes, (batch, 1, side, side), seed)
