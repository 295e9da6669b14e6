"""Discrete Fourier transforms as products with matrices of sines and cosines, on real and imaginary parts."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch.fx import Node

from penstock.compiler.frontend.graph_calls import GraphCall

aten = torch.ops.aten
MOST_POINTS = 1024
"""The matrix of a longer transform has more than a million numbers."""
TwoParts = tuple[Node, Node | None]
AddConstant = Callable[[torch.Tensor, str], Node]


class Fourier:
    """Writes transforms with `call`, and their matrices with `constant`. One matrix serves all that need it."""

    def __init__(self, call: GraphCall, constant: AddConstant) -> None:
        self.call, self.constant = call, constant

    def real_to_complex(self, x: Node, dims: Sequence[int], norm: int, *, half: bool) -> TwoParts:
        """Of real numbers along the last of `dims`, of what comes of them along the others."""
        sizes = [x.meta["val"].shape[dim] for dim in dims]
        size, factor = sizes[-1], _factor(sizes, norm)
        columns = size // 2 + 1 if half else size
        cosines, sines = self._matrices(size, columns, factor)
        parts: TwoParts = (
            self._along(x, dims[-1], cosines),
            self.call(aten.neg.default, self._along(x, dims[-1], sines)),
        )
        return self.complex_to_complex(parts, dims[:-1], 0, forward=True)

    def complex_to_complex(self, parts: TwoParts, dims: Sequence[int], norm: int, *, forward: bool) -> TwoParts:
        factor = _factor([parts[0].meta["val"].shape[dim] for dim in dims], norm)
        for place, dim in enumerate(dims):
            size = parts[0].meta["val"].shape[dim]
            cosines, sines = self._matrices(size, size, factor if place == 0 else 1.0)
            real, imaginary = parts
            a, c = self._along(real, dim, cosines), self._along(real, dim, sines)
            if imaginary is None:
                parts = a, self.call(aten.neg.default, c) if forward else c
                continue
            b, d = self._along(imaginary, dim, cosines), self._along(imaginary, dim, sines)
            less, more = (aten.sub.Tensor, aten.add.Tensor)
            if forward:
                parts = self.call(more, a, d), self.call(less, b, c)
            else:
                parts = self.call(less, a, d), self.call(more, b, c)
        return parts

    def complex_to_real(self, parts: TwoParts, dims: Sequence[int], norm: int, size: int) -> Node:
        """Of a spectrum of which one half is there; the other mirrors it."""
        sizes = [parts[0].meta["val"].shape[dim] for dim in dims[:-1]]
        real, imaginary = self.complex_to_complex(parts, dims[:-1], 0, forward=False)
        rows = size // 2 + 1
        cosines, sines = self._matrices(size, rows, _factor([*sizes, size], norm), mirrored=True)
        kept = [part if part is None else self._first(part, dims[-1], rows) for part in (real, imaginary)]
        assert kept[0] is not None
        whole = self._along(kept[0], dims[-1], cosines)
        return whole if kept[1] is None else self.call(aten.sub.Tensor, whole, self._along(kept[1], dims[-1], sines))

    def _first(self, x: Node, dim: int, count: int) -> Node:
        return x if x.meta["val"].shape[dim] == count else self.call(aten.slice.Tensor, x, dim, 0, count)

    def _matrices(self, size: int, columns: int, factor: float, *, mirrored: bool = False) -> tuple[Node, Node]:
        """Cosines and sines of every point by every frequency; mirrored, of every frequency of the half by point.

        What is zero but for rounding is zero: of real numbers the middle frequency has no imaginary part, whose sign
        would decide its phase.
        """
        points, frequencies = torch.arange(size, dtype=torch.float64), torch.arange(columns, dtype=torch.float64)
        angles = torch.outer(points, frequencies).remainder(size) * (2 * math.pi / size)
        weights = torch.full((columns,), factor, dtype=torch.float64)
        if mirrored:
            weights[1 : (size + 1) // 2] *= 2
        cosines, sines = (torch.where(wave.abs() < 1e-12, 0.0, wave) * weights for wave in (angles.cos(), angles.sin()))
        pair = (cosines.T, sines.T) if mirrored else (cosines, sines)
        first, second = (matrix.float().contiguous() for matrix in pair)
        return self.constant(first, "fourier.cosines"), self.constant(second, "fourier.sines")

    def _along(self, x: Node, dim: int, matrix: Node) -> Node:
        shape = list(x.meta["val"].shape)
        dim %= len(shape)
        order = [*(d for d in range(len(shape)) if d != dim), dim]
        turned = order != list(range(len(shape)))
        y = self.call(aten.permute.default, x, order) if turned else x
        lead = [shape[d] for d in order[:-1]]
        y = self.call(aten.reshape.default, y, [math.prod(lead), shape[dim]])
        y = self.call(aten.reshape.default, self.call(aten.mm.default, y, matrix), [*lead, matrix.meta["val"].shape[1]])
        return self.call(aten.permute.default, y, [order.index(d) for d in range(len(shape))]) if turned else y


def _factor(sizes: Sequence[int], norm: int) -> float:
    """PyTorch's numbers of its modes: nothing, by the root of the number of points, by that number."""
    count = math.prod(sizes)
    return {0: 1.0, 1: count**-0.5, 2: 1.0 / count}[norm]
