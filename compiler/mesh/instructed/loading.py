"""Programs as what is loaded: a number, a field and a value a token; what engines have in common is said once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from penstock.compiler.jit import Ints
from penstock.compiler.mesh.instructed.array import ALL, GO, KINDS
from penstock.compiler.mesh.instructed.programs import ArrayProgram


def engine_number(kind: str, row: int, column: int) -> int:
    return KINDS.index(kind) << 12 | row << 6 | column


def tokens_of(program: ArrayProgram) -> Ints:
    """Rows of engine, field and value, in the order in which they are loaded; the last one begins the run."""
    by_field: dict[tuple[str, int], dict[tuple[int, int], int]] = defaultdict(dict)
    for (kind, row, column), fields in program.engines.items():
        for index, value in fields.items():
            by_field[kind, index][row, column] = value & 0xFFFFFFFF
    # who is not in use has one field: that it is not
    rows: list[tuple[int, int, int]] = []
    for (kind, index), values in by_field.items():
        rows += [(engine_number(kind, *place), index, value) for place, value in _together(values)]
    return np.array([*rows, (GO, 0, 0)], np.int64)


def _together(values: dict[tuple[int, int], int]) -> list[tuple[tuple[int, int], int]]:
    """The fewest of: one for all, one a column, one a row, one each."""
    choices = [
        {(ALL, ALL): set(values.values())},
        _grouped(values, lambda at: (ALL, at[1])),
        _grouped(values, lambda at: (at[0], ALL)),
        {at: {value} for at, value in values.items()},
    ]
    fitting = [choice for choice in choices if all(len(found) == 1 for found in choice.values())]
    best = min(fitting, key=len)
    return [(at, next(iter(found))) for at, found in best.items()]


def _grouped(
    values: dict[tuple[int, int], int], place: Callable[[tuple[int, int]], tuple[int, int]]
) -> dict[tuple[int, int], set[int]]:
    found: dict[tuple[int, int], set[int]] = defaultdict(set)
    for at, value in values.items():
        found[place(at)].add(value)
    return found


def packed(tokens: Ints) -> Ints:
    """A token as the port takes it: whose and which field below, the value above."""
    return (tokens[:, 2] << 32 | tokens[:, 1] << 16 | tokens[:, 0]).astype(np.int64)
