"""Convolutions and poolings whose windows do not overlap, as reshapes and products: patch embeddings and the like."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
    padding = list(padding) * (len(window) // len(padding))
    stride = list(stride) if stride else list(window)
    uneven = ceil_mode or (any(padding) and not count_include_pad)
    if uneven or (divisor_override and any(padding)):
        return _uneven_average(x, list(window), stride, padding, ceil_mode, count_include_pad, divisor_override)
    if stride != list(window) or any(padding):
        return NotImplemented
    patches, _ = _windows(x, window)
    first = x.dim() - len(window)
    inner = [first + 1 + 2 * i for i in range(len(window))]
    total = aten.sum.dim_IntList(patches, inner)
    return aten.mul.Tensor(total, 1.0 / (divisor_override or math.prod(window)))


def _uneven_average(
    x: torch.Tensor, window: list[int], stride: list[int], padding: list[int], up: bool, padding_counts: bool,
    divisor: int | None,
) -> torch.Tensor:  # fmt: skip
    """Of the frame with all zeros that its windows reach into; what of a window counts depends on its place."""
    first, amounts = x.dim() - len(window), list[int]()
    shares: list[list[int]] = []
    for i, (k, s, p) in enumerate(zip(window, stride, padding, strict=True)):
        size = x.shape[first + i]
        room = size + 2 * p - k
        count = (-(-room // s) if up else room // s) + 1
        count -= up and (count - 1) * s >= size + p  # the last window begins inside
        amounts = [p, (count - 1) * s + k - size - p, *amounts]
        end = size + p if padding_counts else size
        begin = -p if padding_counts else 0
        shares.append([min(w * s - p + k, end) - max(w * s - p, begin) for w in range(count)])
    padded = aten.constant_pad_nd.default(x, amounts, 0.0) if any(amounts) else x
    pool = {1: aten.avg_pool1d, 2: aten.avg_pool2d, 3: aten.avg_pool3d}[len(window)]
    y = pool.default(padded, window, stride)
    if divisor:
        return aten.mul.Tensor(y, math.prod(window) / divisor)
    for i, counts in enumerate(shares):
        if any(n != window[i] for n in counts):
            factors = [aten.full.default([1], window[i] / n, dtype=x.dtype, device=x.device) for n in counts]
            joined = aten.cat.default(factors, 0) if len(factors) > 1 else factors[0]
            y = aten.mul.Tensor(y, aten.reshape.default(joined, [-1] + [1] * (len(window) - 1 - i)))
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
