"""Interpolations and adaptive poolings: along each dim a product with a matrix that says what each result is made of.

Such a matrix is arithmetic on counted places, which is computed at compile time.
"""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.export import ExportedProgram

from penstock.compiler.frontend.rearrangements import narrow

aten = torch.ops.aten
Scales = Sequence[float | None]
_CUBIC = -0.75
"""PyTorch's: how far the cubic overshoots."""


def resampling() -> dict[Any, Callable[..., Any]]:
    table: dict[Any, Callable[..., Any]] = {
        aten._adaptive_avg_pool2d.default: _adaptive_average,
        aten._adaptive_avg_pool3d.default: _adaptive_average,
        aten.adaptive_avg_pool1d.default: _adaptive_average,
        aten.adaptive_avg_pool2d.default: _adaptive_average,
        aten.adaptive_avg_pool3d.default: _adaptive_average,
        aten._upsample_nearest_exact1d.default: _nearest_exact,
        aten._upsample_nearest_exact2d.default: _nearest_exact,
        aten._upsample_nearest_exact3d.default: _nearest_exact,
        aten._upsample_nearest_exact1d.vec: lambda x, size, factors: _by_factors(x, size, factors, _nearest_exact),
        aten._upsample_nearest_exact2d.vec: lambda x, size, factors: _by_factors(x, size, factors, _nearest_exact),
        aten._upsample_nearest_exact3d.vec: lambda x, size, factors: _by_factors(x, size, factors, _nearest_exact),
    }
    for whole in (aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d, aten.upsample_bicubic2d):
        matrix = _cubic_matrix if whole is aten.upsample_bicubic2d else _linear_matrix
        table[whole.default] = _interpolation(matrix)
        table[whole.vec] = _interpolation_by_factors(matrix)
    return table


def nearest(x: torch.Tensor, sizes: Sequence[int], scales: Scales) -> torch.Tensor:
    """Each result is the element at or before its place."""
    return _along_each(
        x, sizes, scales, lambda old, new, scale, like: _one_of(_places(new, _step(old, new, scale), like), old)
    )


def _nearest_exact(x: torch.Tensor, sizes: Sequence[int], *scales: float | None) -> torch.Tensor:
    """Each result is the element in whose reach its middle lies."""

    def matrix(old: int, new: int, scale: float | None, like: torch.Tensor) -> torch.Tensor:
        step = _step(old, new, scale)
        return _one_of(_places(new, step, like, 0.5 * step), old)

    return _along_each(x, sizes, scales, matrix)


