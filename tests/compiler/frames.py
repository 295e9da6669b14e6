"""Small models on frames: every kind of window that a layer of PyTorch slides over one."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.program import Program


class Calls(nn.Module):
    """A function of a frame and of some layers."""

    def __init__(self, function: Callable[..., torch.Tensor], *layers: nn.Module) -> None:
        super().__init__()
        self.function, self.layers = function, nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.layers)


def _residual(x: torch.Tensor, first: nn.Module, second: nn.Module) -> torch.Tensor:
    return F.relu(second(F.relu(first(x))) + x)


def _branches(x: torch.Tensor, first: nn.Module, second: nn.Module) -> torch.Tensor:
    return torch.cat([first(x), second(x)], 1)


def _channels_last(x: torch.Tensor, pool: nn.Module) -> torch.Tensor:
    return torch.flatten(pool(x.contiguous(memory_format=torch.channels_last)), 1)


def _squeeze(x: torch.Tensor, body: nn.Module, down: nn.Module, up: nn.Module) -> torch.Tensor:
    y = body(x)
    return y * torch.sigmoid(up(F.relu(down(y.mean((2, 3), keepdim=True)))))


def _enlarged(x: torch.Tensor, down: nn.Module, up: nn.Module) -> torch.Tensor:
    y = F.relu(x)
    return up(torch.cat([F.interpolate(F.relu(down(y)), scale_factor=2), y], 1))


FRAMES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "stride": (lambda: nn.Conv2d(3, 4, 3, 2, 1), (1, 3, 9, 9)),
    "stride on an odd frame": (lambda: nn.Conv2d(2, 3, (3, 2), stride=(2, 1)), (1, 2, 7, 5)),
    "dilation": (lambda: nn.Conv2d(2, 4, 3, dilation=2, padding=2), (1, 2, 8, 8)),
    "1 x 1": (lambda: nn.Conv2d(4, 6, 1), (1, 4, 5, 5)),
    "1 x 1 with stride": (lambda: nn.Conv2d(4, 6, 1, stride=2), (1, 4, 7, 7)),
    "the whole frame": (lambda: nn.Conv2d(2, 3, 5), (1, 2, 5, 5)),
    "a frame of one pixel": (lambda: nn.Conv2d(2, 3, 3, padding=1), (1, 2, 1, 1)),
    "depthwise": (lambda: nn.Conv2d(4, 4, 3, groups=4, padding=1), (1, 4, 6, 6)),
    "depthwise, twice the channels": (lambda: nn.Conv2d(4, 8, 3, groups=4, padding=1), (1, 4, 6, 6)),
    "groups": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3, groups=2, padding=1)), (1, 2, 7, 7),
    ),
    "enlarged and joined": (
        lambda: Calls(_enlarged, nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(8, 2, 3, padding=1)), (1, 4, 8, 12),
    ),
    "pixels from channels": (
        lambda: nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(2, 3, 3)), (1, 2, 4, 5),
    ),
    "shuffled channels": (
        lambda: nn.Sequential(
            nn.Conv2d(4, 8, 1, groups=4), nn.ChannelShuffle(4), nn.Conv2d(8, 8, 3, padding=1, groups=8),
            nn.Conv2d(8, 8, 1, groups=4),
        ), (1, 4, 5, 6),
    ),
    "1-D": (lambda: nn.Conv1d(3, 5, 4, stride=2), (1, 3, 11)),
    "3-D": (lambda: nn.Conv3d(2, 3, (2, 3, 3), padding=1), (1, 2, 3, 4, 4)),
    "long rows": (lambda: nn.Conv2d(1, 2, 3, stride=(1, 2), padding=1), (1, 1, 4, 136)),
    "two frames": (lambda: nn.Conv2d(2, 3, 3, padding=1), (2, 2, 5, 5)),
    "largest": (lambda: nn.MaxPool2d(2), (1, 3, 6, 6)),
    "largest, overlapping": (lambda: nn.MaxPool2d(3, 2, 1), (1, 3, 7, 7)),
    "average, overlapping": (lambda: nn.AvgPool2d(3, 2, 1), (1, 3, 7, 7)),
    "adaptive": (lambda: nn.AdaptiveAvgPool2d(3), (1, 2, 7, 7)),
    "global": (lambda: nn.AdaptiveAvgPool2d(1), (1, 3, 6, 6)),
    "global, channels last": (lambda: Calls(_channels_last, nn.AdaptiveAvgPool2d(1)), (1, 6, 3, 3)),
    "batch norms": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU6(), nn.Conv2d(3, 3, 3)),
        (1, 2, 6, 6),
    ),
    "residual": (lambda: Calls(_residual, nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)), (1, 3, 6, 6)),
    "branches": (lambda: Calls(_branches, nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(2, 5, 1)), (1, 2, 6, 6)),
    "squeeze and excite": (
        lambda: Calls(_squeeze, nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 2, 1), nn.Conv2d(2, 4, 1)), (1, 3, 6, 6),
    ),
    "nearest upsampling": (
        lambda: nn.Sequential(nn.Conv2d(2, 3, 3), nn.Upsample(scale_factor=2), nn.Conv2d(3, 2, 3)), (1, 2, 5, 5),
    ),
    "into dense": (
        lambda: nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, 4)),
        (1, 1, 8, 8),
    ),
}  # fmt: skip


def imported(layer: nn.Module, shape: tuple[int, ...], name: str = "frames") -> Program:
    """A model as a user's would be imported."""
    torch.manual_seed(0)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    example = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    return import_loaded(LoadedModel(name, f"{name}.py:model", layer.eval(), (example,)))
