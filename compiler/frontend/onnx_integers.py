"""Quantised ONNX files whose operators take integers: ONNX' own QLinear..., those of onnxruntime, and dynamic ones.

As in `onnx_quantised.py` a whole number is held in float32, and a product of such numbers is one. Importing this adds
the operators to the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from penstock.compiler.arrays import Array
from penstock.compiler.frontend.onnx_operators import OPERATORS, Call, Inputs, NotTranslatableError, axis_of, operator

_PARAMETERS = "scales and zero points are constants"
_PRIVATE = "com.microsoft."
_OF_PARTS = (0, 1, *range(3, 97, 3), *range(4, 97, 3))
"""Of a concatenation: its own, then a part's values, scale and zero point in turn; 32 parts at most."""


@operator("QLinearMatMul", static=(1, 2, 4, 5, 6, 7), limit=_PARAMETERS, in_floats=True)
def _product(call: Call, x: Inputs) -> Tensor:
    product = torch.matmul(_centred(call, 2, x[0]), _centred(call, 5, x[1]))
    return _stepped(call, product * _numbers(call, 1, 4, over=6), 7)


@operator(f"{_PRIVATE}QGemm", static=(1, 2, 4, 5, 7, 8), limit=_PARAMETERS, in_floats=True)
def _gemm(call: Call, x: Inputs) -> Tensor:
    """Its bias is in steps of the product; without a scale of its own the result is a float."""
    a, b = _centred(call, 2, x[0]), _centred(call, 5, x[1])
    a, b = (a.t() if call.get("transA", 0) else a), (b.t() if call.get("transB", 0) else b)
    product = torch.mm(a, b)
    alpha = float(call.get("alpha", 1.0))
    whole = product + x[2].to(torch.float32) if len(x) > 2 else product
    if 7 not in call.constants:
        return whole * (_numbers(call, 1, 4) * alpha)
    return _stepped(call, whole * (_numbers(call, 1, 4, over=7) * alpha), 8)


@operator("QLinearConv", static=(1, 2, 4, 5, 6, 7), limit=_PARAMETERS, in_floats=True)
def _convolution(call: Call, x: Inputs) -> Tensor:
    weights = _centred(call, 5, x[1], axis=0)
    bias = [x[2].to(torch.float32)] if len(x) > 2 else []
    made = OPERATORS["Conv"].translate(call, (_centred(call, 2, x[0]), weights, *bias))
    assert isinstance(made, Tensor)
    channels = [-1, *[1] * (made.dim() - 2)]
    return _stepped(call, made * _numbers(call, 1, 4, over=6, shape=channels), 7)


@operator("MatMulInteger", in_floats=True)
def _integer_product(call: Call, x: Inputs) -> Tensor:
    a, b = _without(call, x, 0, 2), _without(call, x, 1, 3)
    return torch.matmul(a, b)


@operator("ConvInteger", in_floats=True)
def _integer_convolution(call: Call, x: Inputs) -> Tensor:
    a, b = _without(call, x, 0, 2), _without(call, x, 1, 3)
    made = OPERATORS["Conv"].translate(replace(call, inputs=2), (a, b))
    assert isinstance(made, Tensor)
    return made


