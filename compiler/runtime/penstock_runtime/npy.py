"""One array in numpy's file format, whatever the bytes: nothing is read that is larger than the file says it is.

numpy's own reader fails at damaged headers in as many ways as Python does. Here a header is one literal, checked.
"""

from __future__ import annotations

import ast
import math
import re
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

from .ports import Array

MOST_HEADER = 4096
_MAGIC = b"\x93NUMPY"
_LENGTHS = {(1, 0): "<H", (2, 0): "<I"}
_NUMBERS = re.compile(r"[<>|=]?[biufUV][0-9]{1,8}")
_MOST_DIMS, _MOST_PLACES = 32, 1 << 62
_OF_PYTHON_2 = re.compile(r"(?<=[0-9])L")


class BadArraysError(Exception):
    """What is wrong with a file of arrays, and which limit it is above."""

    def __init__(self, what: str, limit: str = "") -> None:
        super().__init__(what)
        self.what, self.limit = what, limit


@dataclass(frozen=True)
class Header:
    """What comes behind it: the numbers, the first dim last where they are in columns."""

    shape: tuple[int, ...]
    dtype: Any
    in_columns: bool

    @property
    def size(self) -> int:
        return math.prod(self.shape) * int(self.dtype.itemsize)


def read_header(file: Any, size: int, where: str) -> Header:
    """The header of an array in a file of `size` bytes, which are enough for what it says."""
    start = file.read(len(_MAGIC) + 2)
    if len(start) < len(_MAGIC) + 2 or not start.startswith(_MAGIC):
        raise BadArraysError(f"{where} is no file of arrays: {'it begins otherwise' if start else 'it ends early'}")
    version = start[-2], start[-1]
    if version not in _LENGTHS:
        raise BadArraysError(f"{where} has a header of version {version}")
    said = file.read(struct.calcsize(_LENGTHS[version]))
    length = struct.unpack(_LENGTHS[version], said)[0] if len(said) == struct.calcsize(_LENGTHS[version]) else 0
    if length > MOST_HEADER:
        raise BadArraysError(f"{where} has a header of {length} bytes", f"at most {MOST_HEADER}")
    text = file.read(length)
    if not length or len(text) < length:
        raise BadArraysError(f"{where} is no file of arrays: it ends early")
    header = _header(text.decode("latin1"), where)
    if header.size > size:
        raise BadArraysError(f"{where} says that it has shape {header.shape}, for which its {size} bytes are too few")
    return header


def _header(text: str, where: str) -> Header:
    try:
        found: Any = ast.literal_eval(_OF_PYTHON_2.sub("", text).strip())
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:  # all that it says it raises
        raise BadArraysError(f"{where} has a header that says nothing: {type(error).__name__}") from error
    if not _is_a(dict, found) or set(found) != {"descr", "fortran_order", "shape"}:
        raise BadArraysError(f"{where} has a header that says nothing: it is no description of an array")
    shape, descr, in_columns = found["shape"], found["descr"], found["fortran_order"]
    if not _is_a(tuple, shape) or not _is_a(bool, in_columns) or not all(_is_a(int, n) for n in shape):
        raise BadArraysError(f"{where} has a header that says nothing: its shape is {str(shape)[:80]}")
    if any(n < 0 for n in shape) or len(shape) > _MOST_DIMS:
        raise BadArraysError(f"{where} is no file of arrays: its shape is {str(shape)[:80]}")
    dtype = _dtype(descr)
    if dtype is None:
        raise BadArraysError(f"{where} holds {str(descr)[:80]}, which is no plain number")
    if math.prod(n for n in shape if n) * int(dtype.itemsize) > _MOST_PLACES:
        raise BadArraysError(f"{where} says that it has shape {str(shape)[:80]}, for which its bytes are too few")
    return Header(shape, dtype, in_columns)


def _is_a(kind: type, value: object) -> bool:
    """Exactly: True is no size of a dim."""
    return type(value) is kind


def _dtype(descr: Any) -> Any:
    """A kind of plain numbers, or of words; None where it is another."""
    if not isinstance(descr, str) or _NUMBERS.fullmatch(descr) is None:
        return None
    try:
        found = np.dtype(descr)
    except TypeError:  # a size that its kind does not have
        return None
    return found if found.itemsize else None


def read_values(file: Any, header: Header, where: str) -> Array:
    """The numbers that come behind a header."""
    held, at = bytearray(header.size), 0
    while at < len(held):
        got = file.readinto(memoryview(held)[at:])
        if not got:
            raise BadArraysError(f"{where} is no file of arrays: it ends early")
        at += got
    return np.frombuffer(held, header.dtype).reshape(header.shape, order="F" if header.in_columns else "C")
