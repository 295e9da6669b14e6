"""Inputs that come from external memory once more instead of waiting on the chip: where bits of FIFOs are asked for.

A residual sum wants the rows that a block began with. Until then all of them wait in a FIFO, if they are loaded once; a
second load costs traffic, and a FIFO that covers an access.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from xdsl.ir import SSAValue

from penstock.compiler.analysis.graph import Graph, TensorOp
from penstock.compiler.design import PREFETCH_BITS, Design
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.platforms import Platform
from penstock.dse.space.options import TilingOptions

RELOAD = "reload_inputs"


def reload_choices(options: TilingOptions, graph: Graph, platform: Platform) -> dict[str, tuple[int, ...]]:
    """The parameter, where bits of FIFOs matter and a large input is wanted again long after it was read."""
    alone = platform.has_array_arguments or not options.weighs_fifos
    return {} if alone or not late_readers(graph) else {RELOAD: (True, False)}


def reloaded(design: Design, settings: Mapping[str, int | str | bool], graph: Graph) -> Design:
    """The design in which late readers have loads of their own, if a setting says so."""
    if not settings.get(RELOAD, False):
        return design
    late = late_readers(graph)
    return replace(
        design, kernels={n: replace(k, reload=True) if n in late else k for n, k in design.kernels.items()}
    )  # fmt: skip


def late_readers(graph: Graph) -> frozenset[str]:
    """Layers that read a large input which others have read to make, by a product, what these layers read with it."""
    found: set[str] = set()
    fed = {*graph.fed.values()}
    for value in graph.arguments:
        if not graph.is_param(value) and value not in fed and tensor_bits(value) > PREFETCH_BITS:
            behind = _behind_products(graph, value)
            found |= {op.layer for op in graph.operations if value in op.inputs and behind.intersection(op.inputs)}
    return frozenset(found)


def _behind_products(graph: Graph, value: SSAValue) -> set[SSAValue]:
    """All that is made of products of two tensors, one of which is made of an input."""
    made, behind = {value}, set[SSAValue]()
    for node in graph.nodes:
        sources = set(node.inputs)
        product = isinstance(node, TensorOp) and bool(node.reductions) and len(sources) > 1
        if made & sources:
            made.add(node.result)
        if behind & sources or (product and made & sources):
            behind.add(node.result)
    return behind
