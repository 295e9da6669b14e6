"""Whether weights are whole numbers times a scale a channel, as in quantised models: which numbers, and what scale."""

from __future__ import annotations

import numpy as np

from penstock.compiler.arrays import Array

_MOST = 255
"""Whole numbers of nine bits with their sign: what is left of eight without one behind a zero point."""
_SAMPLE = 64
_ROUNDING = 2.0**-22
"""Twice what a float32 may be off, relative to it, that stands for a whole number times a scale."""


def find_grid(rows: Array) -> tuple[Array, Array] | None:
    """Of weights, a row a channel: their whole numbers and the scale of each row, the largest that there is.

    None where a row has none with which all are at most 255.
    """
    rows = np.asarray(rows, np.float64)
    magnitude = np.abs(rows)
    if not np.all(np.isfinite(rows)):
        return None
    least = np.min(np.where(magnitude > 0, magnitude, np.inf), axis=1, initial=np.inf)
    largest = np.max(magnitude, axis=1, initial=0.0)
    scales = np.where(np.isfinite(least), 0.0, 1.0)  # a row of zeros has any
    for divisor in range(1, _MOST + 1):
        open_rows = np.flatnonzero(scales == 0)
        if not open_rows.size:
            break
        tried = least[open_rows] / divisor
        near = open_rows[(largest[open_rows] <= tried * (_MOST + 0.5)) & _fits(rows[open_rows, :_SAMPLE], tried)]
        if near.size:
            fitting = near[_fits(rows[near], least[near] / divisor)]
            scales[fitting] = least[fitting] / divisor
    if np.any(scales == 0):
        return None
    whole = np.rint(rows / scales[:, None])
    return whole.astype(np.int64), _refined(rows, whole, scales)


def _fits(rows: Array, scales: Array) -> Array:
    steps = rows / scales[:, None]
    return np.all(np.abs(steps - np.rint(steps)) <= _ROUNDING * np.abs(steps), axis=1)


def _refined(rows: Array, whole: Array, scales: Array) -> Array:
    """The scale that the weights were made with: a float32 if one gives them all, else the best fit."""
    exact = np.all(rows == whole * scales[:, None], axis=1)
    squares = np.sum(whole * whole, axis=1)
    fitted = np.sum(rows * whole, axis=1) / np.maximum(squares, 1)
    single = fitted.astype(np.float32)
    given = np.all(rows.astype(np.float32) == whole.astype(np.float32) * single[:, None], axis=1)
    return np.where(exact, scales, np.where(given, single.astype(np.float64), np.where(squares > 0, fitted, scales)))
