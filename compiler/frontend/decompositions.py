"""How composite PyTorch operations are taken apart, in forms that suit dataflow hardware.

torch-mlir's table is the base; ours avoid its detours (variance in f64, float powers, a softmax with an argmax)
and keep `linear` whole, because it lowers directly to one contraction and one bias.
"""

# torch-mlir's Python bindings come without types
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

from penstock.compiler.frontend.convolutions import convolutions
from penstock.compiler.frontend.exported_quantisation import exported_quantisation
from penstock.compiler.frontend.fourier_forms import fourier_forms
from penstock.compiler.frontend.functions import functions
from penstock.compiler.frontend.overlapping import overlapping
from penstock.compiler.frontend.rearrangements import rearrangements
from penstock.compiler.frontend.reductions import reductions
from penstock.compiler.frontend.resampling import resampling
from penstock.compiler.frontend.short_time import short_time

aten = torch.ops.aten
DecompositionTable = dict[Any, Callable[..., Any]]
_LARGEST_PRODUCT = 16
"""Larger whole powers are rare, and overflow f32 soon."""


def decomposition_table() -> DecompositionTable:
    table: DecompositionTable = {
        **get_decomposition_table(), **rearrangements(), **convolutions(), **overlapping(), **reductions(),
        **resampling(), **functions(), **fourier_forms(), **short_time(), **exported_quantisation(),
    }  # fmt: skip
    for whole in (aten.linear.default, aten.addmm.default, aten.full.default):
        table.pop(whole, None)
    table[aten.native_layer_norm.default] = _layer_norm
    table[aten.native_group_norm.default] = _group_norm
    table[aten.rms_norm.default] = _rms_norm
    table[aten._fused_rms_norm.default] = _fused_rms_norm
    table[aten._native_batch_norm_legit_no_training.default] = _batch_norm
    table[aten._softmax.default] = _softmax
    table[aten._safe_softmax.default] = _safe_softmax
    table[aten.mv.default] = _matrix_by_vector
    table[aten.addmv.default] = _added_matrix_by_vector
    table[aten.pow.Tensor_Scalar] = _power
    table[aten.reciprocal.default] = _reciprocal
    table[aten.mean.default] = _mean_of_all
    table[aten.mean.dim] = _mean
    table[aten.var.correction] = _variance
    table[aten.var_mean.correction] = _variance_and_mean
    table[aten.gelu.default] = _gelu
    table[aten.silu.default] = _silu
    return table


