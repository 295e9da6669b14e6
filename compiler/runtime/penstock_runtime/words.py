"""Tensors as the words of a board's frame buffers: whole bytes a word, the first element lowest."""

from __future__ import annotations

import numpy as np

from .errors import PackageError
from .ports import Array

BITS = {"f32": 32, "f64": 64, "index": 64}


def element_bits(element: str) -> int:
    """The width of an element type as the IR prints it: i8, f32."""
    if element in BITS:
        return BITS[element]
    if element[:1] == "i" and element[1:].isdigit():
        return int(element[1:])
    raise PackageError(f"elements of type {element!r} cannot be sent to a board", "use another backend")


def to_words(memory: Array, element: str, word_bits: int) -> bytes:
    """A tensor, in the order in which it lies in memory, as the bytes of whole words."""
    flat, bits = np.ascontiguousarray(memory).reshape(-1), element_bits(element)
    lanes = word_bits // bits
    if lanes * bits != word_bits or flat.size % lanes:
        raise PackageError(f"{flat.size} elements of {element} do not fill words of {word_bits} bits", "fetch it again")
    if bits == 8 * flat.itemsize:
        return flat.tobytes()
    planes = (flat.astype(np.int64).reshape(-1, lanes, 1) >> np.arange(bits)) & 1
    return np.packbits(planes.reshape(len(planes), -1).astype(np.uint8), axis=1, bitorder="little").tobytes()


def from_words(data: bytes, element: str, word_bits: int, dtype: str) -> Array:
    """The elements, in memory order, of the bytes of whole words; integers are signed as their numpy type is."""
    bits, wanted = element_bits(element), np.dtype(dtype)
    if bits == 8 * wanted.itemsize:
        return np.frombuffer(data, wanted.newbyteorder("<")).astype(wanted)
    rows = np.frombuffer(data, np.uint8).reshape(-1, (word_bits + 7) // 8)
    planes = np.unpackbits(rows, axis=1, bitorder="little", count=word_bits).reshape(-1, bits).astype(np.int64)
    values: Array = np.sum(planes << np.arange(bits), axis=1)
    if wanted.kind == "i" and bits < 64:
        values = values - ((values >= 1 << (bits - 1)) * (1 << bits))
    return values.astype(wanted)
