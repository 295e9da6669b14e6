"""When each operation of a pipeline happens, as Vitis' scheduler decides it: II with its reason, depth, operators.

The rules and where they were seen are in README.md of this folder. Times are (cycle, nanoseconds into it).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.compiler.hls_in.addresses import AddressPlan, AddressPlanner
from penstock.compiler.hls_in.bounds import bounds_of, port_limit, stream_limits
from penstock.compiler.hls_in.delays import Delays
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.ordering import needs
from penstock.compiler.hls_in.placing import Placer
from penstock.compiler.hls_in.records import Pipeline, Straight
from penstock.compiler.hls_in.recurrences import IiLimit
from penstock.compiler.hls_in.sharing import adders_beyond, as_short, rings_apart


@dataclass
class ScheduledPipeline:
    ii: int
    depth: int
    limits: list[IiLimit]
    units: dict[str, int]
    """Floating-point and other shared operators by name, as many as are built."""
    starts: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    there: dict[KernelValue, int] = field(default_factory=dict[KernelValue, int])
    """The cycle at whose end each value is there."""
    addresses: AddressPlan = field(default_factory=AddressPlan)
    flushes: bool = False
    """What has entered goes on while the next iteration waits for input."""

    @property
    def limit(self) -> IiLimit | None:
        return max(self.limits, key=lambda bound: bound.ii, default=None)


def schedule(item: Pipeline | Straight, delays: Delays) -> ScheduledPipeline:
    bounds = bounds_of(item, delays)
    nodes, limits, adders = bounds.nodes, list(bounds.limits), bounds.adders
    fabric = adders.fabric
    if isinstance(item, Pipeline):
        met = ((array, nodes) for array, nodes in bounds.accesses.items() if not array.registers)
        limits += [port_limit(array, nodes, delays) for array, nodes in met] + stream_limits(nodes)
    delays.addresses = AddressPlanner(item, nodes, delays.library).plan()
    ii = max([bounds.target, *(limit.ii for limit in limits)])
    limits = [limit for limit in limits if limit.ii > 1]
    tight = [ring for latency, ring in adders.rings if latency == ii]
    names = (delays.unit(node) for node in nodes if not delays.has_quick(node))
    shared = {name for name in names if name is not None}

    own_rings = rings_apart(nodes, fabric, tight, ii, delays)

    def place(more: int, due: Mapping[KernelValue, int], beyond: Mapping[str, int] | None = None) -> Placer:
        extra = {**dict.fromkeys(shared, more), **own_rings, **(beyond or {})}
        placer = Placer(
            nodes, ii, delays, needs, fabric, adders.cyclic, isinstance(item, Pipeline), tight, extra,
            bounded=beyond is not None, due=due,
        )  # fmt: skip
        placer.place()
        return placer

    placer, more = place(0, {}), 0
    if tight:
        shortest = place(len(nodes), {})
        due = shortest.latest()
        if placer.depth > ii:
            placer, more = as_short(placer, lambda more: place(more, due), shortest.depth, len(nodes))
        if beyond := adders_beyond(nodes, fabric, ii, delays, lambda beyond: place(len(nodes), due, beyond)):
            placer = place(more, due if more else {}, beyond)
    return ScheduledPipeline(
        ii, placer.depth, limits, placer.units, placer.starts, placer.there, delays.addresses,
        isinstance(item, Pipeline) and item.flushes,
    )  # fmt: skip
