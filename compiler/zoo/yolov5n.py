"""YOLOv5n (Ultralytics, version 6, 2021): a backbone of split stages, a neck that goes up and down again, three heads.

The results are what the heads say of each cell, of 8, 16 and 32 pixels: boxes, whether there is a thing, and which.
Decoding boxes is the host's.
"""

from __future__ import annotations

import torch
from torch import nn

from penstock.compiler.zoo._frames import seeded
from penstock.compiler.zoo._residual import normed


def build(
    batch: int = 1, side: int = 640, channels: int = 16, boxes: int = 3, classes: int = 80, seed: int = 0
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """The first layer has `channels`; those of the published model are 16."""
    fits = side % 32 == 0 and channels % 2 == 0
    sizes = {"batch": batch, "channels": channels, "boxes": boxes, "classes": classes, "side": side if fits else 0}
    if min(sizes.values()) < 1:
        return seeded("zoo:yolov5n", nn.Identity(), sizes, (1,), seed)
    return seeded("zoo:yolov5n", Yolo(channels, boxes * (5 + classes)), sizes, (batch, 3, side, side), seed)


def _layer(inputs: int, outputs: int, size: int = 1, stride: int = 1) -> nn.Module:
    return nn.Sequential(normed(inputs, outputs, size, stride), nn.SiLU())


class Bottleneck(nn.Module):
    """1 x 1, 3 x 3, and beside itself in the backbone."""

    def __init__(self, width: int, beside: bool) -> None:
        super().__init__()
        self.body, self.beside = nn.Sequential(_layer(width, width), _layer(width, width, 3)), beside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.body(x) if self.beside else self.body(x)


class HalfThrough(nn.Module):
    """Half of the channels through bottlenecks, half past them."""

    def __init__(self, inputs: int, outputs: int, depth: int, beside: bool) -> None:
        super().__init__()
        half = outputs // 2
        deep = (Bottleneck(half, beside) for _ in range(depth))
        self.through, self.past = nn.Sequential(_layer(inputs, half), *deep), _layer(inputs, half)
        self.joined = _layer(2 * half, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.joined(torch.cat([self.through(x), self.past(x)], 1))


class Pyramid(nn.Module):
    """Maxima over ever larger windows, side by side."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.narrow, self.wide, self.pool = _layer(width, width // 2), _layer(2 * width, width), nn.MaxPool2d(5, 1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [self.narrow(x)]
        for _ in range(3):
            found.append(self.pool(found[-1]))
        return self.wide(torch.cat(found, 1))


class Yolo(nn.Module):
    """Frames of which 32 divides the sides."""

    def __init__(self, first: int, outputs: int) -> None:
        super().__init__()
        a, b, c, d, e = (first << level for level in range(5))
        self.stem = nn.Sequential(nn.Conv2d(3, a, 6, 2, 2, bias=False), nn.BatchNorm2d(a), nn.SiLU())
        self.eighth = nn.Sequential(
            _layer(a, b, 3, 2), HalfThrough(b, b, 1, True), _layer(b, c, 3, 2), HalfThrough(c, c, 2, True)
        )  # fmt: skip
        self.sixteenth = nn.Sequential(_layer(c, d, 3, 2), HalfThrough(d, d, 3, True))
        self.last = nn.Sequential(_layer(d, e, 3, 2), HalfThrough(e, e, 1, True), Pyramid(e), _layer(e, d))
        self.larger = nn.Upsample(scale_factor=2)
        self.up = nn.Sequential(HalfThrough(2 * d, d, 1, False), _layer(d, c))
        self.top = HalfThrough(2 * c, c, 1, False)
        self.down, self.middle = _layer(c, c, 3, 2), HalfThrough(2 * c, d, 1, False)
        self.further, self.bottom = _layer(d, d, 3, 2), HalfThrough(2 * d, e, 1, False)
        self.heads = nn.ModuleList(nn.Conv2d(width, outputs, 1) for width in (c, d, e))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        eighth = self.eighth(self.stem(x))
        sixteenth = self.sixteenth(eighth)
        last = self.last(sixteenth)
        up = self.up(torch.cat([self.larger(last), sixteenth], 1))
        top = self.top(torch.cat([self.larger(up), eighth], 1))
        middle = self.middle(torch.cat([self.down(top), up], 1))
        bottom = self.bottom(torch.cat([self.further(middle), last], 1))
        return tuple(head(found) for head, found in zip(self.heads, (top, middle, bottom), strict=True))
