"""Loads run ahead by what an access to memory takes, or by what a design allows them, and never by a whole tensor."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.design import Design
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.fifo import prefetched, runs_through, safe_depths
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


def test_of_a_cache_with_a_new_row_as_much_waits_as_its_reader_asks_for() -> None:
    """Its words wait behind the load, not in each FIFO on the way as well, as what is computed would."""
    program = prepare(import_model("zoo:gpt2?size=small&mode=decode&seq=1&cache=64"), "w8a8")
    evaluator = Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))
    setting = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(setting))
    found = evaluator.evaluate({**setting, **walks, "in_turn": True, "limit_share": 20})
    whole = 65 * 256 * 8
    joined = [c for c in found.figures.channels if c.kind == "stream" and c.tokens * c.bits == whole]
    joined = [c for c in joined if "cache" in c.name and ("concat" in c.writer or "concat" in c.reader)]
    assert joined
    assert all(c.prefetch is not None for c in joined)
    held = sum(found.design.fifo_depths[c.name] * c.bits for c in joined)
    assert held <= 2 * whole, "each of the two caches once"
    network = evaluator.assembler.network(found.design)
    assert runs_through(network, evaluator.platform, evaluator.clock_mhz, found.design.fifo_depths)
