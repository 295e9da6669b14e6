"""How a tensor lies in the accelerator's external memory: tile after tile, each a row of words as wide as the port.

`interface.json` gives a layout {"tile": t, "word": w} for each memory that is not in plain C order: a tensor of shape
n lies there as [n/t ..., t/w ..., w ...]. Where it gives `valid`, the accelerator's tensor is larger than the model's:
zeros lie behind an input, and what lies behind a result means nothing. Where a layout has `stripes`, the tensor lies in
so many memories: `stripe` is which of them this is, and of every word it has each so many-th element. Where it has
`room`, a word has room for so many elements, zeros behind its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Packed:
    """A tensor that stays as the accelerator's memories have it, by their arguments: it is not packed at each call."""

    def __init__(self, memories: Mapping[str, Array]) -> None:
        self.memories = dict(memories)


def to_memory(values: Array | Packed, entry: Mapping[str, Any]) -> Array:
    """The tensor as the accelerator reads it; dimensions of size 1 that the accelerator has dropped go here."""
    if isinstance(values, Packed):
        return values.memories[entry["argument"]]
    shape = tuple(entry["shape"])
    array = values.reshape(entry.get("valid", shape)).astype(entry["dtype"], copy=False)
    if array.shape != shape:
        array = np.pad(array, [(0, size - own) for size, own in zip(shape, array.shape)])
    if layout := entry.get("layout"):
        sizes = [_parts(n, t, w) for n, t, w in zip(shape, layout["tile"], layout["word"])]
        array = array.reshape([part for dim in sizes for part in dim])
        array = array.transpose([3 * dim + level for level in range(3) for dim in range(len(shape))])
        lanes, own = _lanes(layout), math.prod(layout["word"])
        if lanes > own:
            array = np.pad(array.reshape(-1, own), [(0, 0), (0, lanes - own)])
        if stripes := layout.get("stripes"):
            array = array.reshape(-1, lanes // stripes, stripes)[..., layout["stripe"]]
    return np.ascontiguousarray(array)


def memory_for(entry: Mapping[str, Any]) -> Array:
    """An empty memory for a result, or for what is sent there."""
    layout: Mapping[str, Any] = entry.get("layout") or {}
    if not layout:
        return np.zeros(math.prod(entry["shape"]), entry["dtype"])
    words = math.prod(entry["shape"]) // math.prod(layout["word"])
    return np.zeros(words * lanes_of(entry), entry["dtype"])


def from_memory(memory: Array, entry: Mapping[str, Any]) -> Array:
    """The tensor that the accelerator left in a memory."""
    shape = tuple(entry["shape"])
    if layout := entry.get("layout"):
        sizes = [_parts(n, t, w) for n, t, w in zip(shape, layout["tile"], layout["word"])]
        rank, own = len(shape), math.prod(layout["word"])
        if _lanes(layout) > own:
            memory = memory.reshape(-1, _lanes(layout))[:, :own]
        memory = memory.reshape([sizes[dim][level] for level in range(3) for dim in range(rank)])
        memory = memory.transpose([rank * level + dim for dim in range(rank) for level in range(3)])
    own = tuple(slice(size) for size in entry.get("valid", shape))
    return np.ascontiguousarray(memory.reshape(shape)[own])


def in_one_piece(memories: Sequence[Array]) -> list[Array]:
    """The same memories, one after the other in one: a list of calls then needs no copy of them."""
    whole = np.stack([memory.reshape(-1) for memory in memories])
    return [whole[number] for number in range(len(memories))]


def lanes_of(entry: Mapping[str, Any]) -> int:
    """The elements that a word of a memory has room for."""
    layout = entry.get("layout")
    return _lanes(layout) // int(layout.get("stripes", 1)) if layout else 1


def _lanes(layout: Mapping[str, Any]) -> int:
    return int(layout.get("room", 0)) or math.prod(layout["word"])


def _parts(size: int, tile: int, word: int) -> tuple[int, int, int]:
    return size // tile, tile // word, word
