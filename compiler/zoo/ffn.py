"""The gated feed-forward of today's decoder blocks, alone."""

from __future__ import annotations

import torch

from penstock.compiler.errors import PenstockError
from penstock.compiler.zoo._blocks import ModuleAndInputs, finish
from penstock.compiler.zoo._transformer import GatedFeedForward

ACTIVATIONS = ("silu", "gelu")


def build(
    d: int = 16,
    ffn: int = 24,
    seq: int = 4,
    activation: str = "silu",
    seed: int = 0,
) -> ModuleAndInputs:
    if min(d, ffn, seq) < 1 or activation not in ACTIVATIONS:
        raise PenstockError(
            code="bad-option", what=f"d={d}, ffn={ffn}, seq={seq}, activation={activation!r}", where="zoo:ffn",
            limit=f"whole numbers of at least 1; activations: {', '.join(ACTIVATIONS)}",
            hint="for example zoo:ffn?d=16&ffn=24&activation=gelu",
        )  # fmt: skip
    x = torch.randn(seq, d, generator=torch.Generator().manual_seed(seed + 1))
    return finish(GatedFeedForward(d, ffn, activation), (x,), seed)
