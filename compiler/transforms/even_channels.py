"""Finds tensors whose channels differ so much in size that one scale for all would spoil the small ones.

A trained convolution leaves channels a hundred times as large as others, and depthwise layers do not mix them. Such a
tensor has a step a channel. That costs next to nothing: what computes it multiplies by a number a channel anyhow, and
what reads it has weights a channel, which take the steps along: those of channels that are summed are multiplied by
them before they are rounded, those of channels that stay leave them in the scales of the sums.

Where channels are summed, what evens out the numbers makes the weights uneven. The steps lie between one for all and
each channel's own, where the estimated noise is least: that of both roundings, and of what is cut off at the ends of a
range that unseen inputs go beyond, as each part of the typical ones goes beyond all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, func
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.transforms.channel_sizes import ChannelSizes
from penstock.compiler.transforms.editor import Editor, shape_of
from penstock.compiler.transforms.generics import (
    REDUCTION,
    filled_with,
    is_elementwise,
    is_reduction,
    maps_of,
    scalar_constant,
    yielded,
)
from penstock.compiler.transforms.parts import dim_behind, moves_data
from penstock.compiler.transforms.quantise_reductions import reduced_terms
from penstock.compiler.transforms.quantiser import LEVELS, Quantiser

_LEAST_SEEN = 32
"""Numbers of a channel, below which nothing is said of how large they get."""
_SMALLEST = 1 / 64
"""Of the largest channel's step: what the typical inputs hardly touch, others may."""
_PARTS = (0.25, 0.5, 0.75, 1.0)
_SPARES = (1.0, 1.25, 1.5, 2.0, 3.0)
"""By how much a channel's range may be larger than what was seen of it."""
_GAIN = 2.0
"""By which the estimated noise must fall."""


@dataclass(frozen=True)
class _Way:
    """How ranges follow from the largest numbers that were seen of each channel, and of all."""

    part: float
    spare: float

    def ranges(self, seen: Array) -> Array:
        whole = float(np.max(seen))
        own = np.clip(seen * self.spare, whole * _SMALLEST, whole)
        return own**self.part * whole ** (1 - self.part)


_ONE_FOR_ALL = _Way(0.0, 1.0)
_WAYS = [_Way(part, spare) for part in _PARTS for spare in _SPARES]


@dataclass(frozen=True)
class _Reader:
    """A contraction with weights: magnitudes by channel, by the result's channel, and by what else is summed."""

    weights: Array
    summed: bool
    """Whether it adds up the channels."""


def find_channels(editor: Editor) -> dict[SSAValue, int]:
    """The dimension of each tensor along which it may have a step a channel: all that reads it can do with that."""
    found: dict[SSAValue, int] = {}
    for op in editor.generics():
        value = op.results[0]
        if is_elementwise(op):
            dims = {dim for dim in range(len(shape_of(value))) if _is_weighted(editor, value, dim)}
            dims = dims or _made_of_channels(editor, op)
            if len(dims) == 1 and _readers_allow(editor, value, *dims):
                found[value] = dims.pop()
    return found


def channel_ranges(
    state: Quantiser, dims: Mapping[SSAValue, int], sizes: Mapping[SSAValue, ChannelSizes]
) -> dict[SSAValue, Array]:
    """The largest magnitude of each channel of the tensors for which steps of their own are worth it, by dimension."""
    found: dict[SSAValue, Array] = {}
    for value, dim in dims.items():
        one, largest = sizes.get(value), state.ranges.get(value, 0.0)
        if value in state.masks or value in state.exact or value in state.fed:
            continue
        if one is None or one.count < _LEAST_SEEN or not 0.0 < largest < np.inf:
            continue
        seen = np.minimum(one.largest, largest)
        power = np.maximum(one.power, (np.maximum(seen, largest * _SMALLEST) / LEVELS) ** 2 / 12)
        # whom no weights tell apart, each channel is as much to as the others
        readers = list(_readers(state, value, dim)) or [_Reader(power[:, None, None] ** -0.5, False)]

        def noise(way: _Way, one: ChannelSizes = one, readers: list[_Reader] = readers, power: Array = power) -> float:
            return _noise(way.ranges(one.largest), _cut(way, one), power, readers, state.weight_bits)

        best = min(_WAYS, key=noise)
        if noise(best) * _GAIN < noise(_ONE_FOR_ALL):
            shape = [1] * len(shape_of(value))
            shape[dim] = len(seen)
            found[value] = best.ranges(seen).reshape(shape)
    return found