@operator("DynamicQuantizeLinear")
def _dynamic(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    """Eight bits without a sign over the range that the values have, which includes 0."""
    low, high = torch.clamp(torch.amin(x[0]), max=0.0), torch.clamp(torch.amax(x[0]), min=0.0)
    width = (high - low) / 255.0
    scale = torch.where(width == 0, 1.0, width)
    zero = torch.clamp(torch.round(-low / scale), 0, 255)
    return torch.clamp(torch.round(x[0] / scale) + zero, 0, 255), width, zero


@operator(
    f"{_PRIVATE}QLinearAdd", f"{_PRIVATE}QLinearMul", static=(1, 2, 4, 5, 6, 7), limit=_PARAMETERS, in_floats=True
)
def _two(call: Call, x: Inputs) -> Tensor:
    a, b = (_centred(call, 2, x[0]) * _numbers(call, 1), _centred(call, 5, x[1]) * _numbers(call, 4))
    made = a + b if call.get("op") == "QLinearAdd" else a * b
    return _stepped(call, made / _numbers(call, 6), 7)


def _leaky(call: Call, x: Tensor) -> Tensor:
    return torch.where(x < 0, x * call.get("alpha", 0.01), x)


def _mean(call: Call, x: Tensor) -> Tensor:
    call.only("channels_last", 0)
    return torch.mean(x, list(range(2, x.dim())), True)


def _average(call: Call, x: Tensor) -> Tensor:
    call.only("channels_last", 0)
    made = OPERATORS["AveragePool"].translate(replace(call, inputs=1, results=1), (x,))
    assert isinstance(made, Tensor)
    return made


_OF_ONE: dict[str, Callable[[Call, Tensor], Tensor]] = {
    "QLinearSigmoid": lambda call, x: torch.sigmoid(x),
    "QLinearLeakyRelu": _leaky,
    "QLinearGlobalAveragePool": _mean,
    "QLinearAveragePool": _average,
}


@operator(*(_PRIVATE + name for name in _OF_ONE), static=(1, 2, 3, 4), limit=_PARAMETERS, in_floats=True)
def _one(call: Call, x: Inputs) -> Tensor:
    made = _OF_ONE[call.get("op")](call, _centred(call, 2, x[0]) * _numbers(call, 1))
    return _stepped(call, made / _numbers(call, 3), 4)


@operator(f"{_PRIVATE}QLinearSoftmax", static=(1, 2, 3, 4), limit=_PARAMETERS, in_floats=True)
def _softmax(call: Call, x: Inputs) -> Tensor:
    if call.get("opset", 13) < 13:  # there it flattens what follows the axis
        raise NotTranslatableError(f"opset={call.get('opset')}")
    values = _centred(call, 2, x[0]) * _numbers(call, 1)
    return _stepped(call, torch.softmax(values, call.get("axis", -1)) / _numbers(call, 3), 4)


@operator(f"{_PRIVATE}QLinearConcat", static=_OF_PARTS, limit=_PARAMETERS, in_floats=True)
def _joined(call: Call, x: Inputs) -> Tensor:
    parts = [_centred(call, 4 + 3 * i, v) * _numbers(call, 3 + 3 * i) for i, v in enumerate(x)]
    return _stepped(call, torch.cat(parts, axis_of(call.get("axis", 0), x[0])) / _numbers(call, 0), 1)


@operator(f"{_PRIVATE}DequantizeLinear", f"{_PRIVATE}QuantizeLinear", static=(1, 2), limit=_PARAMETERS, in_floats=True)
def _as_onnx_does(call: Call, x: Inputs) -> Tensor:
    """onnxruntime's own, which it writes for types that older versions of ONNX do not have."""
    made = OPERATORS[str(call.get("op"))].translate(call, x)
    assert isinstance(made, Tensor)
    return made


def _centred(call: Call, position: int, x: Tensor, axis: int = -1) -> Tensor:
    """Without its zero point: the whole number that stands for the value."""
    zero = call.constants.get(position)
    values = x.to(torch.float32)
    if zero is None or not np.any(zero):
        return values
    return values - _tensor(zero, [-1 if d == axis_of(axis, x) else 1 for d in range(x.dim())], x)


def _without(call: Call, x: Inputs, operand: int, zero: int) -> Tensor:
    """The same where zero points may come from the inputs: `x` holds what is given, in order."""
    values, place = x[operand].to(torch.float32), zero - sum(1 for i in call.left_out if i < zero)
    if zero in call.left_out or place >= len(x):
        return values
    zeros = x[place].to(torch.float32)
    if zeros.numel() > 1 and operand == 0:  # one for each row
        return values - zeros.reshape([*zeros.shape, 1])
    return values - (zeros.reshape([-1, *[1] * (values.dim() - 1)]) if call.get("op") == "ConvInteger" else zeros)


def _numbers(call: Call, *positions: int, over: int | None = None, shape: Sequence[int] = ()) -> Tensor | float:
    """Scales multiplied, and divided by one: one number, or one for each entry of the last dim or as `shape` has it."""
    made: Array = np.ones((), np.float32)
    for position in positions:
        made = made * _scale(call, position)
    if over is not None:
        made = made / _scale(call, over)
    return float(made.reshape(())) if made.size == 1 else _tensor(made, shape or list(made.shape), None)


def _scale(call: Call, position: int) -> Array:
    scale = call.constants[position].astype(np.float32)
    if not np.all(np.isfinite(scale)) or np.any(scale <= 0):
        raise NotTranslatableError("scales that are not finite and above 0")
    return scale.reshape(()) if scale.size == 1 else scale


def _tensor(values: Array, shape: Sequence[int], like: Tensor | None) -> Tensor:
    device = None if like is None else like.device
    flat = torch.tensor(np.ravel(values).tolist(), dtype=torch.float32, device=device)
    return flat.reshape([] if values.size == 1 else list(shape))


def _stepped(call: Call, steps: Tensor, position: int) -> Tensor:
    """Rounded to whole steps, shifted, and kept within the type of the zero point; uint8 if there is none."""
    zero = call.constants.get(position)
    info = np.iinfo(np.uint8 if zero is None else zero.dtype)
    shift = 0.0 if zero is None else float(np.ravel(zero)[0])
    return torch.clamp(torch.round(steps) + shift, float(info.min), float(info.max))
