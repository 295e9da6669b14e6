"""Dims that have few divisors, padded a little so that tiles and lanes of powers of two fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from penstock.compiler.transforms.pad_dims import Dims

MOST_WASTE = 1 / 6
"""Of a dim's own size: what padding may add to it."""


def padded_sizes(dims: Dims, tile: int, fixed: Collection[str]) -> Mapping[int, int]:
    """New sizes for the dims that gain whole tiles of powers of two; layers that are `fixed` keep theirs."""
    operations = dims.graph.operations
    held = {dims.of_loop(op, d) for op in operations if op.layer in fixed for d in range(len(op.trips))}
    found: dict[int, int] = {}
    for number in dims.paddable:
        padded = padded_size(size := dims.sizes[number], tile)
        if padded != size and number not in held:
            found[number] = padded
    return found


def can_pad(dims: Dims, tiles: Sequence[int], fixed: Collection[str]) -> bool:
    """Whether padding changes anything for any tile size."""
    return any(padded_sizes(dims, tile, fixed) for tile in tiles)


def padded_size(size: int, tile: int) -> int:
    """Up to the next multiple of the largest power of two, at most a tile, that wastes little."""
    unit = 1 << (tile.bit_length() - 1)
    while (grown := -(-size // unit) * unit) > size * (1 + MOST_WASTE):
        unit //= 2
    return grown
