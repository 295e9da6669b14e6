"""What FIFOs need to hold of one input, told in half a second: sizing them takes twenty times as long."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.platforms import Platform
from penstock.dse.fifo.latest import blocks_of, latest_schedule
from penstock.dse.fifo.moved import moved_depths
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import rules_of, simulated_kernels

_MOST_TOKENS = 2_000_000
"""Of all channels together: of more it takes seconds."""
_MOST_MOVED = 10_000_000
"""Events that are looked at: with ten times as many it is the same but for a hundredth."""


def waiting_depths(
    network: TaskNetwork, platform: Platform, clock_mhz: float, latency: int, most: Mapping[str, int]
) -> Mapping[str, int] | None:
    """The depth of each FIFO in a schedule that ends with the modelled latency, and has few bits waiting. What loads
    fetch ahead is in `most`.

    In a run in which no FIFO is full, what one of two kernels is early with waits for the other, and that is not what
    FIFOs must hold if it need not be early. None where several kernels follow each other, of very many tokens, or where
    no schedule is found.
    """
    parts = simulated_kernels(network, platform, clock_mhz)
    if len(parts) > 1 or sum(parts[0].tokens().values()) > _MOST_TOKENS:
        return None
    latest = latest_schedule(parts[0], rules_of(platform, clock_mhz), (latency,))
    if latest is None:
        return None
    bits = {c.name: c.bits for c in parts[0].channels if c.kind == "fifo"}
    return moved_depths(latest, bits, blocks_of(parts[0]), most, _MOST_MOVED)
