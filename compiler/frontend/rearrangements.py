"""Moves of data that have no form of their own downstream, as plain slices, concatenations and reshapes."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
_LONGEST_REVERSAL = 128
"""Each element along a dim that is reversed becomes a slice of its own."""


def rearrangements() -> dict[Any, Callable[..., Any]]:
    return {
        aten.flip.default: _flip,
        aten.roll.default: _roll,
        aten.constant_pad_nd.default: _pad,
        aten.slice.Tensor: _slice_with_steps,
        aten.slice_scatter.default: _written_slice,
        aten.empty.memory_format: _zeros,
        aten.zeros_like.default: _filled(0),
        aten.ones_like.default: _filled(1),
        aten.empty_like.default: _filled(0),
        aten.full_like.default: _full_like,
        aten.cat.default: _cat_without_empty,
        aten.as_strided.default: _as_it_lies,
        aten.view.default: lambda x, size: _number_as(x, len(size)),
        aten.unsqueeze.default: lambda x, dim: _number_as(x, 1),
    }


def narrow(x: torch.Tensor, dim: int, start: int, end: int) -> torch.Tensor:
    return aten.slice.Tensor(x, dim, start, end)


def _number_as(x: torch.Tensor, dims: int) -> Any:
    """A tensor of one number without dims gets some by being repeated once: xDSL knows no reshape from no dims."""
    return NotImplemented if x.dim() or not dims else aten.expand.default(x, [1] * dims)


def _flip(x: torch.Tensor, dims: list[int]) -> Any:
    for dim in dims:
        size = x.shape[dim]
        if size > _LONGEST_REVERSAL:
            return NotImplemented
        if size > 1:
            x = aten.cat.default([narrow(x, dim, i, i + 1) for i in reversed(range(size))], dim)
    return aten.clone.default(x)


def _roll(x: torch.Tensor, shifts: list[int], dims: list[int] | None = None) -> torch.Tensor:
    if not dims:
        return aten.view.default(_roll(aten.reshape.default(x, [-1]), shifts, [0]), list(x.shape))
    for shift, dim in zip(shifts, dims, strict=True):
        size = x.shape[dim]
        if size and shift % size:
            cut = size - shift % size
            x = aten.cat.default([narrow(x, dim, cut, size), narrow(x, dim, 0, cut)], dim)
    return aten.clone.default(x)


def _pad(x: torch.Tensor, amounts: list[int], value: float = 0) -> torch.Tensor:
    """What is added is joined with the rest; amounts come in pairs from the last dim on, and less than 0 cuts."""
    for place in range(len(amounts) // 2):
        dim, (before, after) = x.dim() - 1 - place, amounts[2 * place : 2 * place + 2]
        start, end = max(-before, 0), x.shape[dim] - max(-after, 0)
        parts = [x if (start, end) == (0, x.shape[dim]) else narrow(x, dim, start, end)]
        for amount, at in ((before, 0), (after, 2)):
            if amount > 0:
                shape = [*x.shape[:dim], amount, *x.shape[dim + 1 :]]
                parts.insert(at, aten.full.default(shape, value, dtype=x.dtype, device=x.device))
        x = aten.cat.default(parts, dim) if len(parts) > 1 else parts[0]
    return aten.clone.default(x)


def _slice_with_steps(
    x: torch.Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """Every `step`-th element: the first of each group of `step`, which is a reshape and a slice."""
    if step == 1:
        return NotImplemented
    dim = dim % x.dim()
    size = x.shape[dim]
    first, last, _ = slice(start, None if end is None or end == sys.maxsize else end).indices(size)
    count = max(-(-(last - first) // step), 0)
    whole = min(count, (size - first) // step)
    parts: list[torch.Tensor] = []
    if whole:
        groups = narrow(x, dim, first, first + whole * step)
        groups = aten.reshape.default(groups, [*x.shape[:dim], whole, step, *x.shape[dim + 1 :]])
        parts.append(aten.reshape.default(narrow(groups, dim + 1, 0, 1), [*x.shape[:dim], whole, *x.shape[dim + 1 :]]))
    if count > whole:  # the last group is not complete
        at = first + whole * step
        parts.append(narrow(x, dim, at, at + 1))
    return aten.cat.default(parts, dim) if len(parts) > 1 else parts[0] if parts else NotImplemented


def _zeros(size: list[int], *, dtype: torch.dtype | None = None, device: Any = None, **_: Any) -> torch.Tensor:
    """What a model means to write over has no numbers yet, so that zeros will do."""
    return aten.full.default(size, 0, dtype=dtype or torch.get_default_dtype(), device=device)


def _filled(value: int) -> Callable[..., torch.Tensor]:
    def filled(x: torch.Tensor, **options: Any) -> torch.Tensor:
        return _full_like(x, value, **options)

    return filled


def _full_like(x: torch.Tensor, value: Any, *, dtype: torch.dtype | None = None, **_: Any) -> torch.Tensor:
    """Takes no more of a tensor than its shape, and so depends on nothing."""
    return aten.full.default(list(x.shape), value, dtype=dtype or x.dtype, device=x.device)


def _written_slice(
    x: torch.Tensor, new: torch.Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    """What stands before it, the new part, what stands behind it."""
    if step != 1:
        return NotImplemented
    dim = dim % x.dim()
    size = x.shape[dim]
    first, last, _ = slice(start, None if end is None or end == sys.maxsize else end).indices(size)
    parts = [narrow(x, dim, 0, first)] if first else []
    parts += [aten.expand.default(new, [*x.shape[:dim], last - first, *x.shape[dim + 1 :]])]
    parts += [narrow(x, dim, last, size)] if last < size else []
    return aten.cat.default(parts, dim) if len(parts) > 1 else aten.clone.default(parts[0])


def _as_it_lies(x: torch.Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> Any:
    """The tensor itself, where only dims of one element get other strides: as pooling leaves it, channels last."""
    same = list(size) == list(x.shape) and not (storage_offset or 0)
    if not same or any(n > 1 and old != new for n, old, new in zip(size, x.stride(), stride, strict=True)):
        return NotImplemented
    return aten.clone.default(x)


def _cat_without_empty(tensors: list[torch.Tensor], dim: int = 0) -> Any:
    """Joining nothing with a tensor leaves the tensor."""
    left = [x for x in tensors if x.numel()]
    if not left or len(left) == len(tensors):
        return NotImplemented
    return aten.cat.default(left, dim) if len(left) > 1 else aten.clone.default(left[0])
