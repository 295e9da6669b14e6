"""How a design meets external memory: over how many banks tensors are striped, and how far loads run ahead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.compiler.analysis.default_design import fit_on_chip
from penstock.compiler.analysis.graph import Graph
from penstock.compiler.design import PREFETCH_BITS, Design, WeightStore
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.platforms import Platform
from penstock.dse.space.options import TilingOptions, widest_port
from penstock.dse.space.reloading import reload_choices, reloaded
from penstock.dse.support.budgets import QUICKLY_MODELLED

STRIPES, FEW_BANKS, PREFETCH = "stripes", "few_banks", "prefetch_kib"
_BITS_PER_KIB = 8 * 1024
_QUICKLY_BROUGHT, _FOR_MANY = 1 << 15, 1 << 12
"""Words of one port that inputs may have altogether until more ports are worth a thought, and those of many kernels:
one waits for the other there, so that most of what comes late is time lost."""
_AHEAD = (0, PREFETCH_BITS // _BITS_PER_KIB, 128, 256, 512, 1024, 2048, 4096, 8192)
"""From what covers an access to memory up to whole weights of a large layer."""


def external_choices(
    graph: Graph, platform: Platform, weights: WeightStore, options: TilingOptions, clock_mhz: float
) -> dict[str, tuple[int, ...]]:
    """Parameters where much is streamed from a memory that has several banks, and whether inputs come once more.

    It may be weights, or inputs: those of layers that share an accelerator enter as such.
    """
    memory, inputs = platform.fastest_memory, [a for a in graph.arguments if not graph.is_param(a)]
    again = reload_choices(options, graph, platform)
    if memory is None or memory.ports < 2 or platform.has_array_arguments:
        return again
    most = _FOR_MANY if len(graph.operations) > QUICKLY_MODELLED else _QUICKLY_BROUGHT
    few = sum(tensor_bits(value) for value in inputs) <= most * memory.port_bits
    if weights != "stream" and few and fit_on_chip(inputs, platform):
        return again
    slow = memory.port_bits_a_cycle(clock_mhz) < widest_port(platform, clock_mhz)
    few_banks = {FEW_BANKS: (False, True)} if slow else {}
    return {STRIPES: tuple([1 << n for n in range(memory.ports.bit_length())]), **few_banks, PREFETCH: _AHEAD, **again}


def external_defaults(choices: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """All banks, since a tensor takes no more of them than its reader asks for; little ahead."""
    return {STRIPES: choices[STRIPES][-1], PREFETCH: _AHEAD[1]} if STRIPES in choices else {}


def with_external(design: Design, settings: Mapping[str, int | str | bool], graph: Graph) -> Design:
    """The design with what a setting says of external memory."""
    design = reloaded(design, settings, graph)
    if STRIPES not in settings:
        return design
    return replace(
        design,
        stripes=int(settings[STRIPES]),
        few_banks=bool(settings.get(FEW_BANKS, False)) and int(settings[STRIPES]) > 1,
        prefetch_bits=int(settings[PREFETCH]) * _BITS_PER_KIB,
    )
