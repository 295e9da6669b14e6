"""The design to start from: whole dims as one tile, one lane, parameters on the chip where they fit."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.design.record import Design, KernelDesign, WeightStore
from penstock.compiler.dialects.types import tensor_type
from penstock.compiler.platforms import Platform, load_platform
from penstock.compiler.scalars.number_types import type_bits


def default_design(
    graph: Graph, platform: str, clock_mhz: float, quantize: str | None = None, weights: WeightStore | None = None
) -> Design:
    """Legal for every canonical program; slow on purpose, the search takes it from there."""
    weights = weights or weights_placement(graph, load_platform(platform))
    kernels = {
        operation.layer: KernelDesign(
            tile=operation.trips,
            unroll=(1,) * len(operation.trips),
            order=tuple(range(len(operation.trips))),
            weights=weights,
        )
        for operation in graph.operations
    }
    return Design(platform=platform, clock_mhz=clock_mhz, kernels=kernels, quantize=quantize)


def weights_placement(graph: Graph, platform: Platform) -> WeightStore:
    """On the chip if half of its block RAM holds them; else in external memory, if there is any."""
    bits = sum(_bits(a) for a in graph.arguments if graph.is_param(a))
    on_chip = platform.limits.bram18 * 18 * 1024 // 2
    return "rom" if bits <= on_chip or not platform.memories else "stream"


def _bits(value: SSAValue) -> int:
    kind = tensor_type(value)
    return prod(kind.get_shape()) * type_bits(kind)
