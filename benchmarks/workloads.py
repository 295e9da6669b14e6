"""The workloads of the published tables as PyTorch models: matrices of PolyBench, layers, a head, blocks of CNNs.

Each function returns a module and example inputs, as `penstock compile benchmarks/workloads.py:gemm` takes them.
Matrices and vectors of the PolyBench kernels come in as inputs; layers bring their weights with them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

Loaded = tuple[nn.Module, tuple[Tensor, ...]]


class Formula(nn.Module):
    """A function of its inputs that has no weights."""

    def __init__(self, function: Callable[..., Tensor | tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor | tuple[Tensor, ...]:
        return self.function(*inputs)


def gemm(rows: int = 200, columns: int = 220, depth: int = 240) -> Loaded:
    """D = 0.5 A B + 0.1 C."""
    return _formula(lambda a, b, c: 0.5 * (a @ b) + 0.1 * c, (rows, depth), (depth, columns), (rows, columns))


def two_mm(rows: int = 180, inner: int = 190, depth: int = 210, columns: int = 220) -> Loaded:
    """E = 0.5 A B C + 0.1 D."""
    return _formula(
        lambda a, b, c, d: 0.5 * ((a @ b) @ c) + 0.1 * d,
        (rows, depth), (depth, inner), (inner, columns), (rows, columns),
    )  # fmt: skip


def three_mm(rows: int = 180, left: int = 200, inner: int = 190, right: int = 220, columns: int = 210) -> Loaded:
    """G = (A B) (C D)."""
    return _formula(lambda a, b, c, d: (a @ b) @ (c @ d), (rows, left), (left, inner), (inner, right), (right, columns))


def atax(rows: int = 390, columns: int = 410) -> Loaded:
    """y = A^T (A x)."""
    return _formula(lambda a, x: (a @ x) @ a, (rows, columns), (columns,))


def bicg(rows: int = 410, columns: int = 390) -> Loaded:
    """s = r A and q = A p. A comes twice, as in Stream-HLS's C++, where each product has an array of its own."""
    return _formula(lambda a, b, r, p: (r @ a, b @ p), (rows, columns), (rows, columns), (rows,), (columns,))


def bicg_of_one_array(rows: int = 410, columns: int = 390) -> Loaded:
    """The same of one array: what is next in one order is not in the other, so that both go by blocks."""
    return _formula(lambda a, r, p: (r @ a, a @ p), (rows, columns), (rows,), (columns,))


def gesummv(size: int = 250) -> Loaded:
    """y = 1.5 A x + 1.2 B x."""
    return _formula(lambda a, b, x: 1.5 * (a @ x) + 1.2 * (b @ x), (size, size), (size, size), (size,))


def mvt(size: int = 400) -> Loaded:
    """x1 = A y1 and x2 = B^T y2."""
    return _formula(lambda a, b, y, z: (a @ y, z @ b), (size, size), (size, size), (size,), (size,))


def feed_forward(tokens: int = 512, width: int = 128, hidden: int = 256) -> Loaded:
    """Linear, ReLU, Linear."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))
    return module.eval(), (torch.randn(tokens, width),)


class SelfAttention(nn.Module):
    """Projections to queries, keys and values, heads of softmax attention, and a projection of their outputs."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        tokens, width = x.shape

        def split(values: Tensor) -> Tensor:
            return values.view(tokens, self.heads, width // self.heads).transpose(0, 1)

        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = query @ key.transpose(1, 2) * (width // self.heads) ** -0.5
        mixed = torch.softmax(scores, dim=-1) @ value
        return self.output(mixed.transpose(0, 1).reshape(tokens, width))


def self_attention(tokens: int = 64, width: int = 128, heads: int = 8) -> Loaded:
    torch.manual_seed(0)
    return SelfAttention(width, heads).eval(), (torch.randn(tokens, width),)


class ResidualPerceptron(nn.Module):
    """A layer, a layer around which its input is added again, and two more."""

    def __init__(self, width: int, hidden: int, narrow: int, classes: int) -> None:
        super().__init__()
        self.first, self.block = nn.Linear(width, hidden), nn.Linear(hidden, hidden)
        self.second, self.last = nn.Linear(hidden, narrow), nn.Linear(narrow, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = nnf.relu(self.first(x))
        x = nnf.relu(self.block(x)) + x
        return self.last(nnf.relu(self.second(x)))


def residual_mlp(batch: int = 8, width: int = 1024, hidden: int = 512, narrow: int = 256, classes: int = 10) -> Loaded:
    torch.manual_seed(0)
    return ResidualPerceptron(width, hidden, narrow, classes).eval(), (torch.randn(batch, width),)


def autoencoder(batch: int = 32, widths: tuple[int, ...] = (784, 256, 128, 64)) -> Loaded:
    """Layers that narrow and widen again, ReLU after all but the last."""
    torch.manual_seed(0)
    sizes = [*widths, *widths[-2::-1]]
    layers: list[nn.Module] = []
    for narrow, wide in pairwise(sizes):
        layers += [nn.Linear(narrow, wide), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval(), (torch.randn(batch, widths[0]),)


def depthwise_block(channels: int = 8, side: int = 112) -> Loaded:
    """A convolution of 3x3 in each channel, one of 1x1 over all of them, BatchNorm, ReLU."""
    torch.manual_seed(0)
    depthwise = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
    module = nn.Sequential(depthwise, nn.Conv2d(channels, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU())
    return module.eval(), (torch.randn(1, channels, side, side),)


class ResidualConvolutions(nn.Module):
    """Two convolutions of 3x3, each with BatchNorm, around which the input is added again."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm_first, self.norm_second = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: Tensor) -> Tensor:
        inner = nnf.relu(self.norm_first(self.first(x)))
        return nnf.relu(self.norm_second(self.second(inner)) + x)


def residual_block(channels: int = 16, side: int = 56) -> Loaded:
    torch.manual_seed(0)
    return ResidualConvolutions(channels).eval(), (torch.randn(1, channels, side, side),)


def _formula(function: Callable[..., Tensor | tuple[Tensor, ...]], *shapes: tuple[int, ...]) -> Loaded:
    torch.manual_seed(0)
    return Formula(function).eval(), tuple(torch.randn(shape) for shape in shapes)
