"""Walks on which every kernel takes in what the one before it makes as it comes, and weights pass once."""

from __future__ import annotations

from math import prod

import pytest

from penstock.compiler.analysis.graph import TensorOp
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.plan.parts import Loading
from penstock.compiler.plan.planner import Planner
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.walks import SOME
from penstock.dse.search import descent
from penstock.dse.search.start import starting_settings
from penstock.dse.space.fitted import FAVOUR, IN_TURN, WALK
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network

ROWS, WIDE = 16, 256


def feed_forward(rows: int | None = ROWS) -> Evaluator:
    """Two products whose weights are streamed."""
    layers = (Dense(2 * WIDE, True, True), Dense(WIDE, True, False))
    program = build_network("int8", rows, WIDE, layers, seed=1)
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))


def products(evaluator: Evaluator) -> tuple[TensorOp, ...]:
    return tuple(op for op in evaluator.space.graph.operations if op.reductions)


def test_what_comes_slice_by_slice_is_summed_up_as_it_comes() -> None:
    evaluator = feed_forward()
    settings = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(settings))
    first, second = (op.layer for op in products(evaluator))
    assert walks[f"{WALK}.{first}"] == "1", "its own columns: along rows its weights would be sent again"
    assert walks[f"{WALK}.{second}"] == f"2-by{SOME}", "what the first one makes, some of it at once"

    plain, flowing = (
        evaluator.evaluate({**settings, **more, IN_TURN: True, "limit_share": 40}).design for more in ({}, walks)
    )
    times = {}
    for name, design in (("plain", plain), ("flowing", flowing)):
        network = evaluator.assembler.network(design)
        found = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=dict(design.fifo_depths))
        times[name] = found.latency
        ends = [found.processes[task.name] for task in network.tasks if task.name in (first, second)]
        if name == "flowing":
            apart = ends[1].end - ends[0].end
            assert apart < ends[1].busy / 4, "the second product ends soon after the first"
    assert times["flowing"] < times["plain"]


def test_weights_pass_once_and_evenly() -> None:
    """Rows that meet the same weights are innermost, so that no more of these are kept than one iteration takes."""
    evaluator = feed_forward()
    settings = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(settings))
    design = evaluator.evaluate({**settings, **walks}).design
    (kernel,) = Planner(evaluator.space.graph, evaluator.platform).plan(design).kernels
    assert kernel.parts
    for op in products(evaluator):
        assert design.kernels[op.layer].order[-1] == 0, "rows"
        network = evaluator.assembler.network(design)
        task = next(task for task in network.tasks if task.name == op.layer)
        weights = max(
            (p for nest in task.nests for p in nest.ports if p.kind == "stream" and p.direction == "read"),
            key=lambda port: port.bits * port.tokens,
        )
        assert weights.bits * weights.tokens == 8 * prod(op.trips[1:]), "each of them once"


def test_such_designs_compute_what_the_model_does() -> None:
    evaluator = feed_forward(2)
    settings = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(settings))
    assert walks
    lowered = lower(evaluator.program, evaluator.evaluate({**settings, **walks}).design)
    for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
        assert comparison.equal, comparison


def test_a_search_begins_with_them_where_they_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descent, "_MOST_TRIED", 24)
    evaluator = feed_forward()
    settings = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(settings))
    best = evaluator.evaluate(starting_settings(evaluator)[0][0])
    for in_turn in (False, True):
        assert best.values <= evaluator.evaluate({**settings, **walks, IN_TURN: in_turn}).values


def test_words_are_as_wide_as_a_reader_needs_banks() -> None:
    """A bank sustains 49 of the 64 bytes of a port: 1,024 lanes need 21 of them, so 32, and words of two tokens."""
    program = build_network("int8", None, 1024, (Dense(3 * 1024, False, False),), seed=1)
    options = TilingOptions(weights="stream")
    evaluator = Evaluator.create(program, "u55c", clock_mhz=250.0, options=options)
    design = evaluator.evaluate({**evaluator.space.fitted_setting(), "limit_share": 20}).design
    (op,) = products(evaluator)
    kernel = design.kernels[op.layer]
    assert prod(kernel.unroll) == 1024
    (parts,) = Planner(evaluator.space.graph, evaluator.platform).plan(design).kernels
    loads = [part for part in parts.parts if isinstance(part.does, Loading)]
    assert max(len(part.ports) for part in loads) == 32
    steps = prod(op.trips) // 1024
    network = evaluator.assembler.network(design)
    found = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=dict(design.fifo_depths))
    assert found.processes[op.layer].busy < steps * 1.01
    assert found.latency < steps * 1.2


