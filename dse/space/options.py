"""What a user may fix of a space before a search begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.design import WIDEST_PORT, KernelDesign, WeightStore
from penstock.compiler.platforms import Platform, Resources
from penstock.dse.lanes.steps import powers_of_two
from penstock.dse.lanes.stores import Stores
from penstock.dse.space.aligned_by import AlignedBy

_NARROWEST_PORT, _USUAL_PORT = 32, 512


@dataclass(frozen=True)
class TilingOptions:
    """What a user may fix or widen. `kernels` are decided by hand, by layer, and left alone."""

    kernels: Mapping[str, KernelDesign] = field(default_factory=dict[str, KernelDesign])
    max_lanes: int | None = None
    weights: WeightStore | None = None
    """Where parameters lie; by default on the chip if its block RAM holds them and leaves enough."""
    per_kernel: bool = True
    """Whether the search may also shift lanes between kernels."""
    equalisation: int | None = None
    """How FIFOs are sized (`../fifo/equalise.py`). None: the normal way, or as the search decides."""
    aligned_by: AlignedBy = "both"
    """What the lanes of `allocation=aligned` follow: HIDA's ablation (its figure 11)."""
    parallel_factor: int | None = None
    """Of `allocation=aligned`: how many lanes the busiest kernel gets at most; by default its part of all lanes."""
    smallest_tile: int = 4
    """The first value of `default_tile_size`."""
    weighs_fifos: bool = False
    """Whether anything is asked of the bits of FIFOs, so that the search has to decide."""

    def stores(self, graph: Graph, usual: WeightStore, limits: Resources) -> Stores:
        """Where the weights of each layer lie: as the user says, else by size and use."""
        return Stores.of(graph, usual, limits) if self.weights is None else Stores(self.weights)


def widest_port(platform: Platform, clock_mhz: float) -> int:
    """The narrowest power of two that passes all that a bank of external memory sustains.

    More would be converted for nothing, and with less the memory would wait. So a slow kernel beside a fast memory has
    ports that are wider than the bank's own.
    """
    memory = platform.fastest_memory
    if memory is None:
        return _USUAL_PORT
    return min(WIDEST_PORT, powers_of_two(_NARROWEST_PORT, ceil(memory.port_bits_a_cycle(clock_mhz)))[-1])
