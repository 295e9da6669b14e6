"""How a tensor lies in external memory: tile after tile, in words as wide as the port. Plain numpy.

A tensor of shape n with tile t and word w becomes [n/t ..., t/w ..., w ...] in C order, so that what is read together
lies together, and one access moves one word. A tensor that is striped lies in several banks: of every word each has the
elements whose number leaves the same rest, so that all banks together deliver a word at once. Where a word has room for
more than its elements, zeros lie behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from penstock.compiler.arrays import Array


@dataclass(frozen=True)
class Layout:
    """`word` divides `tile`, `tile` divides the tensor, dim by dim."""

    tile: tuple[int, ...]
    word: tuple[int, ...]
    stripes: int = 1
    """The banks that every word is shared out to."""
    stripe: int | None = None
    """Of which of them this is the layout; None for the tensor as a whole."""
    room: int = 0
    """How many elements a word has room for; 0 where they are its own."""

    @property
    def lanes(self) -> int:
        """How many elements one word has room for."""
        return self.room or prod(self.word)

    @property
    def lanes_of_stripe(self) -> int:
        """How many of these one bank has."""
        return self.lanes // self.stripes

    def part(self, stripe: int) -> Layout:
        """How the share of one bank lies there."""
        return replace(self, stripe=stripe)

    def words(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape in words: the grid of tiles, then the words of one tile."""
        grid = tuple(n // t for n, t in zip(shape, self.tile, strict=True))
        return grid + tuple(t // w for t, w in zip(self.tile, self.word, strict=True))

    def packed(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape in elements, as it lies in memory."""
        if self.stripe is not None:
            return (*self.words(shape), self.lanes_of_stripe)
        return (*self.words(shape), *((self.room,) if self.room else self.word))


def pack(array: Array, layout: Layout) -> Array:
    """The tensor as it lies in memory."""
    rank = array.ndim
    split = [f for n, t, w in zip(array.shape, layout.tile, layout.word, strict=True) for f in (n // t, t // w, w)]
    order = [*range(0, 3 * rank, 3), *range(1, 3 * rank, 3), *range(2, 3 * rank, 3)]
    whole = array.reshape(split).transpose(order)
    grid = whole.shape[: 2 * rank]
    if layout.room:
        own = prod(layout.word)
        whole = np.pad(whole.reshape(*grid, own), [*[(0, 0)] * len(grid), (0, layout.room - own)])
    if layout.stripe is None:
        return np.ascontiguousarray(whole)
    words = whole.reshape(*grid, layout.lanes_of_stripe, layout.stripes)
    return np.ascontiguousarray(words[..., layout.stripe])


def unpack(array: Array, layout: Layout, shape: Sequence[int]) -> Array:
    """The tensor of this shape that lies in memory so, in one piece."""
    assert layout.stripe is None, "one bank has a share of the tensor only"
    rank = len(shape)
    order = [axis for dim in range(rank) for axis in (dim, rank + dim, 2 * rank + dim)]
    own = array.reshape(layout.packed(shape))
    if layout.room:
        own = own[..., : prod(layout.word)].reshape(*layout.words(shape), *layout.word)
    return own.transpose(order).reshape(tuple(shape))


def pad(array: Array, shape: tuple[int, ...]) -> Array:
    """The array with zeros behind it in each dim."""
    if array.shape == shape:
        return array
    if not any(array.strides):  # one zero that is seen everywhere
        return np.broadcast_to(array.reshape(-1)[0], shape)
    return np.pad(array, [(0, size - have) for size, have in zip(shape, array.shape, strict=True)])


def crop(array: Array, shape: tuple[int, ...]) -> Array:
    """The array without its padding."""
    return array[tuple(slice(size) for size in shape)]
