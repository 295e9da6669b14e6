"""What FIFOs need to hold of one input, told in half a second: sizing them takes twenty times as long."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Simulator
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.latest import blocks_of, latest_schedule
from penstock.dse.fifo.moved import moved_depths
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import rules_of, simulated_kernels

_MOST_TOKENS = 2_000_000
"""Of all channels together: of more it takes seconds."""
_MOST_MOVED = 10_000_000
"""Events that are looked at: with ten times as many it is the same but for a hundredth."""
_LARGE = 1 / 16
"""Where the schedule's depths do not suffice, FIFOs hold more: of each that would hold such a part of that alone, a run
says whether it has to."""


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
    latest = latest_schedule(parts[0], rules_of(platform, clock_mhz), (latency,), most)
    if latest is None:
        return None
    bits = {c.name: c.bits for c in parts[0].channels if c.kind == "fifo"}
    return moved_depths(latest, bits, blocks_of(parts[0]), most, _MOST_MOVED)


def seen_depths(
    network: TaskNetwork, platform: Platform, clock_mhz: float, waiting: Mapping[str, int], most: Mapping[str, int]
) -> Mapping[str, int]:
    """Depths for what is `waiting` by a schedule, by a few runs: the same where these suffice, else nearly what does.

    A schedule knows memories by their pace alone. Loads hold here what they do in a run in which no other FIFO is full,
    or what they do in the schedule. Where depths do not suffice then, all hold what they do in that run, but for large
    ones of which a run shows that the schedule's is enough.
    """
    (part,) = simulated_kernels(network, platform, clock_mhz)
    bits = {c.name: c.bits for c in part.channels if c.kind == "fifo"}
    simulator = Simulator(part, rules_of(platform, clock_mhz))
    free = simulator.outcome({name: most.get(name) for name in bits})
    held = {name: max(LEAST_DEPTH, free.high_water[name]) for name in waiting}
    depths = {name: max(held[name] if name in most else LEAST_DEPTH, depth) for name, depth in waiting.items()}
    if not free.frame_ends or simulator.outcome(depths).frame_ends == free.frame_ends:
        return waiting
    more = {name: bits[name] * (held[name] - depths[name]) for name in waiting}  # none of what loads fill
    large = [name for name in more if more[name] >= max(1, sum(more.values()) * _LARGE)]
    for name in sorted(large, key=lambda name: -more[name]):
        if simulator.outcome(fewer := {**held, name: depths[name]}).frame_ends == free.frame_ends:
            held = fewer
    return {name: waiting[name] if name in most else depth for name, depth in held.items()}
