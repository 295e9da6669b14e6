"""The design to start from: whole dims as one tile, one lane, parameters on the chip."""

from __future__ import annotations

from compiler.analysis.graph import Graph
from compiler.design.record import Design, KernelDesign


def default_design(graph: Graph, platform: str, clock_mhz: float, quantize: str | None = None) -> Design:
    """Legal for every canonical program; slow on purpose, the search takes it from there."""
    kernels = {
        operation.layer: KernelDesign(
            tile=operation.trips, unroll=(1,) * len(operation.trips), order=tuple(range(len(operation.trips)))
        )
        for operation in graph.operations
    }
    return Design(platform=platform, clock_mhz=clock_mhz, kernels=kernels, quantize=quantize)
