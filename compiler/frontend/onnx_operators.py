"""What each ONNX operator means in PyTorch: one function an operator, found by its name.

Semantics are those of opset 13 and later. Where a result's shape depends on an input (the shape of a Reshape, the
axes of a Squeeze), that input is a constant of the graph and listed as `static`: the function reads it as numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from penstock.compiler.arrays import Array

Inputs = Sequence[Tensor]
Result = Tensor | tuple[Tensor, ...]


class NotTranslatableError(Exception):
    """This use of an operator has no translation; the message says which part of it."""


@dataclass(frozen=True)
class Call:
    """A node without its inputs: attributes, the inputs that are constants by position, the number of results."""

    attributes: Mapping[str, Any]
    constants: Mapping[int, Array]
    inputs: int
    results: int
    left_out: frozenset[int] = frozenset()
    """Positions of inputs that this node does without, though later ones are given."""

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)

    def ints(self, position: int) -> list[int] | None:
        """A constant list of integers, or None where the input is left out."""
        value = self.constants.get(position)
        return None if value is None else [int(x) for x in np.ravel(value)]

    def axes(self, position: int) -> list[int] | None:
        """Axes: an input in newer opsets, an attribute in older ones."""
        return self.ints(position) if position in self.constants else self.get("axes")

    def scalar(self, position: int) -> float | int | None:
        """The number that a constant input of one element holds."""
        value = self.constants.get(position)
        return np.ravel(value)[0].item() if value is not None and value.size == 1 else None

    def only(self, name: str, *values: Any) -> None:
        """Refuse an attribute's value that is not translated."""
        given = self.get(name, values[0])
        if given not in values:
            raise NotTranslatableError(f"{name}={given!r}")


TORCH_TYPES = {
    "float32": torch.float32, "int32": torch.int32, "int64": torch.int64, "bool": torch.bool,
    "int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16, "uint16": torch.uint16,
}  # fmt: skip
Translation = Callable[[Call, Inputs], Result]


@dataclass(frozen=True)
class OnnxOperator:
    translate: Translation
    static: tuple[int, ...] = ()
    limit: str = "shapes, axes and bounds are known at compile time"
    """Why its static inputs are constants."""
    in_floats: bool = False
    """Whether it computes with whole numbers in float32, so that weights of few bits enter as such."""


OPERATORS: dict[str, OnnxOperator] = {}


def operator(
    *names: str, static: tuple[int, ...] = (), limit: str = OnnxOperator.limit, in_floats: bool = False
) -> Callable[[Translation], Translation]:
    def register(function: Translation) -> Translation:
        for name in names:
            OPERATORS[name] = OnnxOperator(function, static, limit, in_floats)
        return function

    return register


def plain(functions: Mapping[str, Callable[..., Tensor]]) -> None:
    """Operators that are a function of PyTorch's on the same inputs."""
    OPERATORS.update({name: OnnxOperator(_on_inputs(function)) for name, function in functions.items()})


def _on_inputs(function: Callable[..., Tensor]) -> Translation:
    return lambda call, x: function(*x)


plain({
    "Abs": torch.abs, "Add": torch.add, "And": torch.logical_and, "Ceil": torch.ceil, "Cos": torch.cos,
    "Equal": torch.eq, "Erf": torch.erf, "Exp": torch.exp, "Floor": torch.floor, "Greater": torch.gt,
    "GreaterOrEqual": torch.ge, "Less": torch.lt, "LessOrEqual": torch.le, "Log": torch.log,
    "MatMul": torch.matmul, "Mish": functional.mish, "Mul": torch.mul, "Neg": torch.neg, "Not": torch.logical_not,
    "Or": torch.logical_or, "Reciprocal": torch.reciprocal,
    "Relu": torch.relu, "Round": torch.round, "Sigmoid": torch.sigmoid, "Sign": torch.sign, "Sin": torch.sin,
    "Softplus": functional.softplus, "Softsign": functional.softsign, "Sqrt": torch.sqrt, "Sub": torch.sub,
    "Tanh": torch.tanh, "Where": torch.where, "Xor": torch.logical_xor,
})  # fmt: skip


@operator("Identity")
def _identity(call: Call, x: Inputs) -> Tensor:
    return x[0]