def _cut(way: _Way, sizes: ChannelSizes) -> Array:
    """The power of what lies beyond the ranges, by channel: of each fold, beyond those that follow from the others."""
    power = np.zeros_like(sizes.squares)
    for fold in range(sizes.folds if sizes.folds > 1 else 0):
        beyond = sizes.tops[fold] - way.ranges(sizes.without(fold))
        power += np.sum(np.maximum(beyond, 0.0) ** 2, axis=0)
    return power / sizes.count


def _noise(largest: Array, cut: Array, power: Array, readers: Sequence[_Reader], weight_bits: int) -> float:
    """Of the readers' results, as a share of their power, summed over the readers: roundings are independent.

    `cut` is the power of what is cut off each channel.
    """
    total, fine = 0.0, 1.0 / LEVELS**2 / 12
    levels = (1 << (weight_bits - 1)) - 1
    for reader in readers:
        squares = np.sum(reader.weights**2, axis=(1, 2))
        answer = float(squares @ power)
        if answer <= 0.0:
            continue
        noise = float(squares @ (largest**2 * fine + cut))
        if reader.summed:
            steps = np.max(reader.weights * largest[:, None, None], axis=(0, 2)) / levels
            terms = reader.weights.shape[2] * float(np.sum(power / largest**2))
            noise += float(np.sum(steps**2)) / 12 * terms
        total += noise / answer
    return total


def _made_of_channels(editor: Editor, op: linalg.GenericOp) -> set[int]:
    """The dimensions along which weights differed in the sums that an operation reads as they are."""
    found: set[int] = set()
    for value, layout in zip(op.inputs, maps_of(op), strict=False):
        made, behind = value.owner, _plain(maps_of(op)[-1])
        if not isinstance(made, linalg.GenericOp) or not is_reduction(made):
            continue
        loops = _plain(layout)
        for x, weights in zip(made.inputs, maps_of(made), strict=False):
            if editor.is_param(x):
                dims = [d for d, loop in _plain(maps_of(made)[-1]).items() if loop in weights.used_dims()]
                found |= {to for d in dims for to, loop in behind.items() if loops.get(d) == loop}
    return found


def _is_weighted(editor: Editor, value: SSAValue, dim: int) -> bool:
    """Whether weights differ along a dimension, of what is multiplied with a tensor or with what is cut from it."""
    for use in value.uses:
        if moves_data(use.operation):
            behind = dim_behind(use.operation, dim)
            if behind is not None and _is_weighted(editor, use.operation.results[0], behind):
                return True
        elif shape_of(value)[dim] > 1 and _multiplies(editor, use.operation, value, dim):
            return True
    return False


def _multiplies(editor: Editor, op: Operation, value: SSAValue, dim: int) -> bool:
    """Whether a contraction multiplies a tensor by weights that differ along its dimension."""
    layouts = _with_weights(editor, op, value)
    return layouts is not None and _plain(layouts[0]).get(dim) in layouts[1].used_dims()


def _with_weights(editor: Editor, op: Operation, value: SSAValue) -> tuple[AffineMap, AffineMap] | None:
    """How a contraction with a parameter reads a tensor and the parameter."""
    if not isinstance(op, linalg.GenericOp) or not is_reduction(op) or not isinstance(yielded(op).owner, arith.AddfOp):
        return None
    terms = reduced_terms(op)
    others = [t for t in terms if editor.is_param(op.inputs[t])]
    own = [t for t in terms if op.inputs[t] is value]
    if len(terms) != 2 or len(others) != 1 or len(own) != 1:
        return None
    return maps_of(op)[own[0]], maps_of(op)[others[0]]


