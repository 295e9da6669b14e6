"""The parts of decoder blocks in plain torch, in the form that suits dataflow: no batch, nothing hidden.

Mask, rotary tables and the key-value cache are inputs; the new keys and values are results, and the host keeps the
cache. Heads that share keys and values are rows of one product, so nothing is repeated. Parameters have the names of
the published checkpoints, so that these load by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class TransformerSizes:
    """`cache` is how many earlier tokens the attention sees; `seq` how many it adds."""

    d: int
    heads: int
    kv: int
    head: int
    ffn: int
    seq: int
    cache: int


class RmsNorm(nn.Module):
    """`offset` is added to the weight: some families store it as its distance from one."""

    def __init__(self, size: int, epsilon: float = 1e-6, offset: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) - offset)
        self.epsilon, self.offset = epsilon, offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + self.epsilon)
        return x * scale * (self.weight + self.offset if self.offset else self.weight)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary positions on [seq, heads, head], the two halves of a head as real and imaginary part."""
    real, imaginary = x.chunk(2, -1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return torch.cat([real * cos - imaginary * sin, imaginary * cos + real * sin], -1)


_BELOW = 8.0
"""How far below zero a hidden score counts: about where scores lie, so that it takes no room from them in integers."""


def attend(q: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """q [seq, heads, head]; keys and values [all, kv, head]; mask [seq, all] of ones (seen) and zeros (hidden).

    The weights are divided by their sum after they have met the values: fewer divisions, the same result. What is
    subtracted before the exponential is the largest of the seen scores, so that in every row some weight is about one:
    with the largest of all, a row that sees small scores only would have weights too small for eight bits.
    """
    seq, heads, head = q.shape
    total, kv, _ = keys.shape
    rows = q.view(seq, kv, heads // kv, head).permute(1, 2, 0, 3).reshape(kv, heads // kv * seq, head)
    scores = torch.bmm(rows, keys.permute(1, 2, 0)).view(heads, seq, total) * scale
    seen = scores * mask + (mask - 1.0) * _BELOW
    weights = torch.exp(torch.clamp(scores - seen.amax(-1, keepdim=True), max=0.0)) * mask
    mixed = torch.bmm(weights.view(kv, heads // kv * seq, total), values.permute(1, 0, 2)).view(heads, seq, head)
    mixed = mixed / weights.sum(-1, keepdim=True)
    return mixed.permute(1, 0, 2).reshape(seq, heads * head)


class SelfAttention(nn.Module):
    def __init__(self, sizes: TransformerSizes, *, bias: bool = False, norm: bool = False, offset: float = 0.0) -> None:
        super().__init__()
        s = self.sizes = sizes
        self.q_proj = nn.Linear(s.d, s.heads * s.head, bias=bias)
        self.k_proj = nn.Linear(s.d, s.kv * s.head, bias=bias)
        self.v_proj = nn.Linear(s.d, s.kv * s.head, bias=bias)
        self.o_proj = nn.Linear(s.heads * s.head, s.d, bias=False)
        self.q_norm = RmsNorm(s.head, offset=offset) if norm else nn.Identity()
        self.k_norm = RmsNorm(s.head, offset=offset) if norm else nn.Identity()

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        key_cache: torch.Tensor | None,
        value_cache: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        s, seq = self.sizes, x.shape[0]
        q = rotate(self.q_norm(self.q_proj(x).view(seq, s.heads, s.head)), cos, sin)
        k = rotate(self.k_norm(self.k_proj(x).view(seq, s.kv, s.head)), cos, sin)
        v = self.v_proj(x).view(seq, s.kv, s.head)
        keys = k if key_cache is None else torch.cat([key_cache, k])
        values = v if value_cache is None else torch.cat([value_cache, v])
        return self.o_proj(attend(q, keys, values, mask, s.head**-0.5)), k, v


class GatedFeedForward(nn.Module):
    def __init__(self, d: int, ffn: int, activation: str = "silu") -> None:
        super().__init__()
        self.gate_proj = nn.Linear(d, ffn, bias=False)
        self.up_proj = nn.Linear(d, ffn, bias=False)
        self.down_proj = nn.Linear(ffn, d, bias=False)
        self.activation = activation

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = self.gate_proj(x)
        gate = functional.silu(gate) if self.activation == "silu" else functional.gelu(gate, approximate="tanh")
        return self.down_proj(gate * self.up_proj(x))


class LlamaBlock(nn.Module):
    """Llama, and Qwen2 with `bias` on the queries, keys and values."""

    def __init__(self, sizes: TransformerSizes, *, bias: bool = False) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(sizes.d)
        self.self_attn = SelfAttention(sizes, bias=bias)
        self.post_attention_layernorm = RmsNorm(sizes.d)
        self.mlp = GatedFeedForward(sizes.d, sizes.ffn)

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        key_cache: torch.Tensor | None = None,
        value_cache: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mixed, k, v = self.self_attn(self.input_layernorm(x), mask, cos, sin, key_cache, value_cache)
        x = x + mixed
        return x + self.mlp(self.post_attention_layernorm(x)), k, v


class GemmaBlock(nn.Module):
    """Gemma 3: norms before and after both halves, and on queries and keys."""

    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(sizes.d, offset=1.0)
        self.self_attn = SelfAttention(sizes, norm=True, offset=1.0)
        self.post_attention_layernorm = RmsNorm(sizes.d, offset=1.0)
        self.pre_feedforward_layernorm = RmsNorm(sizes.d, offset=1.0)
        self.mlp = GatedFeedForward(sizes.d, sizes.ffn, "gelu")
        self.post_feedforward_layernorm = RmsNorm(sizes.d, offset=1.0)

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor,
        cos: torch.Tensor,
        sin: torch.Tensor,
        key_cache: torch.Tensor | None = None,
        value_cache: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mixed, k, v = self.self_attn(self.input_layernorm(x), mask, cos, sin, key_cache, value_cache)
        x = x + self.post_attention_layernorm(mixed)
        y = self.mlp(self.pre_feedforward_layernorm(x))
        return x + self.post_feedforward_layernorm(y), k, v


class Conv1d(nn.Module):
    """A linear layer whose weight is stored as it is multiplied; GPT-2's checkpoints have these."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + self.bias


class Gpt2Attention(nn.Module):
    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.c_attn = Conv1d(sizes.d, 3 * sizes.d)
        self.c_proj = Conv1d(sizes.d, sizes.d)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor, key_cache: torch.Tensor | None, value_cache: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        s, parts = self.sizes, zip(self.c_attn.weight.chunk(3, 1), self.c_attn.bias.chunk(3), strict=True)
        q, k, v = ((x @ weight + bias).view(x.shape[0], s.heads, s.head) for weight, bias in parts)
        keys = k if key_cache is None else torch.cat([key_cache, k])
        values = v if value_cache is None else torch.cat([value_cache, v])
        return self.c_proj(attend(q, keys, values, mask, s.head**-0.5)), k, v


class Gpt2FeedForward(nn.Module):
    def __init__(self, d: int, ffn: int) -> None:
        super().__init__()
        self.c_fc, self.c_proj = Conv1d(d, ffn), Conv1d(ffn, d)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Gpt2Block(nn.Module):
    def __init__(self, sizes: TransformerSizes) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(sizes.d), nn.LayerNorm(sizes.d)
        self.attn = Gpt2Attention(sizes)
        self.mlp = Gpt2FeedForward(sizes.d, sizes.ffn)

    def forward(
        self,
        x: torch.Tensor,
        mask: torch.Tensor,
        key_cache: torch.Tensor | None = None,
        value_cache: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mixed, k, v = self.attn(self.ln_1(x), mask, key_cache, value_cache)
        x = x + mixed
        return x + self.mlp(self.ln_2(x)), k, v
