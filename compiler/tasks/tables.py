"""Tables: arrays whose numbers are known and that nothing stores into. They lie on the chip as weights do."""

from __future__ import annotations

import ast
import base64
import binascii
from functools import lru_cache
from math import prod

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.tasks.kinds import TileKind, is_fixed
from penstock.compiler.tasks.tiles import TileValues
from penstock.compiler.tasks.tree import Const, Memory
from penstock.compiler.tasks.values import ReadValue

ENCODED = "base64:"
"""Before a table as text: its numbers row by row, the lowest byte first."""
_STORED = {"i8": np.dtype("<i1"), "i16": np.dtype("<i2"), "i32": np.dtype("<i4"), "f32": np.dtype("<f4")}


def encoded(values: Array) -> str:
    """A table as text."""
    return ENCODED + base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def table_of(values: TileValues, node: ast.AST, given: ReadValue, kind: TileKind) -> Array | None:
    """The numbers of a declaration: a tuple of the array's shape, or a text. None of what makes no table."""
    stored = _STORED.get(kind.dtype)
    if isinstance(given, str):
        found = None if stored is None else _decoded(given, stored.str, kind.shape)
        if found is None:
            raise values.error(
                node, f"the text is no table of {kind}", "write the numbers as a tuple",
                f"{ENCODED}... of {prod(kind.shape)} numbers, the lowest byte first",
            )  # fmt: skip
        return found
    if not isinstance(given, tuple) or stored is None or is_fixed(kind.dtype):
        return None
    rows = _flat(given, kind.shape)
    if rows is None:
        return None
    numbers = [values.cast(node, one, TileKind(kind.dtype)) for one in rows]
    return np.array([one.value for one in numbers if isinstance(one, Const)], stored).reshape(kind.shape)


def table_memory(values: TileValues, node: ast.AST, name: str, kind: TileKind, given: ReadValue) -> Memory | None:
    """A memory of numbers that are known, or none of other values."""
    table = table_of(values, node, given, kind)
    return None if table is None else Memory(name, kind.dtype, kind.shape, False, (0,) * len(kind.shape), table)


def kept_once(arrays: dict[str, Memory], table: Memory) -> Memory:
    """The table among a task's arrays: an unrolled loop may declare several of one name."""
    key = table.name
    while (known := arrays.setdefault(key, table)) is not table and known.parameter != table.parameter:
        key = f"{key}_"
    return known


def _flat(given: ReadValue, shape: tuple[int, ...]) -> list[int | float] | None:
    """The numbers of nested tuples of that shape."""
    if not shape:
        return [given] if isinstance(given, int | float) and not isinstance(given, bool) else None
    if not isinstance(given, tuple) or len(given) != shape[0]:
        return None
    found: list[int | float] = []
    for one in given:
        inner = _flat(one, shape[1:])
        if inner is None:
            return None
        found += inner
    return found


@lru_cache(maxsize=256)
def _decoded(text: str, dtype: str, shape: tuple[int, ...]) -> Array | None:
    try:
        raw = base64.b64decode(text.removeprefix(ENCODED).encode(), validate=True)
    except (binascii.Error, ValueError):
        return None
    if not text.startswith(ENCODED) or len(raw) != prod(shape) * np.dtype(dtype).itemsize:
        return None
    found = np.frombuffer(raw, dtype).reshape(shape)
    return found if found.dtype.kind != "f" or bool(np.isfinite(found).all()) else None
