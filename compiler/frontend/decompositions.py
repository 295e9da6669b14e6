"""How composite PyTorch operations are taken apart, in forms that suit dataflow hardware.

torch-mlir's table is the base; ours avoid its detours (variance in f64, float powers, a softmax with an argmax)
and keep `linear` whole, because it lowers directly to one contraction and one bias.
"""

# torch-mlir's Python bindings come without types
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_mlir.extras.fx_decomp_util import get_decomposition_table

aten = torch.ops.aten
Table = dict[Any, Callable[..., Any]]


def decomposition_table() -> Table:
    table: Table = dict(get_decomposition_table())
    for whole in (aten.linear.default, aten.addmm.default):
        table.pop(whole, None)
    table[aten.native_layer_norm.default] = _layer_norm
    table[aten._native_batch_norm_legit_no_training.default] = _batch_norm
    table[aten._softmax.default] = _softmax
    table[aten.pow.Tensor_Scalar] = _power
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


def _power(x: torch.Tensor, exponent: float) -> Any:
    if exponent == 2:
        return aten.mul.Tensor(x, x)
    if exponent == 3:
        return aten.mul.Tensor(aten.mul.Tensor(x, x), x)
    return NotImplemented
