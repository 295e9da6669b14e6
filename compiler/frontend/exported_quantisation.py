"""What PyTorch's quantisation of exported graphs (pt2e) leaves in them, as arithmetic on whole numbers in float32.

`quantized_decomposed` has no operations but definitions: rounded to a step, kept within a range, times a scale. They
are registered when the model's own file imports what quantised it. `transforms/use_integers.py` finds integers in this.
"""

# torch's operations come without types
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

aten = torch.ops.aten
WHOLE = (torch.int8, torch.uint8, torch.int16)
"""What folded weights are stored as."""


def exported_quantisation() -> dict[Any, Callable[..., Any]]:
    forms: dict[str, Callable[..., Any]] = {
        "quantize_per_tensor.default": _quantise,
        "quantize_per_tensor.tensor": _quantise,
        "dequantize_per_tensor.default": _dequantise,
        "dequantize_per_tensor.tensor": _dequantise,
        "quantize_per_channel.default": _quantise_channels,
        "dequantize_per_channel.default": _dequantise_channels,
    }
    return {op: form for name, form in forms.items() if (op := _registered(*name.split("."))) is not None}


def _registered(name: str, overload: str) -> Any:
    packet = getattr(torch.ops.quantized_decomposed, name, None)
    return None if packet is None or overload not in packet.overloads() else getattr(packet, overload)


def _quantise(x: Any, scale: Any, zero: Any, low: int, high: int, dtype: torch.dtype) -> torch.Tensor:
    return _rounded(x, _inverse(scale), zero, low, high)


def _dequantise(
    x: Any, scale: Any, zero: Any, low: int, high: int, dtype: torch.dtype, *, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    return _times(_minus(aten._to_copy.default(x, dtype=torch.float32), zero), scale)


def _quantise_channels(
    x: Any, scales: Any, zeros: Any, axis: int, low: int, high: int, dtype: torch.dtype
) -> torch.Tensor:
    return _rounded(x, _inverse(_along(scales, x, axis)), _along(zeros, x, axis), low, high)


def _dequantise_channels(
    x: Any, scales: Any, zeros: Any, axis: int, low: int, high: int, dtype: torch.dtype,
    *, out_dtype: torch.dtype | None = None,
) -> torch.Tensor:  # fmt: skip
    values = aten._to_copy.default(x, dtype=torch.float32)
    return _times(values if zeros is None else _minus(values, _along(zeros, x, axis)), _along(scales, x, axis))


def _rounded(x: Any, steps: Any, zero: Any, low: int, high: int) -> torch.Tensor:
    whole = aten.round.default(_times(x, steps))
    if isinstance(zero, torch.Tensor):
        whole = aten.add.Tensor(whole, aten._to_copy.default(zero, dtype=torch.float32))
    elif zero:
        whole = aten.add.Scalar(whole, float(zero))
    return aten.clamp.default(whole, float(low), float(high))


def _minus(x: Any, zero: Any) -> Any:
    if isinstance(zero, torch.Tensor):
        return aten.sub.Tensor(x, aten._to_copy.default(zero, dtype=torch.float32))
    return aten.sub.Scalar(x, float(zero)) if zero else x


def _times(x: Any, scale: Any) -> Any:
    if isinstance(scale, torch.Tensor):
        return aten.mul.Tensor(x, aten._to_copy.default(scale, dtype=torch.float32))
    return aten.mul.Scalar(x, float(scale))


def _inverse(scale: Any) -> Any:
    return aten.reciprocal.default(scale) if isinstance(scale, torch.Tensor) else 1.0 / scale


def _along(values: Any, x: Any, axis: int) -> Any:
    return aten.reshape.default(values, [-1 if dim == axis % x.dim() else 1 for dim in range(x.dim())])
