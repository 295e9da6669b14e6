"""The graph of a design's tasks for placement: area of each task with what it reads from, wires of each channel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from penstock.compiler.platforms import Platform, Resources, total
from penstock.compiler.schedule import MemoryUse, OperatorLibrary
from penstock.dse.memory.items import stored_items
from penstock.dse.partition.graph import LargeMemories, PlacedThing, PlacementGraph, Wires
from penstock.profiling.bandwidth import memory_ports
from penstock.profiling.network import TaskChannel, TaskNetwork

FIFO_HANDSHAKE = 2  # valid and ready
_MANY_LUTS, _SEVERAL, _BLOCKS_OF_ULTRA = 1000, 8, 8
"""LUTs or blocks of RAM that memories alike take at least, so that it matters for a die what they are built of; an
UltraRAM counts as so many blocks."""
MEMORY_HANDSHAKE = 100  # address and control of one direction of an AXI port


def placement_graph(
    network: TaskNetwork,
    platform: Platform,
    library: OperatorLibrary,
    uses: Mapping[str, MemoryUse] | None = None,
    apart: Collection[str] = (),
) -> PlacementGraph:
    """Tasks and channels of a scheduled design. A channel's memory stands with its reader.

    Memories are built as in `uses`, or the usual way, and those that are `apart` are left out. External memory is a
    thing on the die where its controller is; of several, the fastest serve all ports, each those on its banks. What one
    task reads, one after the other, comes through one port, whose wires are there once (`plan_ports` of
    `compiler/analysis/ports.py`).
    """
    ends = network.ends()
    owned: dict[str, list[Resources]] = {t.name: [n.logic for n in t.nests] for t in network.tasks}
    for item in stored_items(network, library):
        if item.name not in apart:
            owned[item.owner].append((uses[item.name] if uses is not None else item.usual).area)
    tasks = [PlacedThing(t.name, total(owned[t.name])) for t in network.tasks]
    wires = [Wires(n, *ends[n], channel_wires(c)) for n, c in network.channels.items()]
    outside: dict[tuple[str, int, str], str] = {}  # by task, width, and what is written
    for task in network.tasks:
        for port in (port for nest in task.nests for port in nest.ports if port.kind == "external"):
            written = "" if port.direction == "read" else port.channel
            outside.setdefault((task.name, port.bits, written), f"{task.name}.{port.channel}")
    if outside and (banks := [memory for memory in platform.fastest_memories for _ in range(memory.ports)]):
        ports = [use for part in network.groups for use in memory_ports(part, platform).values()]
        served = {use.task: banks[use.bank] for use in ports}
        memories = {served[task].name: served[task] for task, _, _ in outside}
        tasks[:0] = [PlacedThing(memory.name, Resources(), memory.die) for memory in memories.values()]
        for (task, bits, written), name in outside.items():
            way = (task, served[task].name) if written else (served[task].name, task)
            wires.append(Wires(name, *way, bits + MEMORY_HANDSHAKE))
    return PlacementGraph(tuple(tasks), tuple(wires)).check()


def large_memories(
    network: TaskNetwork, library: OperatorLibrary, uses: Mapping[str, MemoryUse], but: Collection[str] = ()
) -> tuple[LargeMemories, ...]:
    """What takes many LUTs or several blocks in `uses`, and not among those `but`; what is alike together."""
    alike: dict[tuple[str, tuple[Resources, ...]], list[tuple[MemoryUse, ...]]] = {}
    for item in stored_items(network, library):
        ways = tuple([replace(use, name=item.name) for use in item.choices if use.kind != "registers"])
        if len(ways) > 1 and uses[item.name].kind != "registers" and item.name not in but:
            alike.setdefault((item.owner, tuple([use.area for use in ways])), []).append(ways)
    taken = {key: total([uses[ways[0].name].area for ways in members]) for key, members in alike.items()}
    return tuple([
        LargeMemories(owner, tuple(members))
        for (owner, areas), members in alike.items()
        if (area := taken[owner, areas]).lut >= _MANY_LUTS or area.bram18 + _BLOCKS_OF_ULTRA * area.uram >= _SEVERAL
    ])  # fmt: skip


def channel_wires(channel: TaskChannel) -> int:
    """Wires between the ends of a channel that stand on two dies."""
    address = (channel.words * channel.depth - 1).bit_length() if channel.kind == "block" else 0
    return channel.bits + address + FIFO_HANDSHAKE
