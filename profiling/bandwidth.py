"""What a design asks of external memory: the least time that its traffic takes there, whatever else it waits for."""

from __future__ import annotations

from penstock.compiler.platforms import Platform
from penstock.profiling.network import TaskNetwork


def memory_cycles(network: TaskNetwork, platform: Platform, clock_mhz: float) -> float | None:
    """Cycles of one run in which all ports of the memory are busy at what it sustains.

    None where the platform has no memory of its own: the host's link delivers there, and is not modelled.
    """
    memory = platform.fastest_memory
    return None if memory is None else external_bits(network) * clock_mhz / (8e3 * memory.sustained_gb_s)


def external_bits(network: TaskNetwork) -> int:
    """What one run reads from and writes to external memory."""
    return sum([p.tokens * p.bits for t in network.tasks for n in t.nests for p in n.ports if p.kind == "external"])
