"""Loads run ahead by what an access to memory takes, or by what a design allows them, and never by a whole tensor."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.design import Design
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.fifo import prefetched, safe_depths
from penstock.dse.space.tiling import TilingOptions
from tests.compiler.designs import Dense, build_network


def chain() -> tuple[Evaluator, Design]:
    """Two layers: the second one's weights are loaded from the start, and wanted when the first is done."""
    program = build_network("int8", None, 256, (Dense(256, False, False), Dense(256, False, False)), seed=1)
    evaluator = Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))
    most = evaluator.space.choices["overall_unroll_size"][-1]
    found = evaluator.evaluate({"overall_unroll_size": most, "default_tile_size": 256, "stripes": 1}).design
    return evaluator, replace(found, fifo_depths={})


def test_a_load_is_held_back_by_what_it_may_fetch_ahead() -> None:
    evaluator, design = chain()
    free = replace(design, prefetch_bits=1 << 30, fifo_depths={})
    tight = replace(design, prefetch_bits=0, fifo_depths={})
    deep, shallow = evaluator.evaluate_design(free), evaluator.evaluate_design(tight)
    bounds = prefetched(deep.figures.channels, 0)
    assert bounds
    loads = [c for c in deep.figures.channels if c.name in bounds]
    most = 70 * design.port_bits + 512
    covering = [c.bits * c.prefetch.depth for c in loads if c.prefetch is not None]
    assert all(bits <= most + c.bits for bits, c in zip(covering, loads, strict=True)), "an access takes 65 cycles"
    assert {c.name: shallow.design.fifo_depths[c.name] for c in loads} == bounds
    assert sum(c.bits * bounds[c.name] for c in loads) < sum(c.bits * deep.design.fifo_depths[c.name] for c in loads)
    assert deep.figures.latency <= shallow.figures.latency


def test_sizing_by_simulation_keeps_to_the_bound() -> None:
    evaluator, design = chain()
    found = evaluator.evaluate_design(replace(design, prefetch_bits=0, fifo_depths={}))
    bounds = prefetched(found.figures.channels, 0)
    tight = evaluator.tightened(found, simulations=4)
    assert all(tight.design.fifo_depths[name] <= depth for name, depth in bounds.items())
    assert tight.figures.latency <= found.figures.latency


def test_what_is_computed_is_not_prefetched() -> None:
    evaluator, design = chain()
    channels = evaluator.evaluate_design(replace(design, fifo_depths={})).figures.channels
    between = [c for c in channels if c.prefetch is None]
    assert between
    assert all(safe_depths(channels, 0)[c.name] == safe_depths(channels)[c.name] for c in between if c.kind == "stream")
