"""Several cards, by a stated model of the link between them.

Two ways. *Layers*: each card has some layers that follow each other, and the last one the head; a token passes from
card to card, so one text is no faster, but as many texts as there are cards are under way at once. *Halves of blocks*:
every card has a share of each layer's heads and hidden units, and one text is faster; the sums over the cards are
exchanged twice a layer, between all of them.

The link is one of a card's 100 Gbit/s ports to each neighbour of a ring, with 64b/66b coding. A transfer takes
`HOP_US` beside its bits: an assumption, no measurement.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GBIT_S, CODING, HOP_US = 100.0, 64 / 66, 1.0
BYTES_A_VALUE = 4
"""Sums over cards travel as they are accumulated, in 32 bits."""
EXCHANGES = 2
"""Of sums, in every layer: behind the attention, and behind the feed-forward."""


def transfer_ms(values: int) -> float:
    """From a card to its neighbour."""
    return 1e-3 * HOP_US + values * BYTES_A_VALUE * 8 / (GBIT_S * CODING) * 1e-6


def exchange_ms(values: int, cards: int) -> float:
    """Until every card of a ring has all cards' sums: both ways round at once, half of the ring each."""
    return (cards // 2) * transfer_ms(values)


@dataclass(frozen=True)
class Cut:
    """`stages` are the costs of each card's consecutive parts."""

    stages: tuple[float, ...]
    seconds: float

    @property
    def slowest(self) -> float:
        return max(self.stages)


def cut(costs: Sequence[float], cards: int) -> Cut:
    """The parts, in their order, over the cards, so that the slowest card is as fast as it can be."""
    began = time.perf_counter()
    sums = [0.0]
    for cost in costs:
        sums.append(sums[-1] + cost)
    best: list[tuple[float, tuple[int, ...]]] = [(total, ()) for total in sums]
    for _ in range(cards - 1):
        best = [
            min((max(best[at][0], sums[end] - sums[at]), (*best[at][1], at)) for at in range(end + 1))
            for end in range(len(sums))
        ]
    ends = (0, *best[-1][1], len(costs))
    stages = tuple(sums[end] - sums[start] for start, end in pairwise(ends))
    return Cut(stages, time.perf_counter() - began)
