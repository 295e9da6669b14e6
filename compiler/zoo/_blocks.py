"""What the decoder blocks of the zoo share: example inputs and random weights."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from penstock.compiler.zoo._sizes import sizes_of
from penstock.compiler.zoo._transformer import TransformerSizes

ModuleAndInputs = tuple[nn.Module, tuple[torch.Tensor, ...]]


def rotary_block(name: str, kind: Callable[[TransformerSizes], nn.Module]) -> Callable[..., ModuleAndInputs]:
    """The `build` of a decoder block with rotary positions and grouped queries."""

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
        seed: int = 0,
    ) -> ModuleAndInputs:
        """What is not given (0, or -1 for the cache) comes from size and mode."""
        sizes = sizes_of(name, size=size, mode=mode, d=d, heads=heads, kv=kv, head=head, ffn=ffn, seq=seq, cache=cache)
        return finish(kind(sizes), attention_inputs(sizes, seed, rotary=True), seed)

    return build


def finish(module: nn.Module, inputs: tuple[torch.Tensor, ...], seed: int) -> ModuleAndInputs:
    """The module with random weights, the same for the same seed."""
    if not next(module.parameters()).is_meta:  # else only shapes are asked for
        randomise(module, seed)
    return module.eval(), inputs


def randomise(module: nn.Module, seed: int) -> None:
    """Matrices keep the magnitude of what they multiply; vectors (norms, biases) stay near where they start."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for part in module.modules():
            bias = part.bias if isinstance(part, nn.Linear) else None
            if bias is not None:  # PyTorch starts it from a generator of its own
                bias.zero_()
        for parameter in module.parameters():
            numbers = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                parameter.copy_(numbers * min(parameter.shape) ** -0.5)
            else:
                parameter.add_(numbers * 0.1)


def attention_inputs(s: TransformerSizes, seed: int, *, rotary: bool) -> tuple[torch.Tensor, ...]:
    """x, mask, the rotary tables where there are some, and the cache if it is not empty."""
    generator = torch.Generator().manual_seed(seed + 1)
    total = s.cache + s.seq
    inputs = [torch.randn(s.seq, s.d, generator=generator), causal_mask(s)]
    if rotary:
        steps = torch.arange(s.cache, total).unsqueeze(1)
        angles = steps * 10_000.0 ** (-torch.arange(0, s.head, 2) / s.head)
        inputs += [torch.cos(angles), torch.sin(angles)]
    if s.cache:
        inputs += [torch.randn(s.cache, s.kv, s.head, generator=generator) for _ in range(2)]
    return tuple(inputs)


def causal_mask(s: TransformerSizes) -> torch.Tensor:
    """[seq, cache + seq]: one where a token may look, zero at those after it."""
    positions = torch.arange(s.cache + s.seq)
    return (positions <= torch.arange(s.cache, s.cache + s.seq).unsqueeze(1)).to(torch.float32)
