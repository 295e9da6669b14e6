"""Example inputs: random, the same each time, and without memory where only shapes are looked at."""

from __future__ import annotations

import torch


def only_shapes() -> bool:
    return torch.get_default_device().type == "meta"


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    if only_shapes():
        return torch.empty(shape)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), device="cpu")


def numbers(least: int, count: int, *shape: int, seed: int = 1) -> torch.Tensor:
    """Whole numbers from `least` up to below `count`, as look-ups take them."""
    if only_shapes():
        return torch.empty(shape, dtype=torch.int64)
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(min(least, count - 1), count, shape, generator=generator, device="cpu")
