"""What FIFOs cost: bits, and the depths that come for free because memory comes in steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.compiler.platforms import Resources, total
from penstock.compiler.schedule import OperatorLibrary, fifo_area

_MOST_DEPTH = 1 << 24


def total_bits(depths: Mapping[str, int], bits: Mapping[str, int]) -> int:
    """Depth times width, over all FIFOs."""
    return sum(depth * bits[name] for name, depth in depths.items())


@dataclass(frozen=True)
class Rounded:
    """Depths raised to what their memory holds anyway, and what it costs."""

    depths: Mapping[str, int]
    area: Resources


def round_up(library: OperatorLibrary, depths: Mapping[str, int], bits: Mapping[str, int]) -> Rounded:
    """The deepest FIFOs for the same area: shift registers of 16 or 32 words, block RAM of 512 or 1024."""
    raised = {name: deepest_for_free(library, depth, bits[name]) for name, depth in depths.items()}
    return Rounded(raised, total([fifo_area(library, d, bits[n]) for n, d in raised.items()]))


def deepest_for_free(library: OperatorLibrary, depth: int, bits: int) -> int:
    """The largest depth with the area of this one."""
    area = fifo_area(library, depth, bits)
    low, high = depth, depth + 1
    while high < _MOST_DEPTH and fifo_area(library, high, bits) == area:
        low, high = high, 2 * high
    while low + 1 < high:
        middle = (low + high) // 2
        if fifo_area(library, middle, bits) == area:
            low = middle
        else:
            high = middle
    return low
