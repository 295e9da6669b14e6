"""Kernels that walk what is joined to a cache, head by head: lanes divide each part, and only a few heads wait."""

from __future__ import annotations

from math import gcd

import pytest

from penstock.compiler.analysis.graph import Concat
from penstock.compiler.pipeline import lower
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.plan.parts import Concatenating, Converting
from penstock.compiler.plan.planner import Planner
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.lanes.joined import extended, joined_dims
from penstock.dse.search.descent import descend
from penstock.dse.search.walk_moves import small_moves
from penstock.dse.search.worth import State, Worth
from penstock.dse.space.fitted import IN_PARTS, IN_TURN, WALK, cap_of, outer_of
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.simulated import simulate_design
from penstock.services.jobs.model import load_program

HEADS, PLACES = 8, 48


def decoder(family: str = "gpt2", *, cache: int = PLACES, more: str = "&d=64&heads=8&ffn=64") -> Evaluator:
    """One token of a block, whose keys and values are joined to those of earlier ones."""
    program = load_program(f"zoo:{family}?mode=decode&seq=1&cache={cache}{more}", "w8a8")
    return Evaluator.create(program, "u55c", quantize="w8a8", options=TilingOptions(weights="stream"))


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    return decoder()


def designed(evaluator: Evaluator, walks: dict[str, str]) -> Evaluation:
    flowing = evaluator.space.fitting.flowing(evaluator.space.settings(evaluator.space.fitted_setting()))
    return evaluator.evaluate({**evaluator.space.fitted_setting(), **flowing, IN_TURN: True, **walks})


def test_every_kernel_that_walks_them_knows_the_joined_dims(evaluator: Evaluator) -> None:
    graph = evaluator.space.graph
    joined = joined_dims(graph, evaluator.space.dims)
    for op in graph.operations:
        assert joined.get(op.layer, {}) == {d: 1 for d, trip in enumerate(op.trips) if trip == PLACES + 1}, op.layer
    assert {"attn.bmm", "attn.amax", "attn.sum", "attn.bmm_2"} < joined.keys()


def test_halves_that_are_turned_and_put_together_again_are_no_cache() -> None:
    graph = decoder("llama", more="").space.graph
    joins = [node for node in graph.nodes if isinstance(node, Concat)]
    caches = extended(graph)
    assert 0 < len(caches) < len(joins)
    assert all(sorted(size for _, size in node.parts) == [1, PLACES] for node in joins if node.result in caches)


def test_walks_in_parts_are_offered_to_them_alone(evaluator: Evaluator) -> None:
    joined = evaluator.space.fitting.fitter.joined
    for name, walks in evaluator.space.choices.items():
        if name.startswith(f"{WALK}."):
            layer, own = name.partition(".")[2], [walk for walk in walks if cap_of(walk).endswith(IN_PARTS)]
            others = [d for d, n in enumerate(evaluator.space.graph.by_layer[layer].trips) if n > 1]
            assert bool(own) == (layer in joined and len(others) > 1), layer
            assert all(int(outer_of(walk)) not in joined[layer] for walk in own), "another dim is outermost"


@pytest.mark.parametrize("cache", [31, 48])
def test_lanes_divide_each_part(cache: int) -> None:
    evaluator = decoder(cache=cache)
    fitter = evaluator.space.fitting.fitter
    ways = evaluator.space.fitting.by_parts
    assert len(ways) > 1
    for walks in ways:
        design = designed(evaluator, walks).design
        for name in walks:
            layer = name.partition(".")[2]
            for d, part in fitter.joined[layer].items():
                assert gcd(cache, part) % design.kernels[layer].unroll[d] == 0, (walks, layer)


