"""How near a design is to what can still be routed: its largest pipeline, and its widest token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.compiler.platforms.routing import Routing
from penstock.profiling.network import TaskNetwork

_BITS = "bits"


@dataclass(frozen=True)
class RoutingUse:
    """The term that is nearest to its limit, or farthest beyond it: its share, and what it is in words."""

    share: float
    what: str


def routing_use(network: TaskNetwork, limits: Routing) -> RoutingUse:
    """Of all pipelines and tokens of a design."""
    share, name, taken, what, most = max(_uses(network, limits), key=lambda use: use[0])
    if what == _BITS:
        return RoutingUse(share, f"a token of {name} has {taken:,} bits of {most:,}")
    return RoutingUse(share, f"the pipeline of {name} has {taken:,} {what} of {most:,}")


def _uses(network: TaskNetwork, limits: Routing) -> Iterator[tuple[float, str, int, str, int]]:
    """Shares, of what task or channel, how much of what, and the most. A search asks for thousands, and reads one."""
    lut, ff, dsp, bits = limits.pipeline_lut, limits.pipeline_ff, limits.pipeline_dsp, limits.token_bits
    for task in network.tasks:
        for nest in task.nests:
            logic = nest.logic
            yield logic.lut / lut, task.name, logic.lut, "LUTs", lut
            yield logic.ff / ff, task.name, logic.ff, "registers", ff
            yield logic.dsp / dsp, task.name, logic.dsp, "DSPs", dsp
    for channel in network.channels.values():
        if channel.kind == "stream":
            yield channel.bits / bits, channel.name, channel.bits, _BITS, bits
