"""Depths that were seen not to suffice: with less, or for more inputs in a row, nothing ends earlier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from penstock.compiler.jit import Ints


class KnownFailures:
    """Of one network's FIFOs. One that is below another in every FIFO adds nothing and is not kept."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(names)
        self._rows: Ints = np.empty((0, len(names)), np.int64)

    def add(self, depths: Mapping[str, int]) -> None:
        row = self._row(depths)
        self._rows = np.vstack((self._rows[~(self._rows <= row).all(axis=1)], row))

    def cover(self, depths: Mapping[str, int]) -> bool:
        """Whether these depths are known not to suffice."""
        return bool((self._rows >= self._row(depths)).all(axis=1).any())

    def _row(self, depths: Mapping[str, int]) -> Ints:
        return np.array([depths[name] for name in self._names], np.int64)
