"""The design to start from: whole dims as one tile, frames place by place, one lane, parameters on chip if they fit."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.analysis.spatial import spatial_loops
from penstock.compiler.design.record import Design, KernelDesign, WeightStore
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.platforms import Platform, load_platform


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
    """On the chip if half of its block RAM holds them; else in external memory, if there is any."""
    params = [a for a in graph.arguments if graph.is_param(a)]
    return "rom" if fit_on_chip(params, platform) or not platform.memories else "stream"


def fit_on_chip(values: Iterable[SSAValue], platform: Platform) -> bool:
    """Whether half of the block RAM holds all of them."""
    return sum(map(tensor_bits, values)) <= platform.limits.bram18 * 18 * 1024 // 2
