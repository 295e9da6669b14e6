"""PyTorch's operations, each as a function of one tensor `x` of two rows, four columns and eight layers: [2, 4, 8]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Apply = Callable[[Tensor], Any]
WIDTH = 8
"""Of the last dim that goes in."""


@cache
def _weight(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(3))


def _images(x: Tensor) -> Tensor:
    """Two images of four channels, as layers for images take them; only their shape differs."""
    return x.reshape(2, 1, 4, 8)


def _indices(x: Tensor) -> Tensor:
    return (x.abs() * 3).long().clamp(0, 3)


ELEMENTWISE: Mapping[str, Apply] = {
    "abs": torch.abs, "neg": torch.neg, "sign": torch.sign, "exp": torch.exp, "exp2": torch.exp2,
    "expm1": torch.expm1, "log": lambda x: torch.log(x.abs() + 1), "log2": lambda x: torch.log2(x.abs() + 1),
    "log10": lambda x: torch.log10(x.abs() + 1), "log1p": lambda x: torch.log1p(x.abs()),
    "sqrt": lambda x: torch.sqrt(x.abs() + 1), "rsqrt": lambda x: torch.rsqrt(x.abs() + 1),
    "reciprocal": lambda x: torch.reciprocal(x.abs() + 1), "square": torch.square,
    "pow(x, 3)": lambda x: x**3, "pow(x, 0.5)": lambda x: (x.abs() + 1) ** 0.5,
    "pow(x, 1.7)": lambda x: (x.abs() + 1) ** 1.7, "pow(x, y)": lambda x: torch.pow(x.abs() + 1, x),
    "pow(2, x)": lambda x: torch.pow(2.0, x),
    "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "asin": lambda x: torch.asin(torch.tanh(x)),
    "acos": lambda x: torch.acos(torch.tanh(x)), "atan": torch.atan, "sinh": torch.sinh, "cosh": torch.cosh,
    "tanh": torch.tanh, "asinh": torch.asinh, "acosh": lambda x: torch.acosh(x.abs() + 1.5),
    "atanh": lambda x: torch.atanh(torch.tanh(x) * 0.9), "erf": torch.erf, "erfc": torch.erfc,
    "erfinv": lambda x: torch.erfinv(torch.tanh(x) * 0.9), "lgamma": lambda x: torch.lgamma(x.abs() + 1),
    "digamma": lambda x: torch.digamma(x.abs() + 1), "sinc": torch.sinc,
    "logit": lambda x: torch.logit(torch.sigmoid(x)),
    "floor": torch.floor, "ceil": torch.ceil, "round": torch.round, "trunc": torch.trunc, "frac": torch.frac,
    "clamp": lambda x: torch.clamp(x, -0.5, 0.5), "clamp(min)": lambda x: torch.clamp(x, min=0.1),
    "nan_to_num": torch.nan_to_num, "deg2rad": torch.deg2rad,
}  # fmt: skip
ACTIVATIONS: Mapping[str, Apply] = {
    "relu": F.relu, "relu6": F.relu6, "leaky_relu": F.leaky_relu, "elu": F.elu, "selu": F.selu, "celu": F.celu,
    "gelu": F.gelu, "gelu(tanh)": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish,
    "softplus": F.softplus, "softsign": F.softsign, "softshrink": F.softshrink, "hardshrink": F.hardshrink,
    "tanhshrink": F.tanhshrink, "threshold": lambda x: F.threshold(x, 0.1, 0.2), "sigmoid": torch.sigmoid,
    "hardtanh": F.hardtanh, "hardsigmoid": F.hardsigmoid, "hardswish": F.hardswish, "logsigmoid": F.logsigmoid,
    "prelu": lambda x: F.prelu(x, torch.tensor([0.1, 0.2, 0.3, 0.4])), "glu": lambda x: F.glu(x),
    "softmax": lambda x: F.softmax(x, -1), "log_softmax": lambda x: F.log_softmax(x, -1),
    "softmin": lambda x: F.softmin(x, -1), "dropout (evaluation)": lambda x: F.dropout(x, 0.5, training=False),
}  # fmt: skip
TWO_OPERANDS: Mapping[str, Apply] = {
    "add": lambda x: x + 1.5, "add(x, y)": lambda x: x + x[:1],
    "sub": lambda x: 1.5 - x, "mul": lambda x: x * x[:, :1], "div": lambda x: x / (x[:1].abs() + 1),
    "floor_divide": lambda x: torch.floor_divide(x, 0.5), "remainder": lambda x: torch.remainder(x, 0.7),
    "fmod": lambda x: torch.fmod(x, 0.7), "maximum": lambda x: torch.maximum(x, x[:1]),
    "minimum": lambda x: torch.minimum(x, x[:1]), "atan2": lambda x: torch.atan2(x, x[:1] + 3),
    "hypot": lambda x: torch.hypot(x, x[:1]), "lerp": lambda x: torch.lerp(x, x[:1], 0.3),
    "addcmul": lambda x: torch.addcmul(x, x, x[:1]), "addcdiv": lambda x: torch.addcdiv(x, x, x[:1].abs() + 1),
    "where(x > y)": lambda x: torch.where(x > 0.2, x, 2 * x), "masked_fill": lambda x: x.masked_fill(x < 0, -1.0),
    "comparison as float": lambda x: (x >= 0.3).float() * x, "logical_and": lambda x: ((x > 0) & (x < 1)).float(),
    "logical_not": lambda x: (~(x > 0)).float(), "copysign": lambda x: torch.copysign(x, x[:1]),
}  # fmt: skip
REDUCTIONS: Mapping[str, Apply] = {
    "sum": lambda x: x.sum(-1, keepdim=True).expand(2, 4, 8), "mean": lambda x: x - x.mean(-1, keepdim=True),
    "amax": lambda x: x - x.amax(-1, keepdim=True), "amin": lambda x: x - x.amin(-1, keepdim=True),
    "max (values)": lambda x: x - x.max(-1, keepdim=True).values,
    "prod": lambda x: x + x.prod(-1, keepdim=True), "var": lambda x: x / (x.var(-1, keepdim=True) + 1),
    "std": lambda x: x / (x.std(-1, keepdim=True) + 1), "norm": lambda x: x / (x.norm(dim=-1, keepdim=True) + 1),
    "norm(p=1)": lambda x: x / (x.norm(p=1, dim=-1, keepdim=True) + 1), "normalize": lambda x: F.normalize(x, dim=-1),
    "logsumexp": lambda x: x - x.logsumexp(-1, keepdim=True), "cumsum": lambda x: x.cumsum(1),
    "cumprod": lambda x: x.cumprod(1), "logcumsumexp": lambda x: x.logcumsumexp(1),
    "cosine_similarity": lambda x: x * F.cosine_similarity(x, x[:1] + 1, dim=-1).unsqueeze(-1),
    "cdist": lambda x: torch.cdist(x, x[:1]), "argmax": lambda x: x.argmax(-1), "argmin": lambda x: x.argmin(-1),
    "topk": lambda x: x.topk(2, -1), "sort": lambda x: x.sort(-1), "median": lambda x: x.median(-1),
    "max (indices)": lambda x: x.max(-1).indices, "any": lambda x: (x > 0).any(-1), "all": lambda x: (x > 0).all(-1),
}  # fmt: skip
PRODUCTS: Mapping[str, Apply] = {
    "linear": lambda x: F.linear(x, _weight(8, 8), _weight(8)), "matmul": lambda x: x @ x.transpose(1, 2),
    "matmul (weight)": lambda x: x @ _weight(8, 5), "bmm": lambda x: torch.bmm(x, x.transpose(1, 2)),
    "mm": lambda x: torch.mm(x[0], _weight(8, 3)), "addmm": lambda x: torch.addmm(_weight(3), x[0], _weight(8, 3)),
    "baddbmm": lambda x: torch.baddbmm(_weight(4), x, x.transpose(1, 2)),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x, x), "outer": lambda x: torch.outer(x[0, 0], x[0, 1]),
    "mv": lambda x: x[0] @ _weight(8), "addmv": lambda x: torch.addmv(_weight(4), x[0], _weight(8)),
    "dot": lambda x: torch.dot(x[0, 0], x[0, 1]).reshape(1),
    "bilinear": lambda x: F.bilinear(x[0], x[1], _weight(3, 8, 8)),
    "scaled_dot_product_attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "scaled_dot_product_attention (causal)": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "conv1d": lambda x: F.conv1d(x, _weight(3, 4, 3)),
    "conv1d (kernel = stride)": lambda x: F.conv1d(x, _weight(3, 4, 2), stride=2),
    "conv1d (1)": lambda x: F.conv1d(x, _weight(3, 4, 1)),
    "conv2d": lambda x: F.conv2d(_images(x), _weight(3, 1, 3, 3)),
    "conv2d (kernel = stride)": lambda x: F.conv2d(_images(x), _weight(3, 1, 2, 2), stride=2),
    "conv2d (1 × 1)": lambda x: F.conv2d(_images(x), _weight(3, 1, 1, 1)),
    "conv_transpose2d": lambda x: F.conv_transpose2d(_images(x), _weight(1, 2, 2, 2), stride=2),
}  # fmt: skip
SHAPES: Mapping[str, Apply] = {
    "reshape": lambda x: x.reshape(2, 8, 4), "flatten": lambda x: x.flatten(1), "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(1, 2), "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "expand": lambda x: x[:1].expand(3, 4, 8), "repeat": lambda x: x.repeat(1, 2, 1),
    "repeat_interleave": lambda x: x.repeat_interleave(2, dim=1), "cat": lambda x: torch.cat([x, x * 2], dim=1),
    "stack": lambda x: torch.stack([x, x * 2], dim=1), "split": lambda x: torch.cat(x.split(2, dim=1)[::-1], dim=1),
    "chunk": lambda x: x.chunk(2, dim=-1)[0] * 2, "slice": lambda x: x[:, 1:3], "slice (steps)": lambda x: x[:, ::2],
    "select": lambda x: x[:, 1], "narrow": lambda x: x.narrow(1, 1, 2), "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(1, dims=1), "pad": lambda x: F.pad(x, (1, 1)), "tril": torch.tril, "triu": torch.triu,
    "diagonal": lambda x: x.diagonal(dim1=1, dim2=2), "unfold": lambda x: x.unfold(1, 2, 1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(2, 4, 2, 4), 2), "movedim": lambda x: x.movedim(0, 1),
    "index (constant)": lambda x: x[:, torch.tensor([0, 2])],
    "index_select (constant)": lambda x: x.index_select(1, torch.tensor([2, 0])),
    "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[0, 1], indexing="ij")[0] * 2,
}  # fmt: skip
LOOK_UPS: Mapping[str, Apply] = {
    "embedding": lambda x: F.embedding(_indices(x[..., 0]), _weight(4, 8)),
    "embedding_bag": lambda x: F.embedding_bag(_indices(x[..., 0]), _weight(4, 8)),
    "gather": lambda x: x.gather(1, _indices(x)), "index_select": lambda x: x.index_select(1, _indices(x[0, :, 0])),
    "take_along_dim": lambda x: x.take_along_dim(_indices(x), 1),
    "scatter": lambda x: torch.zeros_like(x).scatter(1, _indices(x), x),
    "scatter_add": lambda x: torch.zeros_like(x).scatter_add(1, _indices(x), x),
    "index_add": lambda x: torch.zeros_like(x).index_add(1, _indices(x[0, :, 0]), x),
    "index_put (mask, one number)": lambda x: x.index_put((x < 0,), torch.tensor(0.5)),
    "one_hot": lambda x: F.one_hot(_indices(x[..., 0]), 8).float(),
    "bucketize": lambda x: torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0])), "nonzero": lambda x: x.relu().nonzero(),
    "fft": lambda x: torch.fft.fft(x).real,
    "irfft of rfft": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[-1]),
    "stft": lambda x: torch.view_as_real(
        torch.stft(x[:, 0], 4, hop_length=2, window=torch.hann_window(4), return_complex=True)
    ).flatten(1),
    "istft of stft": lambda x: torch.istft(
        torch.stft(x[:, 0], 4, hop_length=1, window=torch.hann_window(4), return_complex=True),
        4, hop_length=1, window=torch.hann_window(4), length=x.shape[-1],
    ),
    "angle of rfft": lambda x: torch.angle(torch.fft.rfft(x)),
    "max_unpool1d of max_pool1d": lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), [2]),
    "view_as_complex, mul, view_as_real": lambda x: torch.view_as_real(
        torch.view_as_complex(x.unflatten(-1, (-1, 2))) * torch.polar(torch.ones(4), torch.arange(4.0))
    ).flatten(-2),
}  # fmt: skip
NORMS_AND_POOLS: Mapping[str, Apply] = {
    "layer_norm": lambda x: F.layer_norm(x, (8,), _weight(8), _weight(8)),
    "rms_norm": lambda x: F.rms_norm(x, (8,), _weight(8)), "group_norm": lambda x: F.group_norm(x, 2),
    "instance_norm": lambda x: F.instance_norm(x),
    "batch_norm": lambda x: F.batch_norm(x, _weight(4), _weight(4).abs() + 1),
    "local_response_norm": lambda x: F.local_response_norm(x, 3), "max_pool1d": lambda x: F.max_pool1d(x, 2),
    "avg_pool1d": lambda x: F.avg_pool1d(x, 2), "max_pool2d": lambda x: F.max_pool2d(_images(x), 2),
    "avg_pool2d": lambda x: F.avg_pool2d(_images(x), 2),
    "adaptive_avg_pool2d (1)": lambda x: F.adaptive_avg_pool2d(_images(x), 1),
    "max_pool2d (overlapping)": lambda x: F.max_pool2d(_images(x), 3, 1),
    "interpolate (nearest)": lambda x: F.interpolate(_images(x), scale_factor=2),
    "interpolate (bilinear)": lambda x: F.interpolate(_images(x), scale_factor=2, mode="bilinear"),
}  # fmt: skip

FUNCTIONS: Mapping[str, Mapping[str, Apply]] = {
    "Elementwise": ELEMENTWISE, "Activations": ACTIVATIONS, "Two operands and conditions": TWO_OPERANDS,
    "Reductions, scans and selections": REDUCTIONS, "Products and convolutions": PRODUCTS, "Shapes": SHAPES,
    "Look-ups and writes": LOOK_UPS, "Norms and pooling": NORMS_AND_POOLS,
}  # fmt: skip

LAYERS: Mapping[str, Callable[[], nn.Module]] = {
    "nn.LSTM": lambda: nn.LSTM(8, 6), "nn.LSTM (bidirectional)": lambda: nn.LSTM(8, 6, bidirectional=True),
    "nn.GRU": lambda: nn.GRU(8, 6), "nn.RNN": lambda: nn.RNN(8, 6),
    "nn.TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(8, 2, 16),
    "nn.MultiheadAttention": lambda: SelfAttention(), "nn.Embedding": lambda: nn.Embedding(4, 8),
}  # fmt: skip
"""Layers by themselves; a loop over time is unrolled to the length of the example input."""


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x)[0]


class Operation(nn.Module):
    """One operation at a place of a model: before, between or behind linear layers."""

    def __init__(self, apply: Apply, place: str, behind: int = 0) -> None:
        super().__init__()
        self.apply_it, self.place = apply, place
        self.first = nn.Linear(WIDTH, WIDTH) if place != "start" else nn.Identity()
        self.last = nn.Linear(behind, 3) if place != "end" else nn.Identity()

    def forward(self, x: Tensor) -> Any:
        y = self.apply_it(self.first(x))
        return self.last(y) if self.place != "end" else y
