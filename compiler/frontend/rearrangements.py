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
        aten.as_strided_scatter.default: _written_as_it_lies,
        aten.diagonal.default: _diagonal,
        aten.index_put.default: _written_by_mask,
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
) -> torch.Tensor:
    """What stands before it, the new part, what stands behind it; with steps, each new element and what it skips."""
    dim = dim % x.dim()
    size, around = x.shape[dim], (x.shape[:dim], x.shape[dim + 1 :])
    first, last, _ = slice(start, None if end is None or end == sys.maxsize else end).indices(size)
    count = max(-(-(last - first) // step), 0)
    new = aten.expand.default(new, [*around[0], count, *around[1]])
    parts = [narrow(x, dim, 0, first)] if first else []
    groups = min(count, (size - first) // step)
    if step > 1 and groups:
        old = aten.reshape.default(
            narrow(x, dim, first, first + groups * step), [*around[0], groups, step, *around[1]]
        )  # fmt: skip
        fresh = aten.reshape.default(narrow(new, dim, 0, groups), [*around[0], groups, 1, *around[1]])
        whole = aten.cat.default([fresh, narrow(old, dim + 1, 1, step)], dim + 1)
        parts.append(aten.reshape.default(whole, [*around[0], groups * step, *around[1]]))
        new, first, count = narrow(new, dim, groups, count), first + groups * step, count - groups
    parts += [new] if count else []
    behind = first + count
    parts += [narrow(x, dim, behind, size)] if behind < size else []
    return aten.cat.default(parts, dim) if len(parts) > 1 else aten.clone.default(parts[0])


def _diagonal(x: torch.Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> torch.Tensor:
    """Of rows that lie behind one another it is every element that is one more than a row away."""
    last = [dim % x.dim() for dim in (dim1, dim2)]
    others = [dim for dim in range(x.dim()) if dim not in last]
    x = aten.permute.default(x, [*others, *last])
    rows, width = x.shape[-2:]
    start, count = (offset, min(rows, width - offset)) if offset >= 0 else (-offset * width, min(rows + offset, width))
    flat = aten.reshape.default(x, [*x.shape[:-2], rows * width])
    return aten.slice.Tensor(flat, x.dim() - 2, start, start + (count - 1) * (width + 1) + 1, width + 1)


def _written_by_mask(x: torch.Tensor, indices: list[Any], values: torch.Tensor, accumulate: bool = False) -> Any:
    """`x[x < 0] = 0` is a choice for each element; other writes go to places, of which only some may be known."""
    mask = indices[0]
    if len(indices) != 1 or mask is None or mask.dtype != torch.bool or values.numel() != 1 or accumulate:
        return NotImplemented
    mask = aten.reshape.default(mask, [*mask.shape, *[1] * (x.dim() - mask.dim())])
    return aten.where.self(mask, aten.expand.default(aten.reshape.default(values, []), list(x.shape)), x)


def _as_it_lies(x: torch.Tensor, size: list[int], stride: list[int], storage_offset: int | None = None) -> Any:
    """The tensor itself, where only dims of one element get other strides: as pooling leaves it, channels last.

    Or a row of elements that lie at equal distances, such as a diagonal.
    """
    if _is_row(x, size, stride, storage_offset):
        return _row(aten.slice.Tensor, aten.reshape.default(x, [-1]), (), size[0], stride[0], storage_offset or 0)
    same = list(size) == list(x.shape) and not (storage_offset or 0)
    if not same or any(n > 1 and old != new for n, old, new in zip(size, x.stride(), stride, strict=True)):
        return NotImplemented
    return aten.clone.default(x)


def _written_as_it_lies(
    x: torch.Tensor, new: torch.Tensor, size: list[int], stride: list[int], storage_offset: int | None = None
) -> Any:
    """As `fill_diagonal_` writes."""
    if not _is_row(x, size, stride, storage_offset):
        return NotImplemented
    flat = _row(_written_slice, aten.reshape.default(x, [-1]), (new,), size[0], stride[0], storage_offset or 0)
    return aten.reshape.default(flat, list(x.shape))


def _is_row(x: torch.Tensor, size: list[int], stride: list[int], first: int | None) -> bool:
    """Whether it is a row of elements of `x` itself, which lie one behind another from the start of its memory."""
    if len(size) != 1 or size[0] < 1 or stride[0] < 1 or not x.is_contiguous() or x.storage_offset():
        return False
    return (first or 0) + (size[0] - 1) * stride[0] < x.numel()


def _row(
    move: Callable[..., Any], flat: torch.Tensor, new: tuple[torch.Tensor, ...], count: int, step: int, first: int
) -> Any:
    """Of elements that lie one behind another, `count` at equal distances: read, or written with new ones."""
    return move(flat, *new, 0, first, first + (count - 1) * step + 1, step)


def _cat_without_empty(tensors: list[torch.Tensor], dim: int = 0) -> Any:
    """Joining nothing with a tensor leaves the tensor."""
    left = [x for x in tensors if x.numel()]
    if not left or len(left) == len(tensors):
        return NotImplemented
    return aten.cat.default(left, dim) if len(left) > 1 else aten.clone.default(left[0])
