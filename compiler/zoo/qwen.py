"""A Qwen2 block: Llama's, with biases on queries, keys and values."""

from __future__ import annotations

from functools import partial

from penstock.compiler.zoo._blocks import rotary_block
from penstock.compiler.zoo._transformer import LlamaBlock

build = rotary_block("qwen", partial(LlamaBlock, bias=True))
