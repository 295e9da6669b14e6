"""Numpy arrays as the words and tokens of a core's ports, and back: lane 0 lowest, in bytes as Verilator keeps them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.backend.rtl.design import RtlPort
from penstock.compiler.errors import PenstockError

Array = NDArray[Any]

_FLOATS = {"f16": "float16", "f32": "float32", "f64": "float64"}


def stride_of(width: int) -> int:
    """Bytes that Verilator takes for a signal of so many bits."""
    for limit, size in ((8, 1), (16, 2), (32, 4), (64, 8)):
        if width <= limit:
            return size
    return 4 * -(-width // 32)


def element_bits(element: str) -> int:
    if found := re.fullmatch(r"[suif]*(\d+)", element):
        return int(found.group(1))
    raise _unknown(element)


def dtype_of(element: str) -> np.dtype[Any]:
    """Integers of a width that numpy lacks lie sign-extended in the next larger type; i1 is bool."""
    if element in _FLOATS:
        return np.dtype(_FLOATS[element])
    bits = element_bits(element)
    if element[0] not in "iu" and not element.startswith("si"):
        raise _unknown(element)
    if bits == 1:
        return np.dtype(bool)
    size = next((size for size in (8, 16, 32, 64) if bits <= size), None)
    if size is None:
        raise _unknown(element)
    return np.dtype(f"{'u' if element.startswith('u') else ''}int{size}")


def lanes_of(port: RtlPort) -> int:
    return port.width // element_bits(port.element)


def encode(values: Array, port: RtlPort) -> bytes:
    """One row of lanes a word."""
    lanes, bits = lanes_of(port), element_bits(port.element)
    array = np.ascontiguousarray(np.asarray(values).reshape(-1, lanes), dtype_of(port.element))
    if bits == 8 * array.itemsize:
        raw = array.view(np.uint8).reshape(len(array), -1)
    else:
        wide = array.view(np.uint8).reshape(len(array), lanes, array.itemsize)
        one_by_one = np.unpackbits(wide, axis=2, bitorder="little")[:, :, :bits]
        raw = np.packbits(one_by_one.reshape(len(array), lanes * bits), axis=1, bitorder="little")
    padded = np.zeros((len(array), stride_of(port.width)), np.uint8)
    padded[:, : raw.shape[1]] = raw
    return padded.tobytes()


def decode(data: bytes, port: RtlPort) -> Array:
    """What `encode` takes, as an array of words and lanes."""
    lanes, bits, kind = lanes_of(port), element_bits(port.element), dtype_of(port.element)
    raw = np.frombuffer(data, np.uint8).reshape(-1, stride_of(port.width))
    if bits == 8 * kind.itemsize:
        return np.ascontiguousarray(raw[:, : lanes * kind.itemsize]).view(kind)
    one_by_one = np.unpackbits(raw, axis=1, bitorder="little")[:, : lanes * bits].reshape(len(raw), lanes, bits)
    if kind == np.dtype(bool):
        return one_by_one[:, :, 0].astype(bool)
    sign = one_by_one[:, :, -1:] if kind.kind == "i" else np.zeros_like(one_by_one[:, :, -1:])
    full = np.concatenate([one_by_one, np.repeat(sign, 8 * kind.itemsize - bits, axis=2)], axis=2)
    return np.packbits(full, axis=2, bitorder="little").view(kind).reshape(len(raw), lanes)


def _unknown(element: str) -> PenstockError:
    return PenstockError(
        code="element-type", what=f"elements of type {element} have no form in numpy",
        limit="integers up to 64 bits, f16, f32 and f64", hint="simulate a design with such elements only",
    )  # fmt: skip
