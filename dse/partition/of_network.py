"""The graph of a design's tasks for placement: area of each task with what it reads from, wires of each channel."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.compiler.platforms import Platform, Resources, total
from penstock.compiler.schedule import MemoryUse, OperatorLibrary
from penstock.dse.memory.items import stored_items
from penstock.dse.partition.graph import PlacedThing, PlacementGraph, Wires
from penstock.profiling.network import TaskChannel, TaskNetwork

FIFO_HANDSHAKE = 2  # valid and ready
MEMORY_HANDSHAKE = 100  # address and control of one direction of an AXI port


def placement_graph(
    network: TaskNetwork, platform: Platform, library: OperatorLibrary, uses: Mapping[str, MemoryUse] | None = None
) -> PlacementGraph:
    """Tasks and channels of a scheduled design. A channel's memory stands with its reader.

    Memories are built as in `uses`, or the usual way. External memory is a thing on the die where its controller
    is; of several, the fastest serves all ports.
    """
    ends = network.ends()
    owned: dict[str, list[Resources]] = {t.name: [n.logic for n in t.nests] for t in network.tasks}
    for item in stored_items(network, library):
        owned[item.owner].append((uses[item.name] if uses is not None else item.usual).area)
    tasks = [PlacedThing(t.name, total(owned[t.name])) for t in network.tasks]
    wires = [Wires(n, *ends[n], channel_wires(c)) for n, c in network.channels.items()]
    outside = [
        (f"{task.name}.{port.channel}", task.name, port.bits, port.direction)
        for task in network.tasks
        for nest in task.nests
        for port in nest.ports
        if port.kind == "external"
    ]
    if outside and (memory := platform.fastest_memory) is not None:
        tasks.insert(0, PlacedThing(memory.name, Resources(), memory.die))
        for name, task, bits, direction in dict.fromkeys(outside):
            way = (memory.name, task) if direction == "read" else (task, memory.name)
            wires.append(Wires(name, *way, bits + MEMORY_HANDSHAKE))
    return PlacementGraph(tuple(tasks), tuple(wires)).check()


def channel_wires(channel: TaskChannel) -> int:
    """Wires between the ends of a channel that stand on two dies."""
    address = (channel.words * channel.depth - 1).bit_length() if channel.kind == "block" else 0
    return channel.bits + address + FIFO_HANDSHAKE