@operator("PRelu")
def _parametric_relu(call: Call, x: Inputs) -> Tensor:
    return torch.where(x[0] < 0, x[0] * x[1], x[0])


@operator("Div")
def _div(call: Call, x: Inputs) -> Tensor:
    return torch.div(x[0], x[1], rounding_mode=None if x[0].is_floating_point() else "trunc")


@operator("Pow")
def _pow(call: Call, x: Inputs) -> Tensor:
    exponent = call.scalar(1)
    return torch.pow(x[0], x[1] if exponent is None else exponent)


@operator("Max")
def _max(call: Call, x: Inputs) -> Tensor:
    result = x[0]
    for other in x[1:]:
        result = torch.maximum(result, other)
    return result


@operator("Min")
def _min(call: Call, x: Inputs) -> Tensor:
    result = x[0]
    for other in x[1:]:
        result = torch.minimum(result, other)
    return result


@operator("Sum")
def _sum_of_inputs(call: Call, x: Inputs) -> Tensor:
    result = x[0]
    for other in x[1:]:
        result = result + other
    return result


@operator("Clip", static=(1, 2))
def _clip(call: Call, x: Inputs) -> Tensor:
    low, high = call.scalar(1), call.scalar(2)
    return x[0] if low is None and high is None else torch.clamp(x[0], low, high)


@operator("LeakyRelu")
def _leaky_relu(call: Call, x: Inputs) -> Tensor:
    return functional.leaky_relu(x[0], call.get("alpha", 0.01))


@operator("Elu")
def _elu(call: Call, x: Inputs) -> Tensor:
    return functional.elu(x[0], call.get("alpha", 1.0))


@operator("HardSigmoid")
def _hard_sigmoid(call: Call, x: Inputs) -> Tensor:
    return torch.clamp(call.get("alpha", 0.2) * x[0] + call.get("beta", 0.5), 0.0, 1.0)


@operator("HardSwish")
def _hard_swish(call: Call, x: Inputs) -> Tensor:
    return functional.hardswish(x[0])


@operator("Swish")
def _swish(call: Call, x: Inputs) -> Tensor:
    return x[0] * torch.sigmoid(call.get("alpha", 1.0) * x[0])


@operator("Gelu")
def _gelu(call: Call, x: Inputs) -> Tensor:
    return functional.gelu(x[0], approximate=text_of(call.get("approximate", "none")))


@operator("Gemm")
def _gemm(call: Call, x: Inputs) -> Tensor:
    alpha, beta = call.get("alpha", 1.0), call.get("beta", 1.0)
    a = x[0].t() if call.get("transA", 0) else x[0]
    bias = x[2] if len(x) > 2 else None
    if call.get("transB", 0) and alpha == 1.0 and (bias is None or (beta == 1.0 and bias.dim() == 1)):
        return functional.linear(a, x[1], bias)
    product = torch.mm(a, x[1].t() if call.get("transB", 0) else x[1])
    product = product if alpha == 1.0 else product * alpha
    return product if bias is None else product + (bias if beta == 1.0 else bias * beta)


@operator("Einsum")
def _einsum(call: Call, x: Inputs) -> Tensor:
    return torch.einsum(text_of(call.get("equation")), *x)


@operator("Softmax")
def _softmax(call: Call, x: Inputs) -> Tensor:
    return torch.softmax(x[0], call.get("axis", -1))


@operator("LogSoftmax")
def _log_softmax(call: Call, x: Inputs) -> Tensor:
    return torch.log_softmax(x[0], call.get("axis", -1))


@operator("LayerNormalization")
def _layer_norm(call: Call, x: Inputs) -> Result:
    axis, epsilon = axis_of(call.get("axis", -1), x[0]), call.get("epsilon", 1e-5)
    shape, dims = list(x[0].shape[axis:]), list(range(axis, x[0].dim()))
    y = functional.layer_norm(x[0], shape, x[1].expand(shape), x[2].expand(shape) if len(x) > 2 else None, epsilon)
    if call.results == 1:
        return y
    variance, mean = torch.var_mean(x[0], dims, correction=0, keepdim=True)
    return y, mean, torch.rsqrt(variance + epsilon)


@operator("RMSNormalization", "SimplifiedLayerNormalization")
def _rms_norm(call: Call, x: Inputs) -> Tensor:
    shape = list(x[0].shape[axis_of(call.get("axis", -1), x[0]) :])
    return functional.rms_norm(x[0], shape, x[1].expand(shape), call.get("epsilon", 1e-5))


