"""Convolutions and poolings whose windows do not overlap, as reshapes and products: patch embeddings and the like."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import torch

from penstock.compiler.frontend.overlapping import transposed as spread_and_convolve
from penstock.compiler.frontend.rearrangements import narrow
from penstock.compiler.frontend.resampling import nearest

aten = torch.ops.aten


def convolutions() -> dict[Any, Callable[..., Any]]:
    return {
        aten.convolution.default: _convolution,
        aten.avg_pool1d.default: _average,
        aten.avg_pool2d.default: _average,
        aten.avg_pool3d.default: _average,
        aten.upsample_nearest1d.default: _nearest,
        aten.upsample_nearest2d.default: _nearest,
        aten.upsample_nearest3d.default: _nearest,
        aten.upsample_nearest1d.vec: _nearest_by_factors,
        aten.upsample_nearest2d.vec: _nearest_by_factors,
        aten.upsample_nearest3d.vec: _nearest_by_factors,
    }


def _convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int],
    dilation: list[int], transposed: bool, output_padding: list[int], groups: int,
) -> Any:  # fmt: skip
    window = list(weight.shape[2:])
    apart = list(stride) == window and (max(dilation) == 1 or max(window) == 1)
    plain = apart and not any(padding) and not any(output_padding)
    if transposed and not (plain and groups == 1):
        return spread_and_convolve(x, weight, bias, stride, padding, dilation, output_padding, groups)
    if not plain:
        return NotImplemented
    return _unpatched(x, weight, bias) if transposed else _patched(x, weight, bias, groups)


def _patched(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, groups: int) -> torch.Tensor:
    """Each window is a row of its channels' elements, and meets the weights in one product."""
    window, spatial = list(weight.shape[2:]), list(range(2, x.dim()))
    patches, counts = _windows(x, window)
    batch, channels = x.shape[0], x.shape[1]
    depth = len(spatial)
    outer, inner = [2 + 2 * i for i in range(depth)], [3 + 2 * i for i in range(depth)]
    rows = aten.permute.default(patches, [0, *outer, 1, *inner])
    size = channels * math.prod(window)
    rows = aten.reshape.default(rows, [batch * math.prod(counts), size])
    rows = _product(rows, aten.reshape.default(weight, [weight.shape[0], size // groups]), bias, groups)
    y = aten.reshape.default(rows, [batch, *counts, weight.shape[0]])
    return aten.permute.default(y, [0, depth + 1, *range(1, depth + 1)])


def _unpatched(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """Each element becomes a window of its own: one product, and its columns laid beside one another."""
    window, depth = list(weight.shape[2:]), x.dim() - 2
    batch, channels, counts = x.shape[0], x.shape[1], list(x.shape[2:])
    rows = aten.reshape.default(aten.permute.default(x, [0, *range(2, x.dim()), 1]), [-1, channels])
    made, area = weight.shape[1], math.prod(window)
    columns = aten.reshape.default(aten.permute.default(weight, [1, *range(2, x.dim()), 0]), [made * area, channels])
    if bias is not None:
        bias = aten.reshape.default(aten.expand.default(aten.unsqueeze.default(bias, 1), [made, area]), [-1])
    rows = _product(rows, columns, bias, 1)
    y = aten.reshape.default(rows, [batch, *counts, made, *window])
    pairs = [place for i in range(depth) for place in (1 + i, depth + 2 + i)]
    y = aten.permute.default(y, [0, depth + 1, *pairs])
    return aten.reshape.default(y, [batch, made, *(n * k for n, k in zip(counts, window, strict=True))])


def _product(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, groups: int) -> torch.Tensor:
    """`rows` times the transposed weights; with groups each on its own columns."""
    if groups == 1:
        return aten.linear.default(rows, weight, bias)
    count, size = rows.shape[0], weight.shape[1]
    per_group = aten.permute.default(aten.reshape.default(rows, [count, groups, size]), [1, 0, 2])
    kernels = aten.permute.default(aten.reshape.default(weight, [groups, -1, size]), [0, 2, 1])
    made = aten.permute.default(aten.bmm.default(per_group, kernels), [1, 0, 2])
    y = aten.reshape.default(made, [count, weight.shape[0]])
    return y if bias is None else aten.add.Tensor(y, bias)


def _windows(x: torch.Tensor, window: Sequence[int]) -> tuple[torch.Tensor, list[int]]:
    """Every spatial dim as (windows, places within one); what is left over at the end is cut off."""
    first = x.dim() - len(window)
    counts = [x.shape[first + i] // k for i, k in enumerate(window)]
    for i, (n, k) in enumerate(zip(counts, window, strict=True)):
        if n * k != x.shape[first + i]:
            x = narrow(x, first + i, 0, n * k)
    pairs = [size for n, k in zip(counts, window, strict=True) for size in (n, k)]
    return aten.reshape.default(x, [*x.shape[:first], *pairs]), counts


def _average(
    x: torch.Tensor, window: list[int], stride: list[int] | None = None, padding: Sequence[int] = (0,),
    ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: int | None = None,
) -> Any:  # fmt: skip
    """Windows side by side are reshapes and sums. Past an edge there are zeros, and numbers say how much is counted."""
    depth = len(window)
    step, beyond = list(stride or window), list(padding) * (depth if len(padding) == 1 else 1)
    first = x.dim() - depth
    lines = [
        _windows_of_line(*line, ceil_mode, count_include_pad)
        for line in zip(x.shape[first:], window, step, beyond, strict=True)
    ]
    amounts = [(before, after) for before, after, _ in lines]
    shares = [[k / n for n in counts] for k, (_, _, counts) in zip(window, lines, strict=True)]
    if any(map(any, amounts)) or divisor_override is not None or any(s != 1 for share in shares for s in share):
        padded = aten.constant_pad_nd.default(x, [n for pair in reversed(amounts) for n in pair])
        y = _POOLS[depth](padded, window, step)
        if divisor_override is not None:
            return aten.mul.Tensor(y, math.prod(window) / divisor_override)
        return _times_of_places(y, shares)
    if step != list(window):
        return NotImplemented
    patches, _ = _windows(x, window)
    inner = [first + 1 + 2 * i for i in range(depth)]
    return aten.mul.Tensor(aten.sum.dim_IntList(patches, inner), 1.0 / math.prod(window))


_POOLS = {1: aten.avg_pool1d.default, 2: aten.avg_pool2d.default, 3: aten.avg_pool3d.default}


def _windows_of_line(
    size: int, window: int, stride: int, padding: int, ceil_mode: bool, with_padding: bool
) -> tuple[int, int, list[int]]:
    """Along one dim: zeros before and behind it, and of how many elements each window is the average."""
    left = size + 2 * padding - window
    made = (-(-left // stride) if ceil_mode else left // stride) + 1
    if ceil_mode and (made - 1) * stride >= size + padding:
        made -= 1  # none begins behind the last element
    starts = [i * stride - padding for i in range(made)]
    ends = [min(start + window, size + padding) for start in starts]
    if not with_padding:
        starts, ends = [max(start, 0) for start in starts], [min(end, size) for end in ends]
    behind = max((made - 1) * stride + window - padding - size, 0)
    return padding, behind, [end - start for start, end in zip(starts, ends, strict=True)]


def _times_of_places(y: torch.Tensor, factors: list[list[float]]) -> torch.Tensor:
    """Times a number for each place along each of the last dims."""
    for dim, along in enumerate(factors, start=y.dim() - len(factors)):
        if any(factor != 1 for factor in along):
            runs = [(factor, len(list(same))) for factor, same in groupby(along)]
            parts = [aten.full.default([n], factor, dtype=y.dtype, device=y.device) for factor, n in runs]
            joined = aten.cat.default(parts, 0) if len(parts) > 1 else parts[0]
            y = aten.mul.Tensor(y, aten.reshape.default(joined, [-1] + [1] * (y.dim() - 1 - dim)))
    return y


def _nearest(x: torch.Tensor, output_size: Sequence[int], *scales: float | None) -> Any:
    """Each element so many times side by side, where that comes out even."""
    first = x.dim() - len(output_size)
    old = list(x.shape[first:])
    if any(new % size for new, size in zip(output_size, old, strict=True)):
        return nearest(x, output_size, scales)
    times = [new // size for new, size in zip(output_size, old, strict=True)]
    apart = [size for n in old for size in (n, 1)]
    beside = [size for n, k in zip(old, times, strict=True) for size in (n, k)]
    lead = list(x.shape[:first])
    repeated = aten.expand.default(aten.reshape.default(x, [*lead, *apart]), [*lead, *beside])
    return aten.reshape.default(aten.clone.default(repeated), [*lead, *output_size])


def _nearest_by_factors(
    x: torch.Tensor, output_size: Sequence[int] | None, scale_factors: Sequence[float] | None
) -> Any:
    if output_size is None:
        assert scale_factors is not None
        sizes = x.shape[x.dim() - len(scale_factors) :]
        output_size = [math.floor(size * factor) for size, factor in zip(sizes, scale_factors, strict=True)]
    return _nearest(x, output_size, *(scale_factors or ()))
