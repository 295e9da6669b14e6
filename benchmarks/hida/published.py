"""What HIDA's paper (ASPLOS 2024) prints: table 2, and what its text says of figures 10 and 11."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class PublishedLeNet:
    """A column of table 2: on a PYNQ-Z2."""

    resources_pct: float
    frames_a_second: float
    took: str


TABLE_2: Mapping[str, PublishedLeNet] = {
    "expert": PublishedLeNet(95.5, 41_600, "40 hours"),
    "exhaustive": PublishedLeNet(99.2, 49_900, "210 hours"),
    "HIDA": PublishedLeNet(95.0, 53_200, "9.9 minutes"),
}
SMALLEST_TILE_DSP = 518
"""Figure 10: of a parallel factor of 1 with tiles of 2, for addresses."""
IA_CA = {64: {"dsp": 3.7, "memory": 1.2, "throughput": 44.3}, 32: {"dsp": 4.5, "memory": 4.7, "throughput": 1.0}}
"""Figure 11, by parallel factor: how many times less DSPs and memory IA+CA takes than the others, and its throughput
over theirs (*on par* at 32)."""
