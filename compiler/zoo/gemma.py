"""A Gemma 3 block: norms around both halves and on queries and keys, GELU gates, one key-value head."""

from __future__ import annotations

from penstock.compiler.zoo._blocks import rotary_block
from penstock.compiler.zoo._transformer import GemmaBlock

build = rotary_block("gemma", GemmaBlock)
