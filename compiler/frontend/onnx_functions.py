"""ONNX operators that make one number of one or two, wherever they stand. Importing this adds them to the table."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from penstock.compiler.frontend.onnx_operators import Call, Inputs, operator, plain

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875

plain({
    "Acos": torch.acos, "Acosh": torch.acosh, "Asin": torch.asin, "Asinh": torch.asinh, "Atan": torch.atan,
    "Atanh": torch.atanh, "BitwiseAnd": torch.bitwise_and, "BitwiseNot": torch.bitwise_not,
    "BitwiseOr": torch.bitwise_or, "BitwiseXor": torch.bitwise_xor, "Cosh": torch.cosh, "Sinh": torch.sinh,
    "Tan": torch.tan,
})  # fmt: skip


@operator("Celu")
def _celu(call: Call, x: Inputs) -> Tensor:
    return functional.celu(x[0], call.get("alpha", 1.0))


@operator("Selu")
def _selu(call: Call, x: Inputs) -> Tensor:
    return functional.elu(x[0], call.get("alpha", _SELU_ALPHA)) * call.get("gamma", _SELU_GAMMA)


@operator("Shrink")
def _shrink(call: Call, x: Inputs) -> Tensor:
    bound, bias = call.get("lambd", 0.5), call.get("bias", 0.0)
    return torch.where(x[0] > bound, x[0] - bias, torch.where(x[0] < -bound, x[0] + bias, 0.0))


@operator("ThresholdedRelu")
def _thresholded_relu(call: Call, x: Inputs) -> Tensor:
    return torch.where(x[0] > call.get("alpha", 1.0), x[0], 0.0)


@operator("Mean")
def _mean_of_inputs(call: Call, x: Inputs) -> Tensor:
    result = x[0]
    for other in x[1:]:
        result = result + other
    return result * (1.0 / len(x))


@operator("Mod")
def _mod(call: Call, x: Inputs) -> Tensor:
    """The sign is the divisor's, or with `fmod` the dividend's."""
    return torch.fmod(x[0], x[1]) if call.get("fmod", 0) else torch.remainder(x[0], x[1])


@operator("IsNaN")
def _is_nan(call: Call, x: Inputs) -> Tensor:
    return torch.ne(x[0], x[0])


@operator("IsInf")
def _is_infinite(call: Call, x: Inputs) -> Tensor:
    above, below = torch.eq(x[0], torch.inf), torch.eq(x[0], -torch.inf)
    if not call.get("detect_negative", 1):
        return above if call.get("detect_positive", 1) else torch.zeros_like(above)
    return torch.logical_or(above, below) if call.get("detect_positive", 1) else below


@operator("CastLike")
def _cast_like(call: Call, x: Inputs) -> Tensor:
    return x[0].to(x[1].dtype)
