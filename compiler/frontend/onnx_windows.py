"""Operators of ONNX that move a window over spatial dims, convolutions and poolings. Importing this adds them.

ONNX pads each side by itself, or as much as a size of the result needs (`auto_pad`); PyTorch both sides alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from penstock.compiler.frontend.onnx_operators import (
    Call,
    Inputs,
    NotTranslatableError,
    operator,
    text_of,
    torch_pads,
)

_CONVOLUTIONS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSED = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}
_MAXIMA = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}
_AVERAGES: dict[int, Callable[..., Tensor]] = {
    1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d
}  # fmt: skip


@dataclass(frozen=True)
class SlidingWindows:
    """How windows lie over the spatial dims: their sizes, and how much is padded before and after."""

    window: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    after: list[int]
    counts: list[int]
    """Of windows along each dim."""

    @property
    def alike(self) -> bool:
        """Whether PyTorch pads so, and no window hangs over the end."""
        small = all(2 * b <= k for b, k in zip(self.before, self.window, strict=True))
        return self.before == self.after and small

    def missing(self, sizes: list[int]) -> list[int]:
        """What is padded (or, below 0, cut off) behind each dim, so that exactly these windows fit."""
        return [
            (n - 1) * s + d * (k - 1) + 1 - b - size
            for n, s, d, k, b, size in zip(
                self.counts, self.strides, self.dilations, self.window, self.before, sizes, strict=True
            )
        ]


def windows_of(call: Call, x: Tensor, window: list[int]) -> SlidingWindows:
    sizes, spatial = list(x.shape[2:]), x.dim() - 2
    if spatial not in _CONVOLUTIONS:
        raise NotTranslatableError(f"{spatial} spatial dims")
    _check_places(call)
    strides, dilations = call.get("strides", [1] * spatial), call.get("dilations", [1] * spatial)
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, window, strict=True)]
    pads, up = call.get("pads", [0] * (2 * spatial)), bool(call.get("ceil_mode", 0))
    before, after = list(pads[:spatial]), list(pads[spatial:])
    auto = text_of(call.get("auto_pad", "NOTSET"))
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        totals = [max((-(-n // s) - 1) * s + r - n, 0) for n, s, r in zip(sizes, strides, reach, strict=True)]
        smaller, larger = [t // 2 for t in totals], [t - t // 2 for t in totals]
        before, after = (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
    elif auto == "VALID":
        before = after = [0] * spatial
    counts = [_count(n + b + a - r, s, n + b, up)
              for n, b, a, r, s in zip(sizes, before, after, reach, strides, strict=True)]  # fmt: skip
    return SlidingWindows(window, list(strides), list(dilations), before, after, counts)


def _count(room: int, stride: int, first_outside: int, up: bool) -> int:
    """Windows that fit; with `up` one more that hangs over the end, if it begins before it."""
    count = (-(-room // stride) if up else room // stride) + 1
    return count - 1 if up and (count - 1) * stride >= first_outside else count


def _check_places(call: Call) -> None:
    """ONNX' checker takes any numbers here, and what PyTorch says of them names no node."""
    least = {"strides": 1, "dilations": 1, "kernel_shape": 1, "pads": 0, "group": 1}
    for name, smallest in least.items():
        given: Any = call.get(name, smallest)
        if min([given] if isinstance(given, int) else given, default=smallest) < smallest:
            raise ValueError(f"{name} of {given}, which are at least {smallest}")


def _groups(call: Call, x: Tensor, weights: Tensor, *, transposed: bool = False) -> int:
    """Into how many groups channels fall: of a frame that lies channels first, as weights and groups say."""
    groups, channels = call.get("group", 1), x.shape[1]
    wanted = weights.shape[0] if transposed else weights.shape[1] * groups
    if channels != wanted:
        last = f"; its last dim has {wanted}: ONNX has channels first (NCHW)" if x.shape[-1] == wanted else ""
        raise ValueError(f"weights of {groups} groups for {wanted} channels, and a frame of {channels} in dim 1{last}")
    if channels % groups or weights.shape[0] % groups:
        raise ValueError(f"group={groups} divides not both {channels} channels and {weights.shape[0]} of the weights")
    return groups


