"""All windows along a dim, in numpy: what a slide means at every level."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.window import SlideOp


def slide(values: Array, op: SlideOp, *, lead: int = 0) -> Array:
    """Of a tensor with `lead` axes before its own."""
    by, axis = op.by.data, lead + op.by.data.dim
    fill: Any = op.fill
    after = max(0, by.end - by.before - values.shape[axis])
    widths = [(by.before, after) if at == axis else (0, 0) for at in range(values.ndim)]
    padded = np.pad(values, widths, constant_values=np.asarray(fill.value.data, values.dtype))
    places = np.arange(by.count)[:, None] * by.step + np.arange(by.size) * by.apart
    windows = np.moveaxis(np.take(padded, places, axis=axis), axis + 1, -1)
    return windows if by.size > 1 else windows[..., 0]
