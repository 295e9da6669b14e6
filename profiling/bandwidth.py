"""What a design asks of external memory: which bank serves whom, and the least time that the traffic takes there."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.compiler.platforms import Platform
from penstock.compiler.platforms.sharing import shares, spread
from penstock.profiling.network import Task, TaskNetwork


@dataclass(frozen=True)
class MemoryPortUse:
    """The port of one task: what it moves in a run, on which bank of the fastest memory, and its part of the bank."""

    task: str
    bits: int
    bank: int
    share: float


def memory_ports(network: TaskNetwork, platform: Platform) -> dict[str, MemoryPortUse]:
    """By task, of one kernel: all that a task loads or stores goes through one port."""
    memory = platform.fastest_memory
    users = [(task.name, moved_bits(task)) for task in network.tasks]
    users = [(name, bits) for name, bits in users if bits]
    if memory is None:
        return {}
    banks = spread([bits for _, bits in users], memory.ports)
    found: dict[str, MemoryPortUse] = {}
    for bank in set(banks):
        own = [user for user, chosen in zip(users, banks, strict=True) if chosen == bank]
        for (name, bits), share in zip(own, shares([bits for _, bits in own]), strict=True):
            found[name] = MemoryPortUse(name, bits, bank, float(share))
    return found


def memory_cycles(network: TaskNetwork, platform: Platform, clock_mhz: float) -> float | None:
    """Cycles of one run in which all ports of the memory are busy at what it sustains.

    None where the platform has no memory of its own: the host's link delivers there, and is not modelled.
    """
    memory = platform.fastest_memory
    return None if memory is None else external_bits(network) * clock_mhz / (8e3 * memory.sustained_gb_s)


def external_bits(network: TaskNetwork) -> int:
    """What one run reads from and writes to external memory."""
    return sum([moved_bits(task) for task in network.tasks])


def moved_bits(task: Task) -> int:
    """What one task reads from and writes to external memory in one run."""
    return sum([p.tokens * p.bits for n in task.nests for p in n.ports if p.kind == "external"])
