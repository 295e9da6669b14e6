"""A set of examples, one row each, cut into the batches that a compiled model takes, and put back together."""

from __future__ import annotations

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError


def split_rows(rows: Array, shape: tuple[int, ...], where: str) -> Array:
    """Batches stacked along a new first axis; the last one is filled up with copies of the last row.

    A row is either a whole input of the model, or one entry of the input's first (batch) dimension.
    """
    if rows.shape[1:] == shape:
        return rows
    if not rows.shape or not len(rows) or not shape or rows.shape[1:] != shape[1:]:
        raise PenstockError(
            code="evaluation-shape",
            what=f"the evaluation inputs have shape {rows.shape}",
            where=where,
            limit=f"the model takes {shape}",
            hint=f"give one row an example: (number of examples, {', '.join(map(str, shape[1:])) or '...'})",
        )
    batch = shape[0]
    missing = -len(rows) % batch
    filled = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]) if missing else rows
    return filled.reshape(-1, *shape)


def join_rows(batches: Array, rows: Array, shape: tuple[int, ...]) -> Array:
    """The outputs of `split_rows`' batches, one row an example again."""
    if rows.shape[1:] == shape:
        return batches
    return batches.reshape(-1, *batches.shape[2:])[: len(rows)]