def _interpolation(matrix: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def interpolate(x: torch.Tensor, sizes: Sequence[int], align: bool, *scales: float | None) -> torch.Tensor:
        return _along_each(x, sizes, scales, lambda *given: matrix(*given, align))

    return interpolate


def _interpolation_by_factors(matrix: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    interpolate = _interpolation(matrix)

    def by_factors(x: torch.Tensor, sizes: Sequence[int] | None, align: bool, factors: Sequence[float] | None) -> Any:
        return _by_factors(x, sizes, factors, lambda x, new, *scales: interpolate(x, new, align, *scales))

    return by_factors


def _by_factors(
    x: torch.Tensor, sizes: Sequence[int] | None, factors: Sequence[float] | None, function: Callable[..., Any]
) -> Any:
    if sizes is not None:
        return function(x, sizes)
    assert factors is not None
    old = x.shape[x.dim() - len(factors) :]
    return function(x, [int(n * f) for n, f in zip(old, factors, strict=True)], *factors)


def _along_each(
    x: torch.Tensor, sizes: Sequence[int], scales: Scales, matrix: Callable[..., torch.Tensor]
) -> torch.Tensor:
    first = x.dim() - len(sizes)
    for place, new in enumerate(sizes):
        dim, scale = first + place, scales[place] if place < len(scales) else None
        old = x.shape[dim]
        if old == new and scale in (None, 1.0):
            continue
        if old == 1:  # of one element there is nothing between
            x = aten.expand.default(x, [*x.shape[:dim], new, *x.shape[dim + 1 :]])
            continue
        along = aten.transpose.int(x, dim, -1)
        rows = aten.reshape.default(along, [-1, old])
        made = aten.mm.default(rows, aten.t.default(matrix(old, new, scale, x)))
        x = aten.transpose.int(aten.reshape.default(made, [*along.shape[:-1], new]), dim, -1)
    return aten.clone.default(x)


def _step(old: int, new: int, scale: float | None) -> float:
    """From one result to the next, in elements; the factor that the model states counts where it states one."""
    return 1.0 / scale if scale else old / new


def _places(new: int, step: float, like: torch.Tensor, shift: float = 0.0) -> torch.Tensor:
    numbers = aten.arange.default(new, dtype=torch.float32, device=like.device)
    return aten.add.Scalar(aten.mul.Scalar(numbers, step), shift)


def _one_of(places: torch.Tensor, old: int) -> torch.Tensor:
    """[results, elements]: one where the element is the one at or before the place."""
    return _hit(aten.clamp.default(aten.floor.default(places), 0, old - 1), old)


def _hit(whole: torch.Tensor, old: int) -> torch.Tensor:
    elements = aten.arange.default(old, dtype=torch.float32, device=whole.device)
    equal = aten.eq.Tensor(aten.unsqueeze.default(whole, 1), aten.unsqueeze.default(elements, 0))
    return aten._to_copy.default(equal, dtype=torch.float32)


def _middles(old: int, new: int, scale: float | None, like: torch.Tensor, align: bool) -> torch.Tensor:
    """Where each result lies between the elements: corner on corner, or by the middles of what both stand for."""
    if align:
        return _places(new, (old - 1) / (new - 1) if new > 1 else 0.0, like)
    step = _step(old, new, scale)
    return _places(new, step, like, 0.5 * step - 0.5)


def _linear_matrix(old: int, new: int, scale: float | None, like: torch.Tensor, align: bool) -> torch.Tensor:
    """An element counts the less the further it is away, and nothing beyond the distance of one."""
    places = aten.clamp.default(_middles(old, new, scale, like, align), 0, old - 1)
    elements = aten.arange.default(old, dtype=torch.float32, device=like.device)
    apart = aten.sub.Tensor(aten.unsqueeze.default(places, 1), aten.unsqueeze.default(elements, 0))
    return aten.relu.default(aten.add.Scalar(aten.neg.default(aten.abs.default(apart)), 1.0))


def _cubic_matrix(old: int, new: int, scale: float | None, like: torch.Tensor, align: bool) -> torch.Tensor:
    """Four elements around the place, by a cubic of their distance; those beyond an edge are the edge."""
    places = _middles(old, new, scale, like, align)
    below = aten.floor.default(places)
    found = None
    for tap in (-1, 0, 1, 2):
        distance = aten.abs.default(aten.sub.Tensor(aten.add.Scalar(below, float(tap)), places))
        weight = aten.unsqueeze.default(_cubic(distance, near=tap in (0, 1)), 1)
        part = aten.mul.Tensor(_hit(aten.clamp.default(aten.add.Scalar(below, float(tap)), 0, old - 1), old), weight)
        found = part if found is None else aten.add.Tensor(found, part)
    assert found is not None
    return found


def _cubic(distance: torch.Tensor, *, near: bool) -> torch.Tensor:
    """Keys' cubic: up to a distance of one, or from there to two."""
    powers = (_CUBIC + 2, -(_CUBIC + 3), 0.0, 1.0) if near else (_CUBIC, -5 * _CUBIC, 8 * _CUBIC, -4 * _CUBIC)
    value = aten.full_like.default(distance, powers[0])
    for power in powers[1:]:
        value = aten.add.Scalar(aten.mul.Tensor(value, distance), power)
    return value


def _adaptive_average(x: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """Dims of which one element is left are summed at once: a frame's sum needs no more than a number a channel."""
    first = x.dim() - len(sizes)
    whole = [first + place for place, new in enumerate(sizes) if new == 1 < x.shape[first + place]]
    if len(whole) > 1:
        count = prod(x.shape[dim] for dim in whole)
        x = aten.mul.Tensor(aten.sum.dim_IntList(x, whole, True), 1.0 / count)
    for place, new in enumerate(sizes):
        dim = first + place
        parts = [aten.sum.dim_IntList(narrow(x, dim, a, b), [dim], True) for a, b in _reaches(x.shape[dim], new)]
        lengths = [b - a for a, b in _reaches(x.shape[dim], new)]
        scaled = [aten.mul.Tensor(part, 1.0 / n) if n > 1 else part for part, n in zip(parts, lengths, strict=True)]
        if x.shape[dim] != new:
            x = aten.cat.default(scaled, dim) if len(scaled) > 1 else scaled[0]
    return aten.clone.default(x)


def keep_largest(program: ExportedProgram) -> None:
    """Adaptive maxima whose places nobody reads, in place, as maxima of slices: torch-mlir gets other values."""
    for node in program.graph.nodes:
        if node.target in _ADAPTIVE_MAXIMA:
            taken = [user for user in node.users if user.target is operator.getitem]
            if len(taken) == len(node.users) and not any(user.users for user in taken if user.args[1] == 1):
                node.target = _adaptive_largest
    program.graph_module.recompile()


_ADAPTIVE_MAXIMA = (aten.adaptive_max_pool1d.default, aten.adaptive_max_pool2d.default,
                    aten.adaptive_max_pool3d.default)  # fmt: skip


def _adaptive_largest(x: torch.Tensor, sizes: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
    first = x.dim() - len(sizes)
    for place, new in enumerate(sizes):
        dim = first + place
        parts = [aten.amax.default(narrow(x, dim, a, b), [dim], True) for a, b in _reaches(x.shape[dim], new)]
        if x.shape[dim] != new:
            x = aten.cat.default(parts, dim) if len(parts) > 1 else parts[0]
    y = aten.clone.default(x)
    return y, y  # nobody reads the second


def _reaches(old: int, new: int) -> list[tuple[int, int]]:
    """What each result of an adaptive pooling is made of: windows that may overlap by one."""
    return [(i * old // new, -(-(i + 1) * old // new)) for i in range(new)]
