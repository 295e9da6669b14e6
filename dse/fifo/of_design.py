"""FIFO depths of a whole design by simulation: every kernel on its own, for kernels run one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.compiler.platforms import Platform
from penstock.compiler.simulator import Network as SimulatedNetwork
from penstock.compiler.simulator import Sequence, Simulator
from penstock.dse.fifo.depths import LEAST_DEPTH
from penstock.dse.fifo.size import SIMULATIONS, Sizing, size_fifos
from penstock.profiling.network import TaskNetwork
from penstock.profiling.simulated import rules_of, simulated_network


@dataclass(frozen=True)
class DesignSizing:
    """Depths of every FIFO, and what they cost and save; latencies are sums over kernels."""

    kernels: tuple[Sizing, ...]
    evidence: Literal["simulated"] = "simulated"

    @property
    def depths(self) -> Mapping[str, int]:
        return {name: depth for kernel in self.kernels for name, depth in kernel.depths.items()}

    @property
    def bits(self) -> int:
        return sum(kernel.bits for kernel in self.kernels)

    @property
    def latency(self) -> int:
        return sum(kernel.latency for kernel in self.kernels)

    @property
    def unbounded_latency(self) -> int:
        return sum(kernel.unbounded_latency for kernel in self.kernels)


def size_design(
    network: TaskNetwork,
    platform: Platform,
    clock_mhz: float,
    *,
    tolerance: float = 0.0,
    least: int = LEAST_DEPTH,
    frames: int = 1,
    simulations: int = SIMULATIONS,
) -> DesignSizing:
    """The fewest bits of FIFO with which no kernel of a scheduled design ends later; blocks keep their depths."""
    rules = rules_of(platform, clock_mhz)
    sized = [
        size_fifos(part, rules, tolerance=tolerance, least=least, frames=frames, simulations=simulations)
        for part in _kernels(network, platform, clock_mhz)
    ]
    return DesignSizing(tuple(sized))


def runs_through(network: TaskNetwork, platform: Platform, clock_mhz: float, depths: Mapping[str, int]) -> bool:
    """Whether no kernel deadlocks with these depths.

    Only the order of accesses within each nest decides that, so waits for memory or for the host do not matter;
    stages other than the schedule's do.
    """
    for part in _kernels(network, platform, clock_mhz):
        own = {c.name: depths[c.name] for c in part.channels if c.name in depths}
        if Simulator(part, rules_of(platform, clock_mhz)).run(own).deadlock is not None:
            return False
    return True


def _kernels(network: TaskNetwork, platform: Platform, clock_mhz: float) -> list[SimulatedNetwork]:
    converted = simulated_network(network, platform, clock_mhz)
    if not isinstance(converted, Sequence):
        return [converted]
    return [item for step in converted.steps for item in step if isinstance(item, SimulatedNetwork)]
