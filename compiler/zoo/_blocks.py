"""What the decoder blocks of the zoo share: example inputs, random weights, weights from a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from penstock.compiler.errors import PenstockError
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
        weights: str = "",
        prefix: str = "",
        seed: int = 0,
    ) -> ModuleAndInputs:
        """What is not given (0, or -1 for the cache) comes from size and mode."""
        sizes = sizes_of(name, size=size, mode=mode, d=d, heads=heads, kv=kv, head=head, ffn=ffn, seq=seq, cache=cache)
        return finish(kind(sizes), attention_inputs(sizes, seed, rotary=True), seed, weights, prefix)

    return build


def finish(
    module: nn.Module, inputs: tuple[torch.Tensor, ...], seed: int, weights: str, prefix: str
) -> ModuleAndInputs:
    """The module with its weights: from the file if there is one, else random, the same for the same seed."""
    if next(module.parameters()).is_meta:
        return module.eval(), inputs  # only shapes are asked for
    if weights:
        load_weights(module, Path(weights), prefix)
    else:
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


def load_weights(module: nn.Module, path: Path, prefix: str) -> None:
    """By name, from a safetensors file: a format of plain numbers that runs no code."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        raise PenstockError(code="weights-file", what="the file does not exist", where=str(path), hint="check the path")
    try:
        opened: Any = safe_open(path, framework="pt")  # reads single tensors; the whole file may be large
        with opened as file, torch.no_grad():
            present: set[str] = set(file.keys())
            for name, parameter in module.named_parameters():
                if prefix + name not in present:
                    raise PenstockError(
                        code="weights-file", what=f"there is no tensor {prefix + name!r}", where=str(path),
                        limit=f"it holds, for example, {', '.join(sorted(present)[:4])}",
                        hint="give what stands before the block's own names, e.g. prefix=model.layers.0.",
                    )  # fmt: skip
                value: torch.Tensor = file.get_tensor(prefix + name)
                if value.shape != parameter.shape:
                    raise PenstockError(
                        code="weights-file", what=f"{prefix + name} has shape {tuple(value.shape)}", where=str(path),
                        limit=f"the model's is {tuple(parameter.shape)}", hint="give the file's own sizes",
                    )  # fmt: skip
                parameter.copy_(value)
    except SafetensorError as error:
        raise PenstockError(
            code="weights-file", what=f"not a safetensors file: {error}", where=str(path), hint="check the file"
        ) from error


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