def _plain(layout: AffineMap) -> dict[int, int]:
    """The loop of each dimension that is one loop's, which no other dimension's is."""
    loops = {d: e.position for d, e in enumerate(layout.results) if isinstance(e, AffineDimExpr)}
    used = [loop for e in layout.results for loop in e.used_dims()]
    return {d: loop for d, loop in loops.items() if used.count(loop) == 1}


def _readers_allow(editor: Editor, value: SSAValue, dim: int) -> bool:
    return all(_allows(editor, use.operation, value, dim) for use in value.uses)


def _allows(editor: Editor, op: Operation, value: SSAValue, dim: int) -> bool:
    if moves_data(op):
        behind, fill = dim_behind(op, dim), _fill(op)
        simple = fill is None or _is_least(fill)
        return simple and behind is not None and _readers_allow(editor, op.results[0], behind)
    if not isinstance(op, linalg.GenericOp):
        return False
    layouts = [layout for x, layout in zip(op.inputs, maps_of(op), strict=False) if x is value]
    loops = {_plain(layout).get(dim) for layout in layouts}
    loop = loops.pop() if len(loops) == 1 else None
    if loop is None:
        return False
    if is_elementwise(op):
        return True
    kept = list(op.iterator_types)[loop] != REDUCTION
    if not isinstance(yielded(op).owner, arith.AddfOp):
        start = filled_with(op.outputs[0])
        number = None if start is None else scalar_constant(start.result)
        least = number is not None and _is_least(float(number))
        to = [d for d, place in _plain(maps_of(op)[-1]).items() if place == loop]
        if not least or not kept or len(to) != 1:
            return False
        return _readers_allow(editor, op.results[0], to[0])
    if kept:
        return not any(isinstance(use.operation, func.ReturnOp) for use in op.results[0].uses)
    return _multiplies(editor, op, value, dim)


def _fill(op: Operation) -> float | None:
    if not isinstance(op, SlideOp):
        return None
    number: Any = op.fill
    return float(number.value.data)


def _is_least(number: float) -> bool:
    """Whether it is the same integer at every scale: nothing, or as little as there is."""
    return number == 0.0 or number < -1e30


def _readers(state: Quantiser, value: SSAValue, dim: int) -> Iterator[_Reader]:
    for use in value.uses:
        if moves_data(use.operation):
            behind = dim_behind(use.operation, dim)
            if behind is not None:
                yield from _readers(state, use.operation.results[0], behind)
        elif (reader := _reader(state, use.operation, value, dim)) is not None:
            yield reader


def _reader(state: Quantiser, op: Operation, value: SSAValue, dim: int) -> _Reader | None:
    layouts = _with_weights(state.editor, op, value)
    if layouts is None or not isinstance(op, linalg.GenericOp):
        return None
    loop = _plain(layouts[0])[dim]
    (param,) = (x for x in op.inputs if state.editor.is_param(x))
    data = np.max(np.abs(np.asarray(state.rows(param), np.float64)), axis=0)
    places = [e.position for e in layouts[1].results if isinstance(e, AffineDimExpr)]
    if len(places) != data.ndim or places.count(loop) != 1:
        return None
    results = maps_of(op)[-1].used_dims()
    axes = [axis for axis, place in enumerate(places) if place != loop]
    kept = [axis for axis in axes if places[axis] in results]
    outputs = prod(data.shape[axis] for axis in kept)
    ordered = data.transpose([places.index(loop), *kept, *(axis for axis in axes if axis not in kept)])
    weights = ordered.reshape(data.shape[places.index(loop)], outputs, -1)
    return _Reader(weights, list(op.iterator_types)[loop] == REDUCTION)
