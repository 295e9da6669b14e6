"""Windows that overlap, where there is no line buffer for them: unfold and fold, and transposed convolutions.

A transposed convolution is one of a frame with zeros between its elements, with the weights turned around.
"""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from penstock.compiler.frontend.rearrangements import narrow

aten = torch.ops.aten
_LONGEST_KERNEL = 64
"""Each place of a window becomes a slice of its own."""


def overlapping() -> dict[Any, Callable[..., Any]]:
    return {aten.im2col.default: _unfold, aten.col2im.default: _fold}


def _unfold(x: torch.Tensor, window: list[int], dilation: list[int], padding: list[int], stride: list[int]) -> Any:
    """For each place within the window what all windows have there."""
    if window[0] * window[1] > _LONGEST_KERNEL or x.dim() not in (3, 4):
        return NotImplemented
    given = x if x.dim() == 4 else aten.unsqueeze.default(x, 0)
    padded = _padded(given, [padding[0], padding[0]], [padding[1], padding[1]])
    rows, columns = ((padded.shape[2 + i] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1 for i in range(2))
    batch, channels = padded.shape[:2]
    parts = [
        aten.reshape.default(_every(_every(padded, 2, i * dilation[0], rows, stride[0]), 3, j * dilation[1], columns,
                                    stride[1]), [batch, channels, 1, rows * columns])
        for i in range(window[0]) for j in range(window[1])
    ]  # fmt: skip
    joined = aten.cat.default(parts, 2) if len(parts) > 1 else parts[0]
    y = aten.reshape.default(joined, [batch, channels * len(parts), rows * columns])
    return y if x.dim() == 4 else aten.squeeze.dim(y, 0)


def _fold(
    x: torch.Tensor, size: list[int], window: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Any:
    """The sum of what each place within the window brings, laid where it belongs."""
    if window[0] * window[1] > _LONGEST_KERNEL or x.dim() not in (2, 3):
        return NotImplemented
    given = x if x.dim() == 3 else aten.unsqueeze.default(x, 0)
    whole = [size[i] + 2 * padding[i] for i in range(2)]
    rows, columns = ((whole[i] - dilation[i] * (window[i] - 1) - 1) // stride[i] + 1 for i in range(2))
    batch, area = given.shape[0], window[0] * window[1]
    frames = aten.reshape.default(given, [batch, given.shape[1] // area, area, rows, columns])
    total = None
    for place in range(area):
        i, j = divmod(place, window[1])
        part = aten.reshape.default(narrow(frames, 2, place, place + 1), [batch, -1, rows, columns])
        part = spread(spread(part, 2, stride[0]), 3, stride[1])
        first = i * dilation[0], j * dilation[1]
        part = _padded(part, [first[0], whole[0] - first[0] - part.shape[2]],
                       [first[1], whole[1] - first[1] - part.shape[3]])  # fmt: skip
        total = part if total is None else aten.add.Tensor(total, part)
    assert total is not None
    for i in range(2):
        if padding[i]:
            total = narrow(total, 2 + i, padding[i], padding[i] + size[i])
    y = aten.clone.default(total)
    return y if x.dim() == 3 else aten.squeeze.dim(y, 0)


def transposed(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], output_padding: Sequence[int], groups: int,
) -> torch.Tensor:  # fmt: skip
    """As a convolution of the elements with zeros between them; the weights become [out, in, ...], turned around."""
    spatial = x.dim() - 2
    amounts: list[int] = []
    for i in range(spatial):
        x = spread(x, 2 + i, stride[i])
        reach = dilation[i] * (weight.shape[2 + i] - 1)
        amounts = [reach - padding[i], reach - padding[i] + output_padding[i], *amounts]
    if any(amounts):
        x = aten.constant_pad_nd.default(x, amounts, 0.0)
    inside, outside = weight.shape[0], weight.shape[1]
    kernel = aten.reshape.default(weight, [groups, inside // groups, outside, *weight.shape[2:]])
    kernel = aten.reshape.default(aten.transpose.int(kernel, 1, 2),
                                  [groups * outside, inside // groups, *weight.shape[2:]])  # fmt: skip
    kernel = aten.flip.default(kernel, list(range(2, kernel.dim())))
    nothing = [0] * spatial
    return aten.convolution.default(x, kernel, bias, [1] * spatial, nothing, list(dilation), False, nothing, groups)


def spread(x: torch.Tensor, dim: int, step: int) -> torch.Tensor:
    """With `step - 1` zeros between any two elements."""
    size = x.shape[dim]
    if step == 1 or size == 1:
        return x
    apart = aten.unsqueeze.default(x, dim + 1)
    shape = [*x.shape[: dim + 1], step - 1, *x.shape[dim + 1 :]]
    zeros = aten.full.default(shape, 0.0, dtype=x.dtype, device=x.device)
    flat = aten.reshape.default(aten.cat.default([apart, zeros], dim + 1),
                                [*x.shape[:dim], size * step, *x.shape[dim + 1 :]])  # fmt: skip
    return narrow(flat, dim, 0, (size - 1) * step + 1)


def _every(x: torch.Tensor, dim: int, first: int, count: int, step: int) -> torch.Tensor:
    return aten.slice.Tensor(x, dim, first, first + (count - 1) * step + 1, step)


def _padded(x: torch.Tensor, rows: list[int], columns: list[int]) -> torch.Tensor:
    return aten.constant_pad_nd.default(x, [*columns, *rows], 0.0) if any(rows) or any(columns) else x