def test_one_row_flows_too_in_the_order_that_it_has() -> None:
    """Its weights pass once whatever the order; but a sum begins while what it sums up is still being made."""
    evaluator = feed_forward(None)
    settings = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(settings))
    first, second = products(evaluator)
    assert walks[f"{WALK}.{first.layer}"] == "0", "a row is there soon: nothing is gained by summing it up as it comes"
    assert walks[f"{WALK}.{second.layer}"] == f"1-by{SOME}", "what the first one makes, some of it at once"
    ends, orders = dict[str, list[int]](), list[tuple[int, ...]]()
    for name, more in (("plain", {}), ("flowing", walks)):
        design = evaluator.evaluate({**settings, **more, IN_TURN: True, "limit_share": 10}).design
        network = evaluator.assembler.network(design)
        found = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=dict(design.fifo_depths))
        ends[name] = [found.processes[op.layer].end for op in (first, second)]
        orders.append(design.kernels[first.layer].order)
    (begun, last), (_, plain) = ends["flowing"], ends["plain"]
    assert last - begun < begun / 4, "the second product ends soon after the first"
    assert last < plain
    assert orders == [(0, 1), (0, 1)]


def decoder(cache: int = 64) -> Evaluator:
    """A block that makes one token, with weights streamed, and keys and values that it adds a row to."""
    program = prepare(import_model(f"zoo:gpt2?size=small&mode=decode&seq=1&cache={cache}"), "w8a8")
    return Evaluator.create(program, "u55c", options=TilingOptions(weights="stream"))


def test_a_cache_is_taken_in_as_its_rows_come() -> None:
    """Heads outside, all rows would have to wait on the chip to be turned, since lanes along them divide no part."""
    evaluator = decoder()
    setting = evaluator.space.fitted_setting()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(setting))
    assert (walks[f"{WALK}.attn.bmm"], walks[f"{WALK}.attn.bmm_2"]) == ("1", "2"), "the places of the cache"
    turned = {f"{WALK}.attn.bmm": "0", f"{WALK}.attn.bmm_2": "0"}
    bits: list[int] = []
    for way in (walks, {**walks, **turned}):
        found = evaluator.evaluate({**setting, **way, IN_TURN: True, "limit_share": 14})
        channels = evaluator.assembler.network(found.design).channels.values()
        blocks = [c for c in channels if c.kind == "block" and "concat" in c.name]
        bits.append(sum(c.bits * c.words * c.depth for c in blocks))
    cache = 2 * 65 * 256 * 8
    assert bits[0] < cache / 4 < cache <= bits[1]


def test_what_is_behind_a_norm_is_there_soon_whatever_was_before_it() -> None:
    """A norm waits for all of its row. The product behind it makes its columns one after the other, for the next."""
    evaluator = decoder()
    walks = evaluator.space.fitting.flowing(evaluator.space.settings(evaluator.space.fitted_setting()))
    assert walks[f"{WALK}.mlp.c_fc.mm"] == "0"
    assert walks[f"{WALK}.mlp.c_proj.mm"] == f"1-by{SOME}"


def test_kernels_of_large_weights_are_favoured_together() -> None:
    evaluator = feed_forward(2)
    favoured = evaluator.space.fitting.streamed_first()
    assert list(favoured) == [f"{FAVOUR}.{op.layer}" for op in products(evaluator)]
    settings = {**evaluator.space.fitted_setting(), IN_TURN: True, "limit_share": 10}
    before, after = (evaluator.evaluate({**settings, **more}).figures for more in ({}, favoured))
    assert after.resources.dsp >= before.resources.dsp
