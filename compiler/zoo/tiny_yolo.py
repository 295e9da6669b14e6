"""Tiny YOLO, the second version (Redmon and Farhadi, 2016): a backbone of seven convolutions, a head of two.

The result is what the head says of each cell: boxes, whether there is a thing, and which. Decoding boxes is the host's.
"""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded
from penstock.compiler.zoo._residual import normed


def build(
    batch: int = 1, side: int = 416, channels: int = 16, boxes: int = 5, classes: int = 20, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first layer has `channels`, each further one twice as many; a cell of the result is 32 pixels wide."""
    sizes = {"batch": batch, "channels": channels, "boxes": boxes, "classes": classes, "side": side - 31}
    first = max(channels, 1)
    layers: list[nn.Module] = []
    for stage in range(6):
        layers += [normed(first << (stage - 1) if stage else 3, first << stage, 3), nn.LeakyReLU(0.1)]
        # The last pooling keeps its frame; one of stride 1 and padding on both sides stands for darknet's.
        layers.append(nn.MaxPool2d(2) if stage < 5 else nn.MaxPool2d(3, 1, 1))
    last = first << 6
    layers += [normed(last // 2, last, 3), nn.LeakyReLU(0.1), normed(last, last, 3), nn.LeakyReLU(0.1)]
    module = nn.Sequential(*layers, nn.Conv2d(last, max(boxes, 1) * (5 + max(classes, 1)), 1))
    return seeded("zoo:tiny_yolo", module, sizes, (batch, 3, side, side), seed)
