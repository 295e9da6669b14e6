"""Quantised ONNX files: QuantizeLinear and DequantizeLinear, and QONNX's Quant, BipolarQuant and Trunc.

What these formats mean is arithmetic on whole numbers that are held in float32, and so it is computed: rounded to a
step, kept within its width, times its scale. Weights that are stored as integers become the numbers that they stand
for. Scales, zero points and widths are constants. Dividing by a power of two is exact as a product, so it is one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from penstock.compiler.arrays import Array
from penstock.compiler.frontend.onnx_operators import (
    Call,
    Inputs,
    NotTranslatableError,
    operator,
)

QONNX_DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
QONNX_VERSIONS = (1, 2)
"""Of these domains. Version 2 has another Trunc, which is told by its inputs, and the same two others."""
QONNX_OPERATORS = ("Quant", "BipolarQuant", "Trunc")

_PARAMETERS = "scales, zero points and widths are constants"
_ROUNDING: dict[str, Callable[[Tensor], Tensor]] = {
    "ROUND": torch.round,
    "HALF_EVEN": torch.round,
    "CEIL": torch.ceil,
    "FLOOR": torch.floor,
    "UP": lambda x: torch.sign(x) * torch.ceil(torch.abs(x)),
    "DOWN": lambda x: torch.sign(x) * torch.floor(torch.abs(x)),
    "HALF_UP": lambda x: torch.sign(x) * torch.floor(torch.abs(x) + 0.5),
    "HALF_DOWN": lambda x: torch.sign(x) * torch.ceil(torch.abs(x) - 0.5),
}
_INTEGERS = {2: np.uint8, 3: np.int8, 4: np.uint16, 5: np.int16, 21: "uint4", 22: "int4"}
"""By ONNX' numbers of types, as `output_dtype` has them; those of four bits are no type of NumPy's."""


@operator("QuantizeLinear", static=(1, 2), limit=_PARAMETERS)
def _quantise_linear(call: Call, x: Inputs) -> Tensor:
    low, high = _range(call)
    whole = torch.round(_divided(x[0], _scale(call, x[0])))
    return torch.clamp(_plus(whole, _zero_point(call, x[0])), low, high)


@operator("DequantizeLinear", static=(1, 2), limit=_PARAMETERS)
def _dequantise_linear(call: Call, x: Inputs) -> Tensor:
    values = _minus(x[0].to(torch.float32), _zero_point(call, x[0]))
    return values * _operand(_scale(call, x[0]), x[0])


@operator("Quant", static=(1, 2, 3), limit=_PARAMETERS)
def _quant(call: Call, x: Inputs) -> Tensor:
    bits = _width(call, 3)
    signed, narrow = bool(call.get("signed", 1)), bool(call.get("narrow", 0))
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    scale, zero = _scale(call, x[0]), _zero_point(call, x[0])
    steps = _plus(_divided(x[0], scale), zero)
    if signed and bits == 1:  # QONNX' own reference: one signed bit is -1 or 1, never 0
        whole = torch.where(steps >= 0, 1.0, -1.0)
    else:
        whole = _rounding(call, "ROUND")(torch.clamp(steps, low, high))
    return _minus(whole, zero) * _operand(scale, x[0])


@operator("BipolarQuant", static=(1,), limit=_PARAMETERS)
def _bipolar_quant(call: Call, x: Inputs) -> Tensor:
    return torch.where(x[0] >= 0, 1.0, -1.0) * _operand(_scale(call, x[0]), x[0])


@operator("Trunc", static=(1, 2, 3, 4), limit=_PARAMETERS)
def _trunc(call: Call, x: Inputs) -> Tensor:
    if call.inputs != 5:
        raise NotTranslatableError(f"{call.inputs} inputs: its version 1 has five; version 2 is not read")
    dropped = _width(call, 3) - _width(call, 4)
    if dropped < 0:
        raise NotTranslatableError("more bits than it is given")
    scale, zero = _scale(call, x[0]), _zero_point(call, x[0])
    whole = torch.round(_plus(_divided(x[0], scale), zero))
    kept = _rounding(call, "FLOOR")(whole * 2.0**-dropped)
    return _minus(kept, zero) * _operand(scale, x[0])


def _range(call: Call) -> tuple[int, int]:
    """Of the type of the zero point, or of the one that is named; eight bits without a sign if there is neither."""
    zero, named = call.constants.get(2), call.get("output_dtype", 0)
    kind = zero.dtype if zero is not None else _INTEGERS.get(named or 2)
    if kind in ("int4", "uint4"):
        return (-8, 7) if kind == "int4" else (0, 15)
    if kind is None or np.dtype(kind).kind not in "iu" or np.dtype(kind).itemsize > 2:
        raise NotTranslatableError(f"results of type {kind or named}")
    info = np.iinfo(np.dtype(kind))
    return int(info.min), int(info.max)


def _rounding(call: Call, usual: str) -> Callable[[Tensor], Tensor]:
    named = call.get("rounding_mode", usual)
    name = (named.decode() if isinstance(named, bytes) else str(named)).upper()
    if name not in _ROUNDING:
        raise NotTranslatableError(f"rounding_mode={name!r}")
    return _ROUNDING[name]


def _width(call: Call, position: int) -> int:
    bits = call.scalar(position)
    if bits is None or bits != int(bits) or not 1 <= bits <= 16:
        raise NotTranslatableError(f"a width of {bits} bits (it is one whole number from 1 to 16)")
    return int(bits)


def _scale(call: Call, x: Tensor) -> Array:
    scale = call.constants[1].astype(np.float32)
    if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
        worst = float(np.ravel(scale)[np.argmin(np.ravel(scale))])
        raise NotTranslatableError(f"a scale of {worst:g}: scales are finite and above 0")
    return _laid(call, scale, x)


def _zero_point(call: Call, x: Tensor) -> Array | None:
    """None where it is 0."""
    values = call.constants.get(2)
    return None if values is None or not np.any(values) else _laid(call, values.astype(np.float32), x)


def _laid(call: Call, values: Array, x: Tensor) -> Array:
    """One number for all, or one for each entry of the axis that the node names; QONNX has them laid out already."""
    if call.get("op") in QONNX_OPERATORS or values.size == 1:
        return values.reshape(()) if values.size == 1 else values
    axis = call.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    if call.get("block_size", 0) or values.ndim != 1 or axis >= x.dim() or values.shape[0] != x.shape[axis]:
        raise NotTranslatableError(
            f"scales or zero points of shape {values.shape} along axis {axis} of a tensor of shape {tuple(x.shape)}"
        )
    return values.reshape([-1 if dim == axis else 1 for dim in range(x.dim())])


def _operand(values: Array, x: Tensor) -> Tensor | float:
    return values.item() if values.ndim == 0 else torch.tensor(values.tolist(), dtype=torch.float32, device=x.device)


def _plus(x: Tensor, values: Array | None) -> Tensor:
    return x if values is None else x + _operand(values, x)


def _minus(x: Tensor, values: Array | None) -> Tensor:
    return x if values is None else x - _operand(values, x)


def _divided(x: Tensor, scale: Array) -> Tensor:
    if np.all(np.abs(np.frexp(scale)[0]) == 0.5):
        return x * _operand((1 / scale).astype(np.float32), x)
    return x / _operand(scale, x)
