"""How large the numbers of a tensor's channels get, and how far those of some calls go beyond those of the others.

The calls lie in folds, one after the other. What a fold has beyond all other folds is what unseen inputs will have
beyond the typical ones: a channel of few large numbers mostly shows too few of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.compiler.arrays import Array

FOLDS = 7
"""No divisor of how many layers usually share an accelerator, whose calls come in turns."""
_KEPT = 8
"""The largest numbers of a channel in a fold: more are seldom beyond what the other folds have."""


@dataclass(frozen=True)
class ChannelSizes:
    """What the numbers of a tensor's channels were: the sums of squares, how many each had, the largest by fold."""

    squares: Array
    count: int
    calls: int
    tops: Array
    """Magnitudes by fold, the largest first, by channel."""

    @property
    def largest(self) -> Array:
        return np.max(self.tops[:, 0], axis=0)

    @property
    def power(self) -> Array:
        return self.squares / self.count

    @property
    def folds(self) -> int:
        return min(self.calls, FOLDS)

    def without(self, fold: int) -> Array:
        """The largest magnitudes of all other folds."""
        return np.max(np.delete(self.tops[: self.folds, 0], fold, axis=0), axis=0)

    @staticmethod
    def of(numbers: Array, dim: int) -> ChannelSizes:
        """`numbers` have a leading axis of calls; `dim` is counted from the end."""
        rows = np.moveaxis(np.asarray(numbers, np.float64), dim, -1)
        rows = np.abs(rows.reshape(len(rows), -1, rows.shape[-1]))
        tops = np.zeros((FOLDS, _KEPT, rows.shape[-1]))
        for call, row in enumerate(rows):
            tops[call % FOLDS] = _top(np.concatenate((tops[call % FOLDS], row)))
        return ChannelSizes(np.sum(rows**2, axis=(0, 1)), rows.shape[0] * rows.shape[1], len(rows), tops)

    def joined(self, other: ChannelSizes) -> ChannelSizes:
        """The other's calls come after these."""
        after = np.roll(other.tops, self.calls % FOLDS, axis=0)
        tops = np.stack([_top(np.concatenate(both)) for both in zip(self.tops, after, strict=True)])
        return ChannelSizes(self.squares + other.squares, self.count + other.count, self.calls + other.calls, tops)


def _top(rows: Array) -> Array:
    """The largest of each channel, the largest first."""
    kept = np.partition(rows, len(rows) - _KEPT, axis=0)[len(rows) - _KEPT :]
    return np.sort(kept, axis=0)[::-1]
