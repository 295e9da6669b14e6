"""What an array takes of a chip: engine by engine, in closed form, for one array or for many at once.

Logic: of the modules as yosys maps them to an ECP5 (LUT4, two for every CCU2C, six for every TRELLIS_DPR16X4), at
multipliers of 2 x 2 x 1, 4 x 4 x 1 and 2 x 2 x 4 and words of 4 and 8 bytes; beside these it is an estimate.
LUTs of six inputs are counted as if they had four, which is on the safe side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.compiler.jit import Ints
from penstock.compiler.mesh.instructed.array import CoreArray
from penstock.compiler.platforms.platform import Platform
from penstock.compiler.platforms.resources import RESOURCE_NAMES, Resources

_LUT_RAM_SUMS = {"ecp5": 32, "ultrascale-plus": 64}
"""Entries up to which sums lie in LUTs."""


@dataclass(frozen=True)
class ArrayTable:
    """Many arrays, a column for each of their sizes."""

    rows: Ints
    columns: Ints
    tall: Ints
    wide: Ints
    deep: Ints
    word: Ints
    left: Ints
    right: Ints
    sums: Ints
    channels: int

    @staticmethod
    def of(arrays: list[CoreArray]) -> ArrayTable:
        names = ("rows", "columns", "tall", "wide", "deep", "word", "left", "right", "sums")
        columns: list[Any] = [np.array([getattr(array, name) for array in arrays], np.int64) for name in names]
        return ArrayTable(*columns, channels=arrays[0].channels)


def area_of(array: CoreArray, platform: Platform) -> Resources:
    columns = areas_of(ArrayTable.of([array]), platform)
    return Resources(**{name: int(columns[name][0]) for name in RESOURCE_NAMES})


def areas_of(a: ArrayTable, platform: Platform) -> dict[str, Ints]:
    """By resource, a column of what every array takes."""
    cores, bits, entry = a.rows * a.columns, a.word * 8, a.tall * a.wide * 32
    products = a.tall * a.wide
    slots = np.maximum(8, np.maximum(a.rows, a.columns))
    loops, body = 314, 141
    fifo = 15 + 3 * bits // 2
    address = 239 + 308 * -(-slots // 8) + loops
    tokens = 9 * (_bits(a.left) + _bits(a.sums) // 2)
    mac = 607 + 62 * products + 24 * products * (a.deep - 1) + loops
    drain = 70 + 3 * bits + body + fifo
    found = {
        "lut": cores * (2 * (78 + body + fifo) + 2 * tokens + mac + drain)
        + (a.rows + 2 * a.columns) * address + (a.rows + a.columns) * fifo + 250,
        "ff": cores * (2 * (130 + 5) + 2 * _bits(a.left) + 2 * _bits(a.right) + 2 * _bits(a.sums) + 473 + 64 * products
                       + 17 * products * (a.deep - 1) + 144 + bits) + (a.rows + 2 * a.columns) * (195 + slots),
        "dsp": cores * products * a.deep,
        "bram18": 0 * cores,
        "uram": 0 * cores,
    }  # fmt: skip
    deep_sums = a.sums > _LUT_RAM_SUMS[platform.family.name]
    if platform.limits.uram:
        for words in (a.left, a.right):
            large = words * bits > 36 * 1024
            found["uram"] += np.where(large, cores * -(-words // 4096) * -(-bits // 72), 0)
            found["bram18"] += np.where(large, 0, cores * _blocks(words, bits))
        in_luts = cores * 2 * entry * 23 // 20
    else:
        found["bram18"] += cores * (_blocks(a.left, bits) + _blocks(a.right, bits))
        turns = -(-a.sums // 16)
        in_luts = cores * 2 * entry * (3 * turns + 2 * (turns - 1)) // 2
    found["bram18"] += np.where(deep_sums, cores * 2 * _blocks(a.sums, entry), 0)
    found["lut"] += np.where(deep_sums, 0, in_luts)
    return found


def _bits(most: Ints) -> Ints:
    """Of a number from 0 to `most`."""
    return np.floor(np.log2(most)).astype(np.int64) + 1


def _blocks(words: Ints, bits: Ints) -> Ints:
    """18-kbit blocks, the fewest of their shapes with a port to write and one to read."""
    ways = [-(-words // depth) * -(-bits // width) for depth, width in ((512, 36), (1024, 18), (2048, 9), (4096, 4))]
    return np.minimum.reduce(ways)
