"""Writes a network as a procnet-1 file, so that it can be simulated and sized again without its source."""

from __future__ import annotations

from typing import Any

from penstock.compiler.simulator import Channel, ChannelAccess, Network, Phase, Repeat, Sequence
from penstock.compiler.simulator.network import Item


def as_json(design: Network | Sequence, rtl_cycles: int | None = None, csynth: int | None = None) -> dict[str, Any]:
    """The file's object. Reading it gives the same network."""
    known = {"rtl_cycles": rtl_cycles, "csynth_cycles": csynth}
    head = {"schema": "procnet-1", "name": design.name, **{k: v for k, v in known.items() if v is not None}}
    if isinstance(design, Network):
        return {**head, "composition": "dataflow", **_network(design)}
    return {
        **head,
        "composition": "sequential",
        "steps": [[_item(item) for item in step] for step in design.steps],
        "control": {"protocol": design.control.protocol, "scalar_registers": design.control.scalar_registers},
    }


def _network(network: Network) -> dict[str, Any]:
    found: dict[str, Any] = {
        "channels": [_channel(channel) for channel in network.channels],
        "processes": [{"name": p.name, "phases": [_phase(phase) for phase in p.phases]} for p in network.processes],
    }
    if network.ports:
        found["memories"] = [
            {"name": m.name, "banks": m.banks, "bits_per_cycle": m.bits_per_cycle, "latency": m.latency}
            for m in network.memories
        ]
        found["ports"] = [
            {"name": p.name, "memory": p.memory, "bank": p.bank, "width_bits": p.bits, "ahead": p.ahead}
            for p in network.ports
        ]
    return found


def _channel(channel: Channel) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": channel.name, "kind": channel.kind, "depth": channel.depth, "width_bits": channel.bits
    }  # fmt: skip
    if channel.kind == "pipo":
        found |= {"words": channel.words, "producers": [*channel.producers], "consumers": [*channel.consumers]}
    return found


def _item(item: Item) -> dict[str, Any]:
    if isinstance(item, Network):
        return {"name": item.name, **_network(item)}
    if isinstance(item, Repeat):
        body = [_phase(phase) for phase in item.body]
        return {"repeat": item.times, "iteration_latency": item.iteration_latency, "body": body}
    return _phase(item)


def _phase(phase: Phase) -> dict[str, Any]:
    found: dict[str, Any] = {
        "loops": [{"trip": trip} for trip in phase.trips],
        "ii": phase.ii,
        "depth": phase.depth,
        "reads": [_access(one) for one in phase.accesses if one.direction == "read"],
        "writes": [_access(one) for one in phase.accesses if one.direction == "write"],
    }
    if phase.flushes is not None:
        found["flushes"] = phase.flushes
    return {**found, "name": phase.name} if phase.name else found


def _access(access: ChannelAccess) -> dict[str, Any]:
    levels = [
        {"runs": [{"first": first, "length": length} for first, length in level.runs], "stride": level.stride}
        for level in access.pattern.levels
    ]
    found: dict[str, Any] = {"channel": access.channel, "per_iteration": access.count, "levels": levels}
    return found if access.stage is None else {**found, "stage": access.stage}
