"""Depths of networks whose runs take so long that the budget has room for a few only: one for each way to find depths.

What is tried are the depths that the search had, and those of the latest schedule of one input; each loses the slots
that nobody took. A run of several inputs says which of them suffice. Shrinking, which asks hundreds of times, is not
begun.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.simulator import Network, Rules
from penstock.dse.fifo.cost import total_bits
from penstock.dse.fifo.effort import Effort, SizingProgress
from penstock.dse.fifo.latest import latest_depths
from penstock.dse.fifo.measure import MeasuredDepths, SimulatedRuns
from penstock.dse.fifo.size import Sizing
from penstock.dse.support.budgets import SIMULATIONS

FEW = 4
"""Runs of one input. Where the events of a budget, or of the usual one if it is more, are not enough for so many,
shrinking would find out next to nothing."""
INPUTS = 3
"""In a row: the first ones fill what is empty, and the distance of the last two is what the next ones keep."""


def size_long(
    network: Network,
    rules: Rules,
    start: Mapping[str, int],
    *,
    effort: Effort,
    least: int,
    frames: int,
    tolerance: float = 0.0,
    most: Mapping[str, int] | None = None,
    progress: SizingProgress = lambda _: None,
) -> Sizing | None:
    """Depths for up to so many inputs; None where runs are short enough for shrinking, or `start` stops for ever.

    No input ends later than with unbounded FIFOs, or than with the depths of `start`, if these cost time: then the
    search had no room for more.
    """
    tokens, limits = network.tokens(), most or {}
    long = max(effort.work, Effort.of(SIMULATIONS).work) // FEW
    if 2 * 2 * sum(tokens.values()) <= long:  # each is written and read, and may be waited for
        return None
    bits = {c.name: c.bits for c in network.channels if c.kind == "fifo"}
    top = {name: limits.get(name, tokens[name]) for name in bits}
    runs, one = SimulatedRuns(network, rules, min(frames, INPUTS)), SimulatedRuns(network, rules)
    progress("simulating the depths that the search had")
    given = {name: max(least, min(start[name], top[name])) for name in bits}
    seen = runs(given)
    if not seen.ends or runs.work <= long * len(seen.ends):
        return None
    free = runs.unbounded(limits)
    allowed = tuple([max(own, later) for own, later in zip(free.stretched(tolerance), seen.ends, strict=True)])
    best = _taken(given, seen, least)
    progress(f"{total_bits(best, bits):,} bits; looking for the latest schedule")
    ends, late = allowed, latest_depths(network, rules, allowed)
    if late is None:  # very many tokens: of one input, whose depths may do for the others too
        ends, late = allowed[:1], latest_depths(network, rules, allowed[:1])
    if late is not None:
        wished = {name: max(least, min(late[name], top[name])) for name in bits}
        found = one(wished) if len(ends) == 1 else runs(wished)
        fewer = _taken(wished, found, least)
        if found.within(ends) and total_bits(fewer, bits) < total_bits(best, bits):
            if len(ends) < len(allowed):
                progress(f"simulating {total_bits(fewer, bits):,} bits")
                found = runs(fewer)
            if found.within(allowed):
                best, seen = _taken(fewer, found, least), found
    lowest = total_bits(dict.fromkeys(bits, least), bits)
    return Sizing(
        best, total_bits(best, bits), lowest, seen.ends[0], free.ends[0], runs.count + one.count, runs.work + one.work,
        tuple([name for name, depth in best.items() if depth > least]),
    )  # fmt: skip


def _taken(depths: Mapping[str, int], seen: MeasuredDepths, least: int) -> dict[str, int]:
    """Without the slots that no token took in a run: the same run with these depths is the same in every cycle."""
    return {name: max(least, min(depth, seen.high_water[name])) for name, depth in depths.items()}
