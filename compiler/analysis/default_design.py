"""The design to start from: whole dims as one tile, frames place by place, one lane, parameters on chip if they fit."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.analysis.spatial import spatial_loops
from penstock.compiler.design.record import Design, KernelDesign, WeightStore
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.platforms import Platform, load_platform

_OF_BLOCK_RAM, _OF_BLOCK_RAM_BESIDE_ULTRARAM = 0.5, 0.7
"""How much of it constants may take: the rest is for lines, FIFOs, and blocks that are half full."""


def default_design(
    graph: Graph, platform: str, clock_mhz: float, quantize: str | None = None, weights: WeightStore | None = None
) -> Design:
    """Legal for every canonical program; slow on purpose, the search takes it from there."""
    weights = weights or weights_placement(graph, load_platform(platform))
    spatial = spatial_loops(graph)
    kernels: dict[str, KernelDesign] = {}
    for op in graph.operations:
        outer = spatial.get(op.layer, ())
        tile = tuple(1 if d in outer else trip for d, trip in enumerate(op.trips))
        order = (*outer, *(d for d in range(len(op.trips)) if d not in outer))
        kernels[op.layer] = KernelDesign(tile=tile, unroll=(1,) * len(tile), order=order, weights=weights)
    return Design(platform=platform, clock_mhz=clock_mhz, kernels=kernels, quantize=quantize)


def weights_placement(graph: Graph, platform: Platform) -> WeightStore:
    """On the chip if its block RAM holds them and leaves enough; else in external memory, if there is any.

    UltraRAM takes lines and FIFOs, but nothing that is there from the start: with it, constants may have more.
    """
    params = [a for a in graph.arguments if graph.is_param(a)]
    share = _OF_BLOCK_RAM_BESIDE_ULTRARAM if platform.limits.uram else _OF_BLOCK_RAM
    return "rom" if fit_on_chip(params, platform, share) or not platform.memories else "stream"


def fit_on_chip(values: Iterable[SSAValue], platform: Platform, share: float = _OF_BLOCK_RAM) -> bool:
    """Whether so much of the block RAM holds all of them."""
    return sum(map(tensor_bits, values)) <= share * platform.limits.bram18 * 18 * 1024
