"""A stream at the itensor level as one array: its slices along the first axis, in the order of the stream's type."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.number_types import numpy_dtype


def cut(tensor: Array, kind: ITensorType) -> Array:
    """A tensor's slices in the order of the stream's type."""
    return sliding_window_view(tensor, kind.element_shape)[_corners(kind)]


def join(slices: Array, kind: ITensorType, where: str) -> Array:
    """The tensor that a stream carried; a stream that leaves holes or disagrees with itself is an error."""
    shape, extents, corners = kind.data_shape(), kind.element_shape, _corners(kind)
    if len(slices) != kind.token_count:
        raise broken(where, f"the stream carried {len(slices)} slices, its type says {kind.token_count}")
    tensor, seen = np.zeros(shape, numpy_dtype(kind.dtype)), np.zeros(shape, bool)
    window = sliding_window_view(tensor, extents, writeable=True)
    window[corners] = slices
    sliding_window_view(seen, extents, writeable=True)[corners] = True
    kept = window[corners]  # a slice that came twice is written twice; both must be what lies there now
    equal = (kept == slices) | ((kept != kept) & (slices != slices))
    if not equal.all():
        first = int(np.argmin(equal.reshape(len(equal), -1).all(axis=1)))
        corner = tuple(int(c[first]) for c in corners)
        raise broken(where, f"the stream carried two different slices for {corner}")
    if not seen.all():
        raise broken(where, f"the stream left {int((~seen).sum())} of {seen.size} elements out")
    return tensor


def broken(where: str, what: str) -> PenstockError:
    return PenstockError(
        code="broken-stream", what=what, where=where, hint="this is a defect in a pass; please report it"
    )


def _corners(kind: ITensorType) -> tuple[NDArray[np.int64], ...]:
    """Where each slice starts: one array for each dim of the tensor."""
    trips, steps, iter_map = kind.trip_counts, kind.step_sizes, kind.iter_map.data
    origin = iter_map.eval([0] * len(trips), [])
    corners: list[NDArray[np.int64]] = []
    for expression, start in zip(iter_map.results, origin, strict=True):
        at = np.full(trips, start, np.int64)
        for loop, factor in enumerate(coefficients(expression, len(trips))):
            walk = np.arange(trips[loop], dtype=np.int64) * (steps[loop] * factor)
            at += walk.reshape([-1 if i == loop else 1 for i in range(len(trips))])
        corners.append(at.reshape(-1))
    return tuple(corners)