@operator("Conv")
def _conv(call: Call, x: Inputs) -> Tensor:
    groups = _groups(call, x[0], x[1])
    found = windows_of(call, x[0], list(x[1].shape[2:]))
    values, padding = x[0], found.before
    if found.before != found.after:
        values, padding = functional.pad(values, torch_pads(found.before, found.after)), [0] * len(padding)
    bias = x[2] if len(x) > 2 else None
    function: Any = _CONVOLUTIONS[x[0].dim() - 2]
    return function(values, x[1], bias, found.strides, padding, found.dilations, groups)


@operator("ConvTranspose")
def _conv_transpose(call: Call, x: Inputs) -> Tensor:
    spatial = x[0].dim() - 2
    if spatial not in _TRANSPOSED:
        raise NotTranslatableError(f"{spatial} spatial dims")
    _check_places(call)
    strides, dilations = call.get("strides", [1] * spatial), call.get("dilations", [1] * spatial)
    more, pads = list(call.get("output_padding", [0] * spatial)), call.get("pads", [0] * (2 * spatial))
    before, after = list(pads[:spatial]), list(pads[spatial:])
    sizes, auto = list(x[0].shape[2:]), text_of(call.get("auto_pad", "NOTSET"))
    wanted = call.get("output_shape")
    if wanted is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = [n * s for n, s in zip(sizes, strides, strict=True)]
    if wanted is not None:
        whole = [s * (n - 1) + m + d * (k - 1) + 1
                 for s, n, m, d, k in zip(strides, sizes, more, dilations, x[1].shape[2:], strict=True)]  # fmt: skip
        totals = [w - n for w, n in zip(whole, list(wanted)[-spatial:], strict=True)]
        if any(t < 0 for t in totals):
            more = [m + max(-t, 0) for m, t in zip(more, totals, strict=True)]
            totals = [max(t, 0) for t in totals]
        smaller, larger = [t // 2 for t in totals], [t - t // 2 for t in totals]
        before, after = (smaller, larger) if auto == "SAME_UPPER" else (larger, smaller)
    groups = _groups(call, x[0], x[1], transposed=True)
    bias, function = (x[2] if len(x) > 2 else None), _TRANSPOSED[spatial]
    possible = all(m < max(s, d) for m, s, d in zip(more, strides, dilations, strict=True))
    if before == after and possible:
        return function(x[0], x[1], bias, strides, before, more, groups, dilations)
    y = function(x[0], x[1], None, strides, 0, 0, groups, dilations)
    y = functional.pad(y, torch_pads([-b for b in before], [m - a for m, a in zip(more, after, strict=True)]))
    return y if bias is None else y + bias.reshape([-1] + [1] * spatial)


@operator("MaxPool")
def _max_pool(call: Call, x: Inputs) -> Tensor:
    if call.results > 1:
        raise NotTranslatableError("its indices as a result")
    found = windows_of(call, x[0], list(call.get("kernel_shape")))
    function: Any = _MAXIMA[x[0].dim() - 2]
    if found.alike and not call.get("ceil_mode", 0):
        return function(x[0], found.window, found.strides, found.before, found.dilations)
    ends = found.missing(list(x[0].shape[2:]))
    padded = functional.pad(x[0], torch_pads(found.before, ends), value=torch.finfo(torch.float32).min)
    return function(padded, found.window, found.strides, 0, found.dilations)


@operator("AveragePool")
def _average_pool(call: Call, x: Inputs) -> Tensor:
    found = windows_of(call, x[0], list(call.get("kernel_shape")))
    padding_counts = bool(call.get("count_include_pad", 0))
    function = _AVERAGES[x[0].dim() - 2]
    if found.alike and not call.get("ceil_mode", 0) and set(found.dilations) == {1}:
        return function(x[0], found.window, found.strides, found.before, count_include_pad=padding_counts)
    counted = torch.ones(x[0].shape[2:], device=x[0].device)[None, None]
    starts = found.before
    if padding_counts:
        counted = functional.pad(counted, torch_pads(found.before, found.after), value=1.0)
        starts = [0] * len(starts)
    missing = [size - have for size, have in zip(_whole(found), counted.shape[2:], strict=True)]
    counted = functional.pad(counted, torch_pads(starts, [m - s for m, s in zip(missing, starts, strict=True)]))
    shares = function(counted, found.window, found.strides)
    return _padded_average(found, x[0], function) * (1.0 / shares)


@operator("LpPool")
def _lp_pool(call: Call, x: Inputs) -> Tensor:
    found, power = windows_of(call, x[0], list(call.get("kernel_shape"))), call.get("p", 2)
    powers = torch.pow(torch.abs(x[0]), power)
    total = _padded_average(found, powers, _AVERAGES[x[0].dim() - 2]) * float(math.prod(found.window))
    return torch.pow(total, 1.0 / power)


def _whole(found: SlidingWindows) -> list[int]:
    """How far the windows reach along each dim."""
    return [(n - 1) * s + k for n, s, k in zip(found.counts, found.strides, found.window, strict=True)]


def _padded_average(found: SlidingWindows, x: Tensor, function: Callable[..., Tensor]) -> Tensor:
    """Over whole windows, whatever of them lies in the padding."""
    if set(found.dilations) != {1}:
        raise NotTranslatableError(f"dilations={found.dilations!r}")
    ends = found.missing(list(x.shape[2:]))
    return function(functional.pad(x, torch_pads(found.before, ends)), found.window, found.strides)


@operator("GlobalAveragePool")
def _global_average(call: Call, x: Inputs) -> Tensor:
    return torch.mean(x[0], list(range(2, x[0].dim())), True)


@operator("GlobalMaxPool")
def _global_max(call: Call, x: Inputs) -> Tensor:
    return torch.amax(x[0], list(range(2, x[0].dim())), True)


@operator("GlobalLpPool")
def _global_lp(call: Call, x: Inputs) -> Tensor:
    power = call.get("p", 2)
    total = torch.sum(torch.pow(torch.abs(x[0]), power), list(range(2, x[0].dim())), True)
    return torch.pow(total, 1.0 / power)


@operator("LRN")
def _local_response(call: Call, x: Inputs) -> Tensor:
    """Each channel by its neighbours' squares: more of them behind it where their number is even."""
    size = call.get("size")
    squares = (x[0] * x[0]).reshape(x[0].shape[0], 1, x[0].shape[1], -1)
    around = functional.pad(squares, [0, 0, (size - 1) // 2, size // 2])
    mean = functional.avg_pool2d(around, [size, 1], 1).reshape(x[0].shape)
    return x[0] / torch.pow(call.get("bias", 1.0) + call.get("alpha", 1e-4) * mean, call.get("beta", 0.75))


@operator("DepthToSpace")
def _depth_to_space(call: Call, x: Inputs) -> Tensor:
    size, (batch, channels, height, width) = call.get("blocksize"), x[0].shape
    kept = channels // size**2
    if _depth_first(call):
        blocks = x[0].reshape(batch, size, size, kept, height, width).permute(0, 3, 4, 1, 5, 2)
    else:
        blocks = x[0].reshape(batch, kept, size, size, height, width).permute(0, 1, 4, 2, 5, 3)
    return blocks.reshape(batch, kept, height * size, width * size)


@operator("SpaceToDepth")
def _space_to_depth(call: Call, x: Inputs) -> Tensor:
    size, (batch, channels, height, width) = call.get("blocksize"), x[0].shape
    blocks = x[0].reshape(batch, channels, height // size, size, width // size, size)
    blocks = blocks.permute(0, 3, 5, 1, 2, 4) if _depth_first(call) else blocks.permute(0, 1, 3, 5, 2, 4)
    return blocks.reshape(batch, channels * size**2, height // size, width // size)


def _depth_first(call: Call) -> bool:
    """Whether the places within a block come before the channels, or behind them."""
    mode = text_of(call.get("mode", "DCR"))
    if mode not in ("DCR", "CRD"):
        raise NotTranslatableError(f"mode={mode!r}")
    return mode == "DCR"