@operator("BatchNormalization")
def _batch_norm(call: Call, x: Inputs) -> Tensor:
    call.only("training_mode", 0)
    values, scale, bias, mean, variance = x
    return functional.batch_norm(values, mean, variance, scale, bias, False, 0.0, call.get("epsilon", 1e-5))


@operator("GroupNormalization")
def _group_norm(call: Call, x: Inputs) -> Tensor:
    groups, channels = call.get("num_groups"), x[0].shape[1]
    scale, bias = (w.repeat_interleave(channels // groups) if w.shape[0] != channels else w for w in x[1:])
    return functional.group_norm(x[0], groups, scale, bias, call.get("epsilon", 1e-5))


@operator("InstanceNormalization")
def _instance_norm(call: Call, x: Inputs) -> Tensor:
    return functional.instance_norm(x[0], weight=x[1], bias=x[2], eps=call.get("epsilon", 1e-5))


@operator("MeanVarianceNormalization")
def _mean_variance(call: Call, x: Inputs) -> Tensor:
    variance, mean = torch.var_mean(x[0], list(call.get("axes", [0, 2, 3])), correction=0, keepdim=True)
    return (x[0] - mean) / (torch.sqrt(variance) + 1e-9)


@operator("LpNormalization")
def _lp_normalization(call: Call, x: Inputs) -> Tensor:
    """What has no length stays zero."""
    axis = call.get("axis", -1)
    if call.get("p", 2) == 1:
        length = x[0].abs().sum(axis, keepdim=True)
    else:
        length = (x[0] * x[0]).sum(axis, keepdim=True).sqrt()
    return torch.where(length == 0, 0.0, x[0] / torch.where(length == 0, 1.0, length))


def _product(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    for axis in sorted((axis_of(a, x) for a in axes), reverse=True):
        x = torch.prod(x, axis, keep)
    return x


_REDUCTIONS: dict[str, Callable[[Tensor, list[int], bool], Tensor]] = {
    "ReduceMean": torch.mean,
    "ReduceSum": torch.sum,
    "ReduceMax": torch.amax,
    "ReduceMin": torch.amin,
    "ReduceSumSquare": lambda x, axes, keep: torch.sum(x * x, axes, keep),
    "ReduceL1": lambda x, axes, keep: torch.sum(torch.abs(x), axes, keep),
    "ReduceL2": lambda x, axes, keep: torch.sqrt(torch.sum(x * x, axes, keep)),
    "ReduceProd": _product,
    "ReduceLogSum": lambda x, axes, keep: torch.log(torch.sum(x, axes, keep)),
    "ReduceLogSumExp": torch.logsumexp,
}


def _reduction(function: Callable[[Tensor, list[int], bool], Tensor]) -> Translation:
    def translate(call: Call, x: Inputs) -> Tensor:
        axes = call.axes(1)
        if not axes and call.get("noop_with_empty_axes", 0):
            return x[0]
        return function(x[0], axes or list(range(x[0].dim())), bool(call.get("keepdims", 1)))

    return translate


OPERATORS.update({name: OnnxOperator(_reduction(function), (1,)) for name, function in _REDUCTIONS.items()})


_TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool}


@operator("Cast")
def _cast(call: Call, x: Inputs) -> Tensor:
    wanted = call.get("to")
    if wanted not in _TYPES:
        raise NotTranslatableError(f"type {wanted}")
    return x[0].to(_TYPES[wanted])


@operator("Dropout")
def _dropout(call: Call, x: Inputs) -> Result:
    """Nothing is dropped but in training, and so the mask is true everywhere."""
    if call.inputs > 2 and 2 not in call.left_out and call.scalar(2) != 0:
        raise NotTranslatableError("training")
    return (x[0], torch.ones_like(x[0], dtype=torch.bool)) if call.results > 1 else x[0]


def axis_of(axis: int, x: Tensor) -> int:
    return axis + x.dim() if axis < 0 else axis


def text_of(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def torch_pads(before: list[int], after: list[int]) -> list[int]:
    """ONNX lists all beginnings, then all ends; PyTorch pairs, the last dim first."""
    return [size for pair in reversed(list(zip(before, after, strict=True))) for size in pair]
