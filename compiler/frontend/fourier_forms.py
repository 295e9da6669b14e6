"""`torch.fft` in all its forms by the three transforms that `fourier.py` writes as products: sizes, dims and norms."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
_NOTHING, _BY_ROOT, _BY_COUNT = 0, 1, 2


def fourier_forms() -> dict[Any, Callable[..., Any]]:
    table: dict[Any, Callable[..., Any]] = {}
    for name, transform in (("fft", _forward), ("ifft", _inverse), ("rfft", _half), ("irfft", _from_half)):
        table[getattr(aten, f"fft_{name}").default] = _of_one_dim(transform)
        table[getattr(aten, f"fft_{name}2").default] = _of_two_dims(transform)
        table[getattr(aten, f"fft_{name}n").default] = _of_any_dims(transform)
    return table


_Transform = Callable[[Tensor, list[int | None], list[int], str | None], Tensor]


def _of_one_dim(transform: _Transform) -> Callable[..., Tensor]:
    def form(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return transform(x, [n], [dim % x.dim()], norm)

    return form


def _of_two_dims(transform: _Transform) -> Callable[..., Tensor]:
    def form(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: Any = None) -> Tensor:
        return transform(x, list(s) if s else [None] * len(dim), [d % x.dim() for d in dim], norm)

    return form


def _of_any_dims(transform: _Transform) -> Callable[..., Tensor]:
    def form(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: Any = None) -> Tensor:
        count = len(s) if s else x.dim()
        dims = [d % x.dim() for d in dim] if dim else list(range(x.dim() - count, x.dim()))
        return transform(x, list(s) if s else [None] * len(dims), dims, norm)

    return form


def _forward(x: Tensor, sizes: list[int | None], dims: list[int], norm: str | None) -> Tensor:
    x = _sized(x, sizes, dims)
    if x.is_complex():
        return aten._fft_c2c.default(x, dims, _mode(norm, forward=True), True)
    return aten._fft_r2c.default(x, dims, _mode(norm, forward=True), False)


def _inverse(x: Tensor, sizes: list[int | None], dims: list[int], norm: str | None) -> Tensor:
    x = _sized(x, sizes, dims)
    if x.is_complex():
        return aten._fft_c2c.default(x, dims, _mode(norm, forward=False), False)
    turned = aten._fft_r2c.default(x, dims, _mode(norm, forward=False), False)
    return aten.complex.default(aten.real.default(turned), aten.neg.default(aten.imag.default(turned)))


def _half(x: Tensor, sizes: list[int | None], dims: list[int], norm: str | None) -> Tensor:
    return aten._fft_r2c.default(_sized(x, sizes, dims), dims, _mode(norm, forward=True), True)


def _from_half(x: Tensor, sizes: list[int | None], dims: list[int], norm: str | None) -> Tensor:
    size = sizes[-1] or 2 * (x.shape[dims[-1]] - 1)
    x = _sized(x, [*sizes[:-1], size // 2 + 1], dims)
    x = x if x.is_complex() else aten.complex.default(x, aten.mul.Tensor(x, 0.0))
    return aten._fft_c2r.default(x, dims, _mode(norm, forward=False), size)


def _sized(x: Tensor, sizes: list[int | None], dims: list[int]) -> Tensor:
    """Cut, or with zeros behind it."""
    for size, dim in zip(sizes, dims, strict=True):
        have = x.shape[dim]
        if size is not None and size not in (-1, have):
            around = [0, 0] * (x.dim() - 1 - dim) + [0, size - have]
            x = aten.slice.Tensor(x, dim, 0, size) if size < have else aten.constant_pad_nd.default(x, around, 0.0)
    return x


def _mode(norm: str | None, *, forward: bool) -> int:
    if norm == "ortho":
        return _BY_ROOT
    return _BY_COUNT if forward == (norm == "forward") else _NOTHING
