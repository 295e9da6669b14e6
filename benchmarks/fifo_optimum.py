"""The least depths by trying all in the order of their bits: for small networks, and to judge what is faster."""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from penstock.compiler.errors import PenstockError
from penstock.dse.fifo.measure import MeasureDepths


def exhaustive(
    measure: MeasureDepths,
    top: Mapping[str, int],
    bits: Mapping[str, int],
    *,
    allowed: tuple[int, ...],
    least: int = 1,
    most: int = 50_000,
) -> dict[str, int] | None:
    """The cheapest of all depths up to `top` that suffice; None where more than `most` would have to be tried.

    `top` should be the number of tokens: a FIFO may have to be deeper than it is in a run without full FIFOs, where
    another, wider one is to hold its writer back. Each FIFO starts from what it needs if all others are deepest.
    """
    names = list(top)
    low = [_alone(measure, top, name, allowed, least) for name in names]
    heap = [(sum(d * bits[n] for n, d in zip(names, low, strict=True)), tuple(low), 0)]
    for _ in range(most):
        if not heap:
            break
        cost, depths, first = heapq.heappop(heap)
        chosen = dict(zip(names, depths, strict=True))
        if measure(chosen).within(allowed):
            return chosen
        for i in range(first, len(names)):  # from the last raised on: each choice is reached once
            if depths[i] < top[names[i]]:
                raised = (*depths[:i], depths[i] + 1, *depths[i + 1 :])
                heapq.heappush(heap, (cost + bits[names[i]], raised, i))
    return None


def _alone(measure: MeasureDepths, top: Mapping[str, int], name: str, allowed: tuple[int, ...], least: int) -> int:
    for depth in range(least, top[name] + 1):
        if measure({**top, name: depth}).within(allowed):
            return depth
    raise PenstockError(
        code="no-depths", what="no depths up to the given ones suffice", where=name, limit=str(allowed),
        hint="allow deeper FIFOs or more time",
    )  # fmt: skip
