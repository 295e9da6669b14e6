"""Attention, RotaryEmbedding and SwiGLU of ONNX as products. Importing this adds them to the table."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from penstock.compiler.frontend.onnx_operators import Call, Inputs, NotTranslatableError, operator

_MASK, _PAST_KEY, _PAST_VALUE, _LENGTHS = 3, 4, 5, 6
_MASKED = -1e9
"""Instead of a score that must not count: a softmax leaves nothing of it."""


@operator("Attention")
def _attention(call: Call, x: Inputs) -> tuple[Tensor, ...]:
    """The result, the keys and values with what was given of the past, and the scores that `mode` asks for."""
    given = dict(zip((i for i in range(call.inputs) if i not in call.left_out), x, strict=True))
    if _LENGTHS in given:
        raise NotTranslatableError("a number of keys that is an input")
    if call.get("left_window_size", -1) != -1 or call.get("right_window_size", -1) != -1:
        raise NotTranslatableError("a window of keys")
    packed = given[0].dim() == 3
    query = _heads(given[0], call.get("q_num_heads"))
    key, value = (_heads(given[i], call.get("kv_num_heads")) for i in (1, 2))
    past = 0
    if _PAST_KEY in given:
        past = given[_PAST_KEY].shape[2]
        key, value = torch.cat([given[_PAST_KEY], key], 2), torch.cat([given[_PAST_VALUE], value], 2)
    every = query.shape[1] // key.shape[1]
    keys, values = (t.repeat_interleave(every, 1) if every > 1 else t for t in (key, value))
    scale = call.get("scale", 1.0 / math.sqrt(query.shape[-1]))
    raw = torch.matmul(query, keys.transpose(-1, -2)) * scale
    cap = call.get("softcap", 0.0)
    capped = torch.tanh(raw / cap) * cap if cap else raw
    biased, counts = _masked(call, given, capped, past)
    shares = torch.softmax(biased, -1)
    shares = shares if counts is None else torch.where(counts, shares, 0.0)  # a row that is masked whole gives zeros
    y = torch.matmul(shares, values)
    y = y.transpose(1, 2).flatten(2) if packed else y
    scores = {0: raw, 1: capped, 2: biased, 3: shares}[call.get("qk_matmul_output_mode", 0)]
    if scores is biased and biased is not capped:
        raise NotTranslatableError("masked scores as a result")
    return y, key, value, scores


def _heads(x: Tensor, count: int | None) -> Tensor:
    """[batch, heads, tokens, width]; with three dims the heads lie side by side in the last."""
    if x.dim() == 4:
        return x
    heads = count or 1
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).transpose(1, 2)


def _masked(call: Call, given: dict[int, Tensor], scores: Tensor, past: int) -> tuple[Tensor, Tensor | None]:
    """The scores with what must not count far below, and which do count, where that is said by conditions."""
    queries, keys = scores.shape[-2:]
    mask, counts = given.get(_MASK), None
    if mask is not None and mask.shape[-1] != keys:
        raise NotTranslatableError(f"a mask of {mask.shape[-1]} of {keys} keys")
    if mask is not None and mask.dtype == torch.bool:
        counts = mask
    elif mask is not None:
        scores = scores + mask
    if call.get("is_causal", 0):
        earlier = torch.ones(queries, keys, dtype=torch.bool, device=scores.device).tril(past)
        counts = earlier if counts is None else torch.logical_and(counts, earlier)
    return (scores, None) if counts is None else (torch.where(counts, scores, _MASKED), counts)


@operator("RotaryEmbedding")
def _rotary(call: Call, x: Inputs) -> Tensor:
    """Pairs of a head's numbers, turned by angles whose cosines and sines are given."""
    packed = x[0].dim() == 3
    values = _heads(x[0], call.get("num_heads"))
    width = call.get("rotary_embedding_dim", 0) or values.shape[-1]
    turned, rest = values[..., :width], values[..., width:]
    cosines, sines = (torch.nn.functional.embedding(x[3], t) if len(x) > 3 else t for t in (x[1], x[2]))
    cosines, sines = (t[..., : width // 2].unsqueeze(1) for t in (cosines, sines))
    if call.get("interleaved", 0):
        pairs = turned.reshape(*turned.shape[:-1], width // 2, 2)
        first, second = pairs[..., 0], pairs[..., 1]
    else:
        first, second = turned[..., : width // 2], turned[..., width // 2 :]
    real, imaginary = cosines * first - sines * second, sines * first + cosines * second
    if call.get("interleaved", 0):
        turned = torch.stack([real, imaginary], -1).flatten(-2)
    else:
        turned = torch.cat([real, imaginary], -1)
    y = torch.cat([turned, rest], -1) if rest.shape[-1] else turned
    return y.transpose(1, 2).flatten(2) if packed else y


@operator("SwiGLU")
def _gated_swish(call: Call, x: Inputs) -> Tensor:
    return x[0] * torch.sigmoid(call.get("alpha", 1.0) * x[0]) * x[1]