def test_heads_of_one_block_are_done_before_the_next_block_begins(evaluator: Evaluator) -> None:
    """A maximum in one cycle needs no others to take turns with: with those of all heads, all scores would wait."""
    (walks,) = [one for one in evaluator.space.fitting.by_parts if one[f"{WALK}.attn.bmm"] == "0-by2-parts"]
    design = designed(evaluator, walks).design
    for layer in ("attn.bmm", "attn.amax", "attn.sum", "attn.bmm_2"):
        kernel = design.kernels[layer]
        assert kernel.order[0] == 0
        assert kernel.tile[0] == kernel.unroll[0] <= 2, layer


def test_scores_of_few_heads_wait_and_nothing_is_turned_around(evaluator: Evaluator) -> None:
    held, ends = dict[str, int](), dict[str, int]()
    ways = [{}, *(one for one in evaluator.space.fitting.by_parts if one[f"{WALK}.attn.bmm"] == "0-by2-parts")]
    for name, walks in zip(("places", "heads"), ways, strict=True):
        found = evaluator.tightened(designed(evaluator, walks))
        network = evaluator.assembler.network(found.design)
        depths = found.design.fifo_depths
        (scores,) = [c for n, c in network.channels.items() if n == "attn_mul__attn_mul_2"]
        held[name] = depths[scores.name] * scores.bits
        run = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=dict(depths))
        assert run.deadlock is None
        ends[name] = run.latency
    assert held["places"] >= HEADS * PLACES * 8, "all of them, for their maximum"
    assert held["heads"] < held["places"] / 2
    assert ends["heads"] < 2 * ends["places"]

    design = designed(evaluator, ways[1]).design
    kernels = Planner(evaluator.space.graph, evaluator.platform).plan(design).kernels
    parts = [part for kernel in kernels for part in kernel.parts]
    (keys, values) = [part for part in parts if isinstance(part.does, Concatenating)]
    for part in (keys, values):
        (reader,) = {end.reader for end in part.outputs[0].ends() if end.reader is not None and end.reader.inputs}
        assert not isinstance(reader.does, Converting) or reader.does.source.bits * 2 >= reader.does.target.bits


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_such_designs_compute_what_the_model_does(family: str) -> None:
    evaluator = decoder(family, cache=5, more="")
    for walks in evaluator.space.fitting.by_parts[:2]:
        lowered = lower(evaluator.program, designed(evaluator, walks).design)
        for comparison in verify_levels(lowered, make_inputs(lowered, random_sets=1)):
            assert comparison.equal, comparison


def test_lanes_of_such_a_walk_are_changed_alone(evaluator: Evaluator) -> None:
    (walks,) = [one for one in evaluator.space.fitting.by_parts if one[f"{WALK}.attn.bmm"] == "0-by2-parts"]
    op = evaluator.space.graph.by_layer["attn.bmm"]
    here = {**evaluator.space.fitted_setting(), **walks}
    changed = {str(s[f"{WALK}.attn.bmm"]) for s in small_moves(evaluator.space, evaluator.space.choices, op, here)}
    assert changed - {"0-by2-parts"} == {"0-parts", "0-fine-parts", "0-by4-parts"}


def test_a_search_looks_at_them(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator, asked, evaluate = decoder(), set[str](), Worth.evaluate

    def listening(self: Worth, state: State, best: Evaluation | None = None) -> Evaluation | None:
        asked.add(str(state[f"{WALK}.attn.bmm"]))
        return evaluate(self, state, best)

    monkeypatch.setattr(Worth, "evaluate", listening)
    found = descend(evaluator, rounds=1)
    assert found is not None
    assert any(cap_of(walk).endswith(IN_PARTS) for walk in asked)


def test_a_design_without_a_cache_has_no_such_walks() -> None:
    evaluator = Evaluator.create(load_program("zoo:gpt2?mode=prefill&seq=8", "w8a8"), "u55c", quantize="w8a8")
    assert not evaluator.space.fitting.by_parts
    walks = [walk for name, all_of in evaluator.space.choices.items() if name.startswith(f"{WALK}.") for walk in all_of]
    assert walks
    assert not any(cap_of(walk).endswith(IN_PARTS) for walk in walks)
