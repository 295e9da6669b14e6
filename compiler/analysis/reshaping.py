"""The order in which a reshaped tensor passes where its elements pass as they did before.

Tokens are flat, so a stream of one shape is a stream of another as long as both walk the same elements. Merged dims
are walked by the loops of those they were: an enlarged frame, two rows for one, leaves row by row as it came. Dims are
split where the loops along them go through whole numbers of the finer ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from penstock.compiler.analysis.loops import canonical_itensor, itensor_loops
from penstock.compiler.analysis.walks import LoopOf
from penstock.compiler.dialects.itensor import ITensorType


def merged_groups(long: Sequence[int], short: Sequence[int]) -> list[list[int]] | None:
    """Which neighbouring dims of the longer shape each dim of the shorter one merges; None if they do not fit."""
    found: list[list[int]] = []
    place = 0
    for number, size in enumerate(short):
        group, reached = [place], long[place] if place < len(long) else 0
        place += 1
        while place < len(long) and (reached < size or number == len(short) - 1):
            group.append(place)
            reached *= long[place]
            place += 1
        if reached != size:
            return None
        found.append(group)
    return found


def reshaped_order(kind: ITensorType, shape: Sequence[int], target: Sequence[int]) -> ITensorType | None:
    """The order of the reshaped tensor in which the same tokens pass; None where slices would be no boxes of it."""
    merges = len(shape) > len(target)
    found = merged_groups(*((shape, target) if merges else (target, shape)))
    if found is None or tuple(kind.data_shape()) != tuple(shape):
        return None
    return _merged(kind, shape, found) if merges else _split(kind, target, found)


def _merged(kind: ITensorType, shape: Sequence[int], found: list[list[int]]) -> ITensorType | None:
    element = kind.element_shape
    for group in found:
        whole = True  # a box is a run if it fills the inner dims
        for dim in reversed(group):
            if element[dim] > 1 and not whole:
                return None
            whole = whole and element[dim] == shape[dim]
    lies = {
        dim: (number, prod(shape[d] for d in group if d > dim)) for number, group in enumerate(found) for dim in group
    }
    loops: list[LoopOf] = []
    for trip, step, dim in itensor_loops(kind):
        number, stride = (None, 1) if dim is None else lies[dim]
        loops.append((trip, step * stride, number))
    return canonical_itensor([prod(element[dim] for dim in group) for group in found], kind.dtype, loops)


def _split(kind: ITensorType, shape: Sequence[int], found: list[list[int]]) -> ITensorType | None:
    element = [1] * len(shape)
    for size, group in zip(kind.element_shape, found, strict=True):
        for dim in reversed(group):  # a run is a box if it fills the inner dims
            element[dim] = gcd(size, shape[dim])
            size //= element[dim]
            if size > 1 and element[dim] < shape[dim]:
                return None
    loops: list[LoopOf] = []
    for trip, step, dim in itensor_loops(kind):
        finer = [(trip, step, None)] if dim is None else _finer(trip, step, found[dim], shape)
        if finer is None:
            return None
        loops += finer
    return canonical_itensor(element, kind.dtype, loops)


def _finer(trip: int, step: int, group: Sequence[int], shape: Sequence[int]) -> list[LoopOf] | None:
    """A loop along merged dims as loops along these, from the outermost in."""
    found: list[LoopOf] = []
    below = 1  # elements that the dims inside this one hold
    for dim in reversed(group):
        size, here = shape[dim], step // below
        if trip > 1 and here < size:
            if step % below or size % here:
                return None
            inside = size // here
            if trip <= inside:
                return [(trip, here, dim), *found]
            if trip % inside:
                return None
            found.insert(0, (inside, here, dim))
            trip, step = trip // inside, below * size
        below *= size
    return found if trip == 1 else None
