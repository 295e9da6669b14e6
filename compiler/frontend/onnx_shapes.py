"""ONNX operators that move data: reshapes, slices, joins, look-ups. Importing this adds them to the table."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from penstock.compiler.frontend.onnx_operators import (
    TORCH_TYPES,
    Call,
    Inputs,
    NotTranslatableError,
    axis_of,
    operator,
    text_of,
    torch_pads,
)

_MOST_PARTS = 64
"""Of a result that is put together from scattered entries."""


@operator("Reshape", static=(1,))
def _reshape(call: Call, x: Inputs) -> Tensor:
    wanted = call.ints(1) or []
    if not call.get("allowzero", 0):
        wanted = [x[0].shape[i] if size == 0 else size for i, size in enumerate(wanted)]
    return x[0].reshape(wanted)


@operator("Flatten")
def _flatten(call: Call, x: Inputs) -> Tensor:
    axis = axis_of(call.get("axis", 1), x[0])
    return x[0].reshape(int(np.prod(x[0].shape[:axis], dtype=np.int64)), -1)


@operator("Transpose")
def _transpose(call: Call, x: Inputs) -> Tensor:
    return x[0].permute(call.get("perm", list(reversed(range(x[0].dim())))))


@operator("Squeeze", static=(1,))
def _squeeze(call: Call, x: Inputs) -> Tensor:
    axes = call.axes(1)
    kept = {axis_of(a, x[0]) for a in axes} if axes is not None else set(range(x[0].dim()))
    return x[0].reshape([size for i, size in enumerate(x[0].shape) if i not in kept or size != 1])


@operator("Unsqueeze", static=(1,))
def _unsqueeze(call: Call, x: Inputs) -> Tensor:
    axes = call.axes(1) or []
    result, rank = x[0], x[0].dim() + len(axes)
    for axis in sorted(a + rank if a < 0 else a for a in axes):
        result = result.unsqueeze(axis)
    return result


@operator("Concat")
def _concat(call: Call, x: Inputs) -> Tensor:
    return torch.cat(list(x), call.get("axis"))


@operator("Split", static=(1,))
def _split(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    axis, sizes = axis_of(call.get("axis", 0), x[0]), call.ints(1) or call.get("split")
    if sizes is None:
        size = -(-x[0].shape[axis] // call.get("num_outputs", call.results))
        return torch.split(x[0], size, axis)
    return torch.split(x[0], list(sizes), axis)


@operator("Slice", static=(1, 2, 3, 4))
def _slice(call: Call, x: Inputs) -> Tensor:
    starts, ends = call.ints(1) or [], call.ints(2) or []
    axes = call.ints(3) or list(range(len(starts)))
    result = x[0]
    for start, end, axis, step in zip(starts, ends, axes, call.ints(4) or [1] * len(starts), strict=True):
        size = result.shape[axis]
        if step < 1:
            result = _backwards(result, axis, range(size)[start:end:step] if step else range(0))
            continue
        first, last = (min(max(i + size if i < 0 else i, 0), size) for i in (start, end))
        if step > 1 or last <= first:
            result = result[(slice(None),) * axis_of(axis, result) + (slice(first, last, step),)]
        elif last - first < size:
            result = result.narrow(axis, first, last - first)
    return result


def _backwards(x: Tensor, axis: int, places: range) -> Tensor:
    if not places:
        raise NotTranslatableError("nothing that is left")
    turned = torch.flip(x.narrow(axis, places[-1], places[0] - places[-1] + 1), [axis])
    return turned[(slice(None),) * axis_of(axis, turned) + (slice(None, None, -places.step),)]


@operator("Expand", static=(1,))
def _expand(call: Call, x: Inputs) -> Tensor:
    return x[0].expand(np.broadcast_shapes(tuple(x[0].shape), tuple(call.ints(1) or [])))


@operator("Tile", static=(1,))
def _tile(call: Call, x: Inputs) -> Tensor:
    return x[0].repeat(call.ints(1) or [])


@operator("Pad", static=(1, 2, 3))
def _pad(call: Call, x: Inputs) -> Tensor:
    pads, rank, mode = call.ints(1) or [], x[0].dim(), text_of(call.get("mode", "constant"))
    before, after = [0] * rank, [0] * rank
    axes = call.ints(3) if 3 in call.constants else list(range(rank))
    for place, axis in enumerate(axes or []):
        before[axis_of(axis, x[0])], after[axis_of(axis, x[0])] = pads[place], pads[place + len(axes or [])]
    if mode == "constant":
        return functional.pad(x[0], torch_pads(before, after), value=call.scalar(2) or 0)
    y = functional.pad(x[0], torch_pads([min(b, 0) for b in before], [min(a, 0) for a in after]))
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        if first > 0 or last > 0:
            y = _continued(y, axis, max(first, 0), max(last, 0), mode)
    return y


def _continued(x: Tensor, axis: int, before: int, after: int, mode: str) -> Tensor:
    """Padded with what stands in the tensor itself: its edge, its mirror image, or its other end."""
    size = x.shape[axis]
    if mode not in ("edge", "reflect", "wrap") or (mode != "edge" and max(before, after) > size - (mode == "reflect")):
        raise NotTranslatableError(f"mode={mode!r} by {max(before, after)} of {size}")

    def part(count: int, edge: int, mirrored: int, wrapped: int) -> list[Tensor]:
        if not count:
            return []
        if mode == "edge":
            shape = [count if dim == axis else -1 for dim in range(x.dim())]
            return [x.narrow(axis, edge, 1).expand(shape)]
        taken = x.narrow(axis, mirrored if mode == "reflect" else wrapped, count)
        return [torch.flip(taken, [axis]) if mode == "reflect" else taken]

    return torch.cat([*part(before, 0, 1, size - before), x, *part(after, size - 1, size - 1 - after, 0)], axis)


@operator("Gather")
def _gather(call: Call, x: Inputs) -> Tensor:
    axis, indices = axis_of(call.get("axis", 0), x[0]), call.constants.get(1)
    if indices is None:
        return _look_up(x[0], axis, x[1])
    size = x[0].shape[axis]
    numbers = [int(i) + size if i < 0 else int(i) for i in np.ravel(indices)]
    if any(not 0 <= i < size for i in numbers):
        raise NotTranslatableError(f"indices outside of 0 to {size - 1}")
    if indices.ndim == 0:
        return x[0].select(axis, numbers[0])
    if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
        taken = x[0].narrow(axis, numbers[0], len(numbers))
    elif len(numbers) > _MOST_PARTS:
        raise NotTranslatableError(f"{len(numbers)} indices that do not follow one another")
    else:
        taken = torch.cat([x[0].narrow(axis, i, 1) for i in numbers], axis)
    return taken.reshape([*x[0].shape[:axis], *indices.shape, *x[0].shape[axis + 1 :]])


def _look_up(table: Tensor, axis: int, indices: Tensor) -> Tensor:
    """ONNX lets indices count from the end."""
    if axis == 0 and table.dim() == 2:
        return functional.embedding(torch.where(indices < 0, indices + table.shape[0], indices), table)
    shape = [*table.shape[:axis], *indices.shape, *table.shape[axis + 1 :]]
    wrapped = torch.where(indices < 0, indices + table.shape[axis], indices)
    return torch.index_select(table, axis, wrapped.reshape(-1)).reshape(shape)


@operator("GatherElements")
def _gather_elements(call: Call, x: Inputs) -> Tensor:
    axis = axis_of(call.get("axis", 0), x[0])
    return torch.gather(x[0], axis, torch.where(x[1] < 0, x[1] + x[0].shape[axis], x[1]))


@operator("Trilu", static=(1,))
def _triangle(call: Call, x: Inputs) -> Tensor:
    diagonal = int(call.scalar(1) or 0)
    return torch.triu(x[0], diagonal) if call.get("upper", 1) else torch.tril(x[0], diagonal)


@operator("Shape")
def _shape(call: Call, x: Inputs) -> Tensor:
    sizes = list(x[0].shape)[slice(call.get("start", 0), call.get("end"))]
    return torch.tensor(sizes, dtype=torch.int64)


@operator("Size")
def _size(call: Call, x: Inputs) -> Tensor:
    return torch.tensor(x[0].numel(), dtype=torch.int64)


@operator("Range", static=(0, 1, 2))
def _range(call: Call, x: Inputs) -> Tensor:
    start, end, step = (call.scalar(i) for i in range(3))
    if start is None or end is None or not step:
        raise NotTranslatableError("a step of 0")
    return torch.arange(start, end, step, dtype=TORCH_TYPES[call.constants[0].dtype.name])


@operator("ConstantOfShape", static=(0,))
def _constant_of_shape(call: Call, x: Inputs) -> Tensor:
    value = call.get("value")
    number = np.zeros(1, np.float32) if value is None else np.ravel(value)
    return torch.full(call.ints(0) or [], number[0].item(), dtype=TORCH_TYPES[number.dtype.name])
