"""Wide tokens as several narrow ones: the word of an HLS stream has a largest width.

Vitis HLS aggregates a stream's element to one word of at most 4,096 bits and refuses wider ones (HLS 207-2163, and
Xilinx/Vitis-HLS-Introductory-Examples#19). A wider token is sent as equal pieces through an array of streams,
all of which are written in one cycle and read in one cycle.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDEST_STREAM = 4096
"""Bits of the widest word that a stream of Vitis HLS takes."""


@dataclass(frozen=True)
class Pieces:
    """A token as `count` pieces of `lanes` whole elements; the last one may have lanes that nobody uses."""

    count: int
    lanes: int


def pieces_of(lanes: int, element_bits: int, widest: int = WIDEST_STREAM) -> Pieces:
    """The fewest equal pieces of which none is wider than `widest` bits; one, if `widest` is 0: any width goes.

    An element counts in whole bytes, as C++ stores it, whether or not the tool packs it closer.
    """
    most = max(1, widest // (-(-element_bits // 8) * 8)) if widest else lanes
    count = -(-lanes // most)
    return Pieces(count, -(-lanes // count))
