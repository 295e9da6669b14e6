"""Reductions and short scans by what the accelerator has: sums, maxima and products of matrices."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
_LONGEST_SUMS = 512
"""Running sums are a product with a triangle of ones: as many products as the square of the length."""
_LONGEST_PRODUCTS = 64
"""Products along a dim are written out."""


def reductions() -> dict[Any, Callable[..., Any]]:
    return {
        aten.amin.default: _amin,
        aten.max.default: lambda x: NotImplemented if _is_float(x) else aten.amax.default(x),
        aten.min.default: lambda x: aten.neg.default(aten.max.default(aten.neg.default(x))),
        aten.min.dim: _min,
        aten.argmin.default: lambda x, dim=None, keepdim=False: aten.argmax.default(aten.neg.default(x), dim, keepdim),
        aten.prod.default: lambda x, dtype=None: _product(aten.reshape.default(x, [-1]), 0),
        aten.prod.dim_int: _product,
        aten.cumsum.default: _running_sums,
        aten.cumprod.default: _running_products,
        aten._cdist_forward.default: _distances,
        aten.any.default: _any,
        aten.any.dim: _any,
        aten.any.dims: _any,
        aten.all.default: _all,
        aten.all.dim: _all,
        aten.all.dims: _all,
    }


def _is_float(x: torch.Tensor) -> bool:
    return x.dtype == torch.float32


def _amin(x: torch.Tensor, dims: list[int] | None = None, keepdim: bool = False) -> Any:
    return aten.neg.default(aten.amax.default(aten.neg.default(x), dims or [], keepdim))


def _any(x: torch.Tensor, dims: int | list[int] | None = None, keepdim: bool = False) -> Any:
    """A maximum of zeros and ones; numbers that are no float stay for the host."""
    if x.dtype != torch.bool:
        return _any(aten.ne.Scalar(x, 0), dims, keepdim) if _is_float(x) else NotImplemented
    ones = aten._to_copy.default(x, dtype=torch.float32)
    along = [dims] if isinstance(dims, int) else list(dims) if dims else list(range(x.dim()))
    return aten.gt.Scalar(aten.amax.default(ones, along, keepdim), 0.5)


def _all(x: torch.Tensor, dims: int | list[int] | None = None, keepdim: bool = False) -> Any:
    if x.dtype != torch.bool and not _is_float(x):
        return NotImplemented
    missing = aten.logical_not.default(x) if x.dtype == torch.bool else aten.eq.Scalar(x, 0)
    return aten.logical_not.default(_any(missing, dims, keepdim))


def _min(x: torch.Tensor, dim: int, keepdim: bool = False) -> Any:
    if not _is_float(x):
        return NotImplemented
    values, places = aten.max.dim(aten.neg.default(x), dim, keepdim)
    return aten.neg.default(values), places


def _product(x: torch.Tensor, dim: int, keepdim: bool = False, dtype: torch.dtype | None = None) -> Any:
    """By halves: the first half times the second, until one is left."""
    if not _is_float(x) or x.shape[dim] > _LONGEST_PRODUCTS:
        return NotImplemented
    dim = dim % x.dim()
    while (size := x.shape[dim]) > 1:
        half = size // 2
        y = aten.mul.Tensor(aten.slice.Tensor(x, dim, 0, half), aten.slice.Tensor(x, dim, half, 2 * half))
        x = y if size % 2 == 0 else aten.cat.default([y, aten.slice.Tensor(x, dim, size - 1, size)], dim)
    return aten.clone.default(x) if keepdim else aten.squeeze.dim(x, dim)


def _running_sums(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    if not _is_float(x) or dtype not in (None, torch.float32) or x.dim() == 0:
        return NotImplemented
    size = x.shape[dim]
    if size > _LONGEST_SUMS:
        return NotImplemented
    ones = aten.full.default([size, size], 1.0, dtype=x.dtype, device=x.device)
    along = aten.transpose.int(x, dim, -1)
    rows = aten.reshape.default(along, [-1, size])
    sums = aten.mm.default(rows, aten.triu.default(ones))
    return aten.transpose.int(aten.reshape.default(sums, list(along.shape)), dim, -1)


def _running_products(x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Any:
    if not _is_float(x) or x.dim() == 0 or x.shape[dim] > _LONGEST_PRODUCTS:
        return NotImplemented
    parts = [aten.slice.Tensor(x, dim, i, i + 1) for i in range(x.shape[dim])]
    for i in range(1, len(parts)):
        parts[i] = aten.mul.Tensor(parts[i - 1], parts[i])
    return aten.cat.default(parts, dim)


def _distances(x: torch.Tensor, y: torch.Tensor, p: float, compute_mode: int | None) -> Any:
    """Between every row of x and every row of y."""
    apart = aten.sub.Tensor(aten.unsqueeze.default(x, -2), aten.unsqueeze.default(y, -3))
    if p == 2:
        return aten.sqrt.default(aten.sum.dim_IntList(aten.mul.Tensor(apart, apart), [-1]))
    if p == 1:
        return aten.sum.dim_IntList(aten.abs.default(apart), [-1])
    return aten.amax.default(aten.abs.default(apart), [-1]) if p == math.inf else NotImplemented
