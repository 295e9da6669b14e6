"""A Llama block: root-mean-square norms, rotary positions, grouped queries, a gated feed-forward."""

from __future__ import annotations

from penstock.compiler.zoo._blocks import rotary_block
from penstock.compiler.zoo._transformer import LlamaBlock

build = rotary_block("llama", LlamaBlock)
