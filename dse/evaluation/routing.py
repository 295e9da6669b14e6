"""How near a design is to what can still be routed: its largest pipeline, and its widest token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.compiler.platforms.routing import Routing
from penstock.profiling.network import TaskNetwork


@dataclass(frozen=True)
class RoutingUse:
    """The term that is nearest to its limit, or farthest beyond it: its share, and what it is in words."""

    share: float
    what: str


def routing_use(network: TaskNetwork, limits: Routing) -> RoutingUse:
    """Of all pipelines and tokens of a design."""
    return max(_uses(network, limits), key=lambda use: use.share)


def _uses(network: TaskNetwork, limits: Routing) -> Iterator[RoutingUse]:
    for task in network.tasks:
        for nest in task.nests:
            logic = nest.logic
            for name, taken, most in (
                ("LUTs", logic.lut, limits.pipeline_lut),
                ("registers", logic.ff, limits.pipeline_ff),
                ("DSPs", logic.dsp, limits.pipeline_dsp),
            ):
                yield RoutingUse(taken / most, f"the pipeline of {task.name} has {taken:,} {name} of {most:,}")
    for channel in network.channels.values():
        if channel.kind == "stream":
            share = channel.bits / limits.token_bits
            yield RoutingUse(share, f"a token of {channel.name} has {channel.bits:,} bits of {limits.token_bits:,}")
