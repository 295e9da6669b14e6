"""A Gemma 3 block: norms around both halves and on queries and keys, GELU gates, one key-value head."""

from __future__ import annotations

from penstock.compiler.zoo._blocks import ModuleAndInputs, attention_inputs, finish
from penstock.compiler.zoo._sizes import sizes_of
from penstock.compiler.zoo._transformer import GemmaBlock


def build(
    size: str = "tiny",
    mode: str = "prefill",
    d: int = 0,
    heads: int = 0,
    kv: int = 0,
    head: int = 0,
    ffn: int = 0,
    seq: int = 0,
    cache: int = -1,
    weights: str = "",
    prefix: str = "",
    seed: int = 0,
) -> ModuleAndInputs:
    """What is not given (0, or -1 for the cache) comes from size and mode."""
    sizes = sizes_of("gemma", size=size, mode=mode, d=d, heads=heads, kv=kv, head=head, ffn=ffn, seq=seq, cache=cache)
    return finish(GemmaBlock(sizes), attention_inputs(sizes, seed, rotary=True), seed, weights, prefix)
