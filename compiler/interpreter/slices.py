"""A stream at the itensor level as one array: its slices along the first axis, in the order of the stream's type."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.affine import coefficients
from penstock.compiler.dialects.itensor import ITensorType
from penstock.compiler.errors import PenstockError
from penstock.compiler.scalars.number_types import numpy_dtype


def cut(tensor: Array, kind: ITensorType) -> Array:
    """A tensor's slices in the order of the stream's type."""
    return _places(tensor, kind).reshape(kind.token_count, *kind.element_shape)


def join(slices: Array, kind: ITensorType, where: str) -> Array:
    """The tensor that a stream carried; a stream that leaves holes or disagrees with itself is an error."""
    shape = kind.data_shape()
    if len(slices) != kind.token_count:
        raise broken(where, f"the stream carried {len(slices)} slices, its type says {kind.token_count}")
    tensor, seen = np.zeros(shape, numpy_dtype(kind.dtype)), np.zeros(shape, bool)
    places = _places(tensor, kind)
    carried = slices.reshape(places.shape)
    places[...] = carried
    _places(seen, kind)[...] = True
    equal = places == carried  # a slice that came twice is written twice; both must be what lies there now
    if not equal.all():
        equal |= (places != places) & (carried != carried)
    if not equal.all():
        first = int(np.argmin(equal.reshape(len(slices), -1).all(axis=1)))
        at = np.unravel_index(first, kind.trip_counts)
        corner = tuple(kind.iter_map.data.eval([int(i) * s for i, s in zip(at, kind.step_sizes, strict=True)], []))
        raise broken(where, f"the stream carried two different slices for {corner}")
    if not seen.all():
        raise broken(where, f"the stream left {int((~seen).sum())} of {seen.size} elements out")
    return tensor


def broken(where: str, what: str) -> PenstockError:
    return PenstockError(
        code="broken-stream", what=what, where=where, hint="this is a defect in a pass; please report it"
    )


def _places(tensor: Array, kind: ITensorType) -> Array:
    """Where every slice lies in a tensor, as a view: the loops' axes, then the slice's.

    A slice's first element is affine in the loops, so each loop is a stride; what comes twice is there twice.
    """
    rows = [coefficients(expression, len(kind.trip_counts)) for expression in kind.iter_map.data.results]
    corner = kind.iter_map.data.eval([0] * len(kind.trip_counts), [])
    walks = [[factor * step for factor, step in zip(row, kind.step_sizes, strict=True)] for row in rows]
    for start, walk, extent, size in zip(corner, walks, kind.element_shape, tensor.shape, strict=True):
        far = [step * (trip - 1) for step, trip in zip(walk, kind.trip_counts, strict=True)]
        if start + sum(min(0, f) for f in far) < 0 or start + sum(max(0, f) for f in far) + extent > size:
            raise broken(str(kind), f"its slices reach beyond {tuple(tensor.shape)}")
    strides = [
        sum(walk[loop] * tensor.strides[dim] for dim, walk in enumerate(walks)) for loop in range(len(kind.trip_counts))
    ]
    return as_strided(
        tensor[(*(slice(start, None) for start in corner), ...)],
        (*kind.trip_counts, *kind.element_shape), (*strides, *tensor.strides),
    )  # fmt: skip
