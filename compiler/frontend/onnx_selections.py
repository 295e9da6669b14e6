"""ONNX operators that choose, look up, or write at places. Importing this adds them to the table.

They run on the host where the places depend on the inputs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from penstock.compiler.frontend.onnx_operators import (
    TORCH_TYPES,
    Call,
    Inputs,
    NotTranslatableError,
    axis_of,
    operator,
    text_of,
)

_TYPE_OF = {1: "float32", 6: "int32", 7: "int64", 9: "bool"}
_WRITES = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@operator("ArgMax", "ArgMin")
def _arg_extreme(call: Call, x: Inputs) -> Tensor:
    axis, last = axis_of(call.get("axis", 0), x[0]), bool(call.get("select_last_index", 0))
    function = torch.argmax if call.get("op") == "ArgMax" else torch.argmin
    found = function(torch.flip(x[0], [axis]) if last else x[0], axis, bool(call.get("keepdims", 1)))
    return x[0].shape[axis] - 1 - found if last else found


@operator("Hardmax")
def _hard_max(call: Call, x: Inputs) -> Tensor:
    axis = axis_of(call.get("axis", -1), x[0])
    best = torch.argmax(x[0], axis, True)
    return torch.eq(best, _along(torch.arange(x[0].shape[axis], device=x[0].device), axis, x[0].dim())).to(x[0].dtype)


@operator("TopK", static=(1,))
def _top_k(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    """Of equal values the one that stands before counts as larger: PyTorch's own topk leaves that open."""
    axis, count = axis_of(call.get("axis", -1), x[0]), int(call.scalar(1) or 0)
    values, indices = torch.sort(x[0], stable=True, dim=axis, descending=bool(call.get("largest", 1)))
    return values.narrow(axis, 0, count), indices.narrow(axis, 0, count)


@operator("CumSum", "CumProd", static=(1,))
def _cumulative(call: Call, x: Inputs) -> Tensor:
    axis, values = axis_of(int(call.scalar(1) or 0), x[0]), x[0]
    product = call.get("op") == "CumProd"
    backwards, size = bool(call.get("reverse", 0)), x[0].shape[axis]
    if backwards:
        values = torch.flip(values, [axis])
    if call.get("exclusive", 0):
        first = torch.full_like(values.narrow(axis, 0, 1), int(product))
        values = torch.cat([first, values.narrow(axis, 0, size - 1)], axis) if size > 1 else first
    found = torch.cumprod(values, axis) if product else torch.cumsum(values, axis)
    found = found.to(x[0].dtype)
    return torch.flip(found, [axis]) if backwards else found


@operator("OneHot", static=(1,), limit="the number of places is known at compile time")
def _one_hot(call: Call, x: Inputs) -> Tensor:
    depth, (indices, values) = int(call.scalar(1) or 0), x
    axis = call.get("axis", -1)
    axis = axis + indices.dim() + 1 if axis < 0 else axis
    places = torch.where(indices < 0, indices + depth, indices).unsqueeze(axis)
    hit = torch.eq(places, _along(torch.arange(depth, device=indices.device), axis, indices.dim() + 1))
    return torch.where(hit, values[1], values[0])


@operator("GatherND")
def _gather_nd(call: Call, x: Inputs) -> Tensor:
    data, indices, batch = x[0], x[1], call.get("batch_dims", 0)
    rows, shape = _rows(data, indices, batch)
    if batch:
        lead = math.prod(data.shape[:batch])
        size = math.prod(data.shape[batch : batch + indices.shape[-1]])
        offsets = torch.arange(lead, device=indices.device) * size
        rows = (rows.reshape(lead, -1) + offsets.reshape(-1, 1)).reshape(-1)
    depth = batch + indices.shape[-1]
    table = data.reshape([math.prod(data.shape[:depth]), *data.shape[depth:]])
    return torch.index_select(table, 0, rows.reshape(-1)).reshape([*shape, *data.shape[depth:]])


@operator("ScatterND")
def _scatter_nd(call: Call, x: Inputs) -> Tensor:
    data, indices, new = x
    depth = indices.shape[-1]
    rows, _ = _rows(data, indices, 0)
    rest = data.shape[depth:]
    table = data.reshape([math.prod(data.shape[:depth]), math.prod(rest)])
    written = _written(call, table, 0, rows.reshape(-1, 1).expand(-1, table.shape[1]),
                       new.reshape(-1, table.shape[1]))  # fmt: skip
    return written.reshape(data.shape)


@operator("ScatterElements", "Scatter")
def _scatter_elements(call: Call, x: Inputs) -> Tensor:
    axis = axis_of(call.get("axis", 0), x[0])
    places = torch.where(x[1] < 0, x[1] + x[0].shape[axis], x[1]).to(torch.int64)
    return _written(call, x[0], axis, places, x[2])


def _written(call: Call, data: Tensor, axis: int, places: Tensor, new: Tensor) -> Tensor:
    how = text_of(call.get("reduction", "none"))
    if how == "none":
        return torch.scatter(data, axis, places, new)
    return torch.scatter_reduce(data, axis, places, new, _WRITES[how], include_self=True)


def _rows(data: Tensor, indices: Tensor, batch: int) -> tuple[Tensor, list[int]]:
    """Tuples of places as one number each, and the shape that they stand in."""
    sizes = list(data.shape[batch : batch + indices.shape[-1]])
    steps = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    rows: Any = 0
    for place, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        one = indices[..., place]
        rows = rows + torch.where(one < 0, one + size, one) * step
    return rows, list(indices.shape[:-1])


@operator("ReverseSequence", static=(1,), limit="lengths of sequences are known at compile time")
def _reverse_sequence(call: Call, x: Inputs) -> Tensor:
    lengths, batch = call.ints(1) or [], call.get("batch_axis", 1)
    time: int = call.get("time_axis", 0)
    rows: list[Tensor] = []
    whole = x[0].shape[time]
    for place, length in enumerate(lengths):
        row = x[0].narrow(batch, place, 1)
        parts = [torch.flip(row.narrow(time, 0, length), [time])] if length else []
        parts += [row.narrow(time, length, whole - length)] if length < whole else []
        rows.append(torch.cat(parts, time))
    return torch.cat(rows, batch)


@operator("Compress", static=(1,), limit="what is kept is known at compile time")
def _compress(call: Call, x: Inputs) -> Tensor:
    axis = call.get("axis")
    values, along = (x[0].reshape(-1), 0) if axis is None else (x[0], axis_of(axis, x[0]))
    kept = [place for place, keep in enumerate(call.ints(1) or []) if keep]
    if not kept:
        raise NotTranslatableError("nothing that is kept")
    return torch.cat([values.narrow(along, place, 1) for place in kept], along)


@operator("EyeLike")
def _eye_like(call: Call, x: Inputs) -> Tensor:
    """Depends on the shape alone."""
    wanted = call.get("dtype")
    if wanted is not None and wanted not in _TYPE_OF:
        raise NotTranslatableError(f"type {wanted}")
    kind = x[0].dtype if wanted is None else TORCH_TYPES[_TYPE_OF[wanted]]
    rows, columns = x[0].shape
    return torch.eq(torch.arange(rows)[:, None] + call.get("k", 0), torch.arange(columns)[None]).to(kind)


def _along(numbers: Tensor, axis: int, dims: int) -> Tensor:
    return numbers.reshape([-1 if dim == axis else 1 for dim in range(dims)])
