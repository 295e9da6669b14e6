"""A GPT-2 block: layer norms, multi-head attention, a feed-forward with GELU."""

from __future__ import annotations

from penstock.compiler.zoo._blocks import ModuleAndInputs, attention_inputs, finish
from penstock.compiler.zoo._sizes import sizes_of
from penstock.compiler.zoo._transformer import Gpt2Block


def build(
    size: str = "tiny",
    mode: str = "prefill",
    d: int = 0,
    heads: int = 0,
    ffn: int = 0,
    seq: int = 0,
    cache: int = -1,
    seed: int = 0,
) -> ModuleAndInputs:
    """What is not given (0, or -1 for the cache) comes from size and mode."""
    sizes = sizes_of("gpt2", size=size, mode=mode, d=d, heads=heads, ffn=ffn, seq=seq, cache=cache)
    return finish(Gpt2Block(sizes), attention_inputs(sizes, seed, rotary=False), seed)
