"""Numpy arrays as the words and tokens of a core's ports, and back: lane 0 lowest, in bytes as Verilator keeps them."""

from __future__ import annotations

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.backend.rtl.design import RtlPort
from penstock.compiler.scalars.number_types import named


def stride_of(width: int) -> int:
    """Bytes that Verilator takes for a signal of so many bits."""
    for limit, size in ((8, 1), (16, 2), (32, 4), (64, 8)):
        if width <= limit:
            return size
    return 4 * -(-width // 32)


def lanes_of(port: RtlPort) -> int:
    return port.width // named(port.element).bits


def encode(values: Array, port: RtlPort) -> bytes:
    """One row of lanes a word."""
    lanes, number = lanes_of(port), named(port.element)
    array = np.ascontiguousarray(np.asarray(values).reshape(-1, lanes), number.dtype)
    if number.is_native:
        raw = array.view(np.uint8).reshape(len(array), -1)
    else:
        wide = array.view(np.uint8).reshape(len(array), lanes, array.itemsize)
        one_by_one = np.unpackbits(wide, axis=2, bitorder="little")[:, :, : number.bits]
        raw = np.packbits(one_by_one.reshape(len(array), lanes * number.bits), axis=1, bitorder="little")
    padded = np.zeros((len(array), stride_of(port.width)), np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.tobytes()


def decode(data: bytes, port: RtlPort) -> Array:
    """What `encode` takes, as an array of words and lanes."""
    lanes, number = lanes_of(port), named(port.element)
    bits, kind = number.bits, number.dtype
    raw = np.frombuffer(data, np.uint8).reshape(-1, stride_of(port.width))
    if number.is_native:
        return np.ascontiguousarray(raw[:, : lanes * kind.itemsize]).view(kind)
    one_by_one = np.unpackbits(raw, axis=1, bitorder="little")[:, : lanes * bits].reshape(len(raw), lanes, bits)
    if kind == np.dtype(bool):
        return one_by_one[:, :, 0].astype(bool)
    full = np.concatenate([one_by_one, np.repeat(one_by_one[:, :, -1:], 8 * kind.itemsize - bits, axis=2)], axis=2)
    return np.packbits(full, axis=2, bitorder="little").view(kind).reshape(len(raw), lanes)