def _layer_norm(
    x: torch.Tensor,
    shape: list[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    mean = aten.mean.dim(x, dims, True)
    centred = aten.sub.Tensor(x, mean)
    variance = aten.mean.dim(aten.mul.Tensor(centred, centred), dims, True)
    scale = aten.rsqrt.default(aten.add.Scalar(variance, epsilon))
    y = aten.mul.Tensor(centred, scale)
    if weight is not None:
        y = aten.mul.Tensor(y, weight)
    if bias is not None:
        y = aten.add.Tensor(y, bias)
    return y, mean, scale


def _group_norm(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, batch: int, channels: int, size: int,
    groups: int, epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    rows = aten.reshape.default(x, [batch, groups, channels // groups * size])
    y, mean, scale = _layer_norm(rows, [rows.shape[2]], None, None, epsilon)
    y = aten.reshape.default(y, list(x.shape))
    along_channels = [-1] + [1] * (x.dim() - 2)
    if weight is not None:
        y = aten.mul.Tensor(y, aten.view.default(weight, along_channels))
    if bias is not None:
        y = aten.add.Tensor(y, aten.view.default(bias, along_channels))
    return y, mean, scale


def _rms_norm(
    x: torch.Tensor, shape: list[int], weight: torch.Tensor | None = None, epsilon: float | None = None
) -> torch.Tensor:
    return _fused_rms_norm(x, shape, weight, epsilon)[0]


def _fused_rms_norm(
    x: torch.Tensor, shape: list[int], weight: torch.Tensor | None, epsilon: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    dims = list(range(x.dim() - len(shape), x.dim()))
    square = aten.mean.dim(aten.mul.Tensor(x, x), dims, True)
    scale = aten.rsqrt.default(aten.add.Scalar(square, torch.finfo(x.dtype).eps if epsilon is None else epsilon))
    y = aten.mul.Tensor(x, scale)
    return (y if weight is None else aten.mul.Tensor(y, weight)), scale


def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    variance: torch.Tensor,
    momentum: float,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """One multiplication and one addition with numbers that are known at compile time."""
    scale = aten.rsqrt.default(aten.add.Scalar(variance, epsilon))
    if weight is not None:
        scale = aten.mul.Tensor(scale, weight)
    shift = aten.neg.default(aten.mul.Tensor(mean, scale))
    if bias is not None:
        shift = aten.add.Tensor(shift, bias)
    along_channels = [-1] + [1] * (x.dim() - 2)
    y = aten.mul.Tensor(x, aten.view.default(scale, along_channels))
    return aten.add.Tensor(y, aten.view.default(shift, along_channels)), x.new_empty(0), x.new_empty(0)


def _softmax(x: torch.Tensor, dim: int, half_to_float: bool) -> torch.Tensor:
    exponentials = aten.exp.default(aten.sub.Tensor(x, aten.amax.default(x, [dim], True)))
    return aten.div.Tensor(exponentials, aten.sum.dim_IntList(exponentials, [dim], True))


def _safe_softmax(x: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A row that is masked whole gives zeros there and not-a-number here: masks leave something in every row."""
    return _softmax(x, dim, False)


def _matrix_by_vector(x: torch.Tensor, vector: torch.Tensor) -> torch.Tensor:
    """One contraction, as a product of matrices is; products and their sums apart would be two kernels, between which
    as many tokens pass as the matrix has elements."""
    return aten.squeeze.dim(aten.mm.default(x, aten.unsqueeze.default(vector, 1)), 1)


def _added_matrix_by_vector(
    start: torch.Tensor, x: torch.Tensor, vector: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> torch.Tensor:
    product = _matrix_by_vector(x, vector)
    if alpha != 1:
        product = aten.mul.Scalar(product, alpha)
    if beta == 0:  # what it would start from does not count then, whatever it is
        return product
    return aten.add.Tensor(product, start if beta == 1 else aten.mul.Scalar(start, beta))


def _power(x: torch.Tensor, exponent: float) -> Any:
    """Whole and half exponents as products, roots and quotients; others stay what they are."""
    whole, rest = divmod(abs(exponent), 1)
    if rest not in (0, 0.5) or not 0 < abs(exponent) <= _LARGEST_PRODUCT:
        return NotImplemented
    if exponent == -0.5:
        return aten.rsqrt.default(x)
    product = _product(x, int(whole)) if whole else aten.sqrt.default(x)
    if whole and rest:
        product = aten.mul.Tensor(product, aten.sqrt.default(x))
    return product if exponent > 0 else _reciprocal(product)


def _product(x: torch.Tensor, count: int) -> torch.Tensor:
    """By squaring: x**count in the fewest rounds."""
    if count == 1:
        return x
    half = _product(x, count // 2)
    square = aten.mul.Tensor(half, half)
    return aten.mul.Tensor(square, x) if count % 2 else square


def _reciprocal(x: torch.Tensor) -> torch.Tensor:
    """As a quotient, which gives infinity for zero as PyTorch does; torch-mlir's own stops the program there."""
    return aten.div.Tensor(aten.full.default([], 1.0, dtype=x.dtype, device=x.device), x)


def _mean_of_all(x: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return _mean(x, None, False)


def _mean(
    x: torch.Tensor, dims: list[int] | None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """The sum times a number: no divider, and no f64."""
    along = dims or list(range(x.dim()))
    return aten.mul.Tensor(aten.sum.dim_IntList(x, along, keepdim), 1.0 / _count(x, along))


def _variance(
    x: torch.Tensor, dims: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> torch.Tensor:
    along = dims or list(range(x.dim()))
    centred = aten.sub.Tensor(x, _mean(x, along, True))
    total = aten.sum.dim_IntList(aten.mul.Tensor(centred, centred), along, keepdim)
    left = _count(x, along) - (1 if correction is None else correction)
    return aten.mul.Tensor(total, 1.0 / left if left > 0 else math.inf)


def _variance_and_mean(
    x: torch.Tensor, dims: list[int] | None = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    return _variance(x, dims, correction=correction, keepdim=keepdim), _mean(x, dims or list(range(x.dim())), keepdim)


def _count(x: torch.Tensor, dims: list[int]) -> int:
    return math.prod(x.shape[dim] for dim in dims)


def _gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """x times a share between 0 and 1."""
    if approximate == "tanh":
        cube = aten.mul.Tensor(_product(x, 3), 0.044715)
        bent = aten.tanh.default(aten.mul.Tensor(aten.add.Tensor(x, cube), math.sqrt(2 / math.pi)))
    else:
        bent = aten.erf.default(aten.mul.Tensor(x, math.sqrt(0.5)))
    return aten.mul.Tensor(aten.mul.Tensor(x, 0.5), aten.add.Scalar(bent, 1.0))


def _silu(x: torch.Tensor) -> torch.Tensor:
    return aten.div.Tensor(x, aten.add.Scalar(aten.exp.default(aten.neg.default(x)), 1.0))
