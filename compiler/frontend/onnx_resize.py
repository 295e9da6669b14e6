"""Resize of ONNX: along each axis a product with a matrix of what each result is made of, or the elements themselves.

The matrices are known at import: sizes are, and how places correspond is said by attributes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from penstock.compiler.arrays import Array
from penstock.compiler.frontend.onnx_operators import Call, Inputs, NotTranslatableError, axis_of, operator, text_of

_SCALES, _SIZES = 2, 3
_ROUNDED: dict[str, Callable[[float], int]] = {
    "round_prefer_floor": lambda x: math.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: math.floor(x + 0.5),
    "floor": math.floor,
    "ceil": math.ceil,
}


_MOST_SIDE, _MOST_PAIRS = 1 << 16, 1 << 24
"""Of a side, and of the weights between an old and a new one: each is a number here before it is a tensor's."""


@operator("Resize", "Upsample", static=(1, 2, 3), limit="scales and sizes are known at compile time")
def _resize(call: Call, x: Inputs) -> Tensor:
    values, mode = x[0], text_of(call.get("mode", "nearest"))
    if text_of(call.get("keep_aspect_ratio_policy", "stretch")) != "stretch":
        raise NotTranslatableError("a size that keeps the ratio of the sides")
    if call.get("antialias", 0):
        raise NotTranslatableError("antialias=1")
    axes = [axis_of(axis, values) for axis in call.get("axes", range(values.dim()))]
    for axis, (size, scale) in zip(axes, _wanted(call, values, axes), strict=True):
        old = values.shape[axis]
        if size == old and scale == 1.0:
            continue
        if size > _MOST_SIDE or size * old > _MOST_PAIRS:
            raise NotTranslatableError(f"a side that goes from {old:,} to {size:,} (at most to {_MOST_SIDE:,})")
        places = _places(call, old, size, scale)
        if mode == "nearest":
            values = _taken(values, axis, [_nearest(call, place, old) for place in places])
        elif mode in ("linear", "cubic"):
            matrix = np.stack([_weights(call, place, old, cubic=mode == "cubic") for place in places])
            made = torch.tensor(matrix.tolist(), dtype=torch.float32, device=values.device)
            values = torch.matmul(values.transpose(axis, -1), made.t()).transpose(axis, -1)
        else:
            raise NotTranslatableError(f"mode={mode!r}")
    return values


def _wanted(call: Call, x: Tensor, axes: list[int]) -> list[tuple[int, float]]:
    """The size and the scale of each axis; one of them is given."""
    scales = call.constants.get(1) if call.get("op") == "Upsample" else call.constants.get(_SCALES)
    sizes = call.constants.get(_SIZES)
    if sizes is not None and sizes.size:
        return [(int(n), int(n) / x.shape[axis]) for n, axis in zip(np.ravel(sizes), axes, strict=True)]
    if scales is None or not scales.size:
        raise NotTranslatableError("neither scales nor sizes")
    return [(math.floor(x.shape[axis] * float(s)), float(s)) for s, axis in zip(np.ravel(scales), axes, strict=True)]


def _places(call: Call, old: int, new: int, scale: float) -> list[float]:
    """Where each result lies between the elements."""
    how = text_of(call.get("coordinate_transformation_mode", "half_pixel"))
    how = "asymmetric" if call.get("op") == "Upsample" else how
    numbers = range(new)
    if how == "half_pixel" or (how == "pytorch_half_pixel" and new > 1):
        return [(i + 0.5) / scale - 0.5 for i in numbers]
    if how == "pytorch_half_pixel":
        return [0.0]
    if how == "half_pixel_symmetric":
        shift = old / 2 * (1 - new / (scale * old))
        return [shift + (i + 0.5) / scale - 0.5 for i in numbers]
    if how == "align_corners":
        last = scale * old - 1  # of the scaled length, which need not be whole
        return [i * (old - 1) / last if new > 1 else 0.0 for i in numbers]
    if how == "asymmetric":
        return [i / scale for i in numbers]
    raise NotTranslatableError(f"coordinate_transformation_mode={how!r}")


def _nearest(call: Call, place: float, old: int) -> int:
    how = text_of(call.get("nearest_mode", "floor" if call.get("op") == "Upsample" else "round_prefer_floor"))
    return min(max(_ROUNDED[how](place), 0), old - 1)


def _taken(x: Tensor, axis: int, places: list[int]) -> Tensor:
    """Whole repetitions are a broadcast; other places are looked up, which becomes slices."""
    times = len(places) // x.shape[axis]
    if times and places == [i // times for i in range(times * x.shape[axis])]:
        return x.repeat_interleave(times, axis)
    return torch.index_select(x, axis, torch.tensor(places, device=x.device))


def _weights(call: Call, place: float, old: int, *, cubic: bool) -> Array:
    """How much each element counts; those beyond an edge are the edge, or count nothing and leave it to the others."""
    below, outside = math.floor(place), bool(call.get("exclude_outside", 0))
    found = np.zeros(old)
    for tap in range(below - 1, below + 3) if cubic else range(below, below + 2):
        distance = abs(place - tap)
        weight = _cubic(distance, call.get("cubic_coeff_a", -0.75)) if cubic else 1.0 - distance
        if not outside or 0 <= tap < old:
            found[min(max(tap, 0), old - 1)] += weight
    return found / found.sum() if outside else found


def _cubic(distance: float, a: float) -> float:
    if distance <= 1:
        return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
