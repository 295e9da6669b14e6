"""How long a product takes on arrays, in closed form: for many arrays at once, to say which are worth simulating.

Multipliers, ports and channels work side by side; the longest of them counts, and what comes before the first product
and after the last one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.mesh.instructed.area import ArrayTable
from penstock.compiler.mesh.instructed.product import TileProduct

EstimatedCycles = NDArray[np.float64]


@dataclass(frozen=True)
class ProductShape:
    """A product with given blocks: instances by dim of the grid, and with which dims its operands change."""

    product: TileProduct
    extents: tuple[int, ...]
    left: frozenset[int]
    right: frozenset[int]

    @staticmethod
    def of(product: TileProduct) -> ProductShape:
        grid = product.program.grid

        def depends(counters: frozenset[int]) -> frozenset[int]:
            return frozenset(i for i, dim in enumerate(grid) if dim.counter in counters)

        left, right = (depends(one.load.access.counters()) for one in (product.left, product.right))
        return ProductShape(product, tuple(dim.extent for dim in grid), left, right)

    def spread(self) -> Iterator[tuple[int | None, int | None]]:
        """The dims that rows and columns of cores may take."""
        many: list[int | None] = [i for i, extent in enumerate(self.extents) if extent > 1]
        yield from itertools.permutations(many, 2) if len(many) > 1 else [(d, None) for d in many or [None]]
        if len(many) == 1:
            yield None, many[0]

    def cycles(self, a: ArrayTable) -> EstimatedCycles:
        """Of the best way on every array; infinite where a tile does not fit."""
        rows, columns, inner = self.product.sizes
        tall, wide, deep = -(-rows // a.tall), -(-columns // a.wide), -(-inner // a.deep)
        entries, rounds = tall * wide, self.product.rounds
        steps = entries * deep
        left = -(-(tall * deep * a.tall * a.deep) // a.word)
        right = -(-(wide * deep * a.wide * a.deep) // a.word)
        out = entries * (a.tall * a.wide * 4 // a.word)
        best = np.full(len(a.rows), np.inf)
        for p, q in self.spread():
            trips = [
                -(-extent // (a.rows if d == p else a.columns if d == q else 1))
                for d, extent in enumerate(self.extents)
            ]
            waves = np.ones_like(a.rows) * math.prod(trips)
            lines, across = (a.rows if p is not None else 1), (a.columns if q is not None else 1)
            left_words = waves * rounds * left * (across if q in self.left else 1)
            right_words = waves * rounds * right * (lines if p in self.right else 1)
            again_left = math.prod(t for d, t in enumerate(trips) if d not in self.left)
            again_right = math.prod(t for d, t in enumerate(trips) if d not in self.right)
            stays_left, stays_right = rounds * left <= a.left, rounds * right <= a.right
            first, last = left + right, out * lines
            for lw, rw in (
                (left_words, right_words),
                (np.where(stays_left, left_words // again_left, left_words), right_words),
                (left_words, np.where(stays_right, right_words // again_right, right_words)),
            ):
                carried = lw * -(-lines // a.channels) + (rw + waves * out * lines) * -(-across // a.channels)
                best = np.minimum(best, np.maximum(waves * rounds * steps, carried) + first + last)
        # programs are loaded, and words go from core to core
        best = best + 85 + 6.5 * (a.rows + a.columns)
        fits = (entries <= a.sums) & (left <= a.left) & (right <= a.right)
        return np.where(fits, best, np.inf)


def product_steps(product: TileProduct) -> int:
    """Products of single numbers that the kernel asks for, blocks as they are."""
    return product.program.instances * product.rounds * math.prod(product.sizes)


def moved_bytes(product: TileProduct) -> int:
    """Every tensor once."""
    return sum(tensor.bytes for tensor in product.program.tensors.values())
