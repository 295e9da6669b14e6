"""Networks of frames on a device: where their weights lie, and FIFOs that need not hold whole tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from torch import nn

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, WeightStore
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.verify import make_inputs, verify_levels
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.schedule import load_library
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import depths_where_paths_meet, runs_through, safe_depths
from penstock.dse.lanes.pacing import Fitter
from penstock.dse.lanes.stores import Stores, may_be_turned, passing_by, stands_still, walked_frames, weight_bits
from penstock.dse.lanes.walks import KernelWalk
from penstock.dse.search.explore import Exploration, explore
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.bandwidth import external_bits
from penstock.profiling.model import ChannelFigures, DesignModel
from penstock.profiling.network import network_of
from tests.compiler.frames import FRAMES, imported


def test_weights_of_large_frames_are_kept_first() -> None:
    """As many as half of the memories hold; those larger than all they meet pass a resting frame, each once."""
    body = nn.Sequential(nn.Conv2d(4, 8, 3), nn.MaxPool2d(4), nn.Conv2d(8, 512, 2))
    graph = read_graph(prepare(imported(body, (1, 4, 10, 10))).module)
    by_layer = {op.layer: op for op in graph.operations}
    first, last = weight_bits(by_layer["0"], graph), weight_bits(by_layer["2"], graph)
    blocks = (2 * (first + last), first // (9 * 1024))
    roomy, tight = (Stores.of(graph, "stream", Resources(lut=100_000, bram18=n)) for n in blocks)
    assert {roomy.at("0"), tight.at("0")} == {"keep"}
    assert Stores.of(graph, "rom", Resources()).at("0") == "rom"
    assert (tight.at("2"), stands_still(by_layer["0"], graph, tight)) == ("stream", False)
    assert stands_still(by_layer["2"], graph, tight) == ("2" not in walked_frames(graph, tight))


def test_small_weights_lie_on_a_small_chip_for_good() -> None:
    """Six tensors that are loaded take more LUTs than a quarter of 10,000; of 100,000 they may."""
    body = nn.Sequential(nn.Conv2d(4, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Conv2d(16, 64, 3))
    graph = read_graph(prepare(imported(body, (1, 4, 10, 10))).module)
    by_layer = {op.layer: op for op in graph.operations}
    sizes = {layer: weight_bits(op, graph) for layer, op in by_layer.items() if weight_bits(op, graph)}
    largest = max(sizes, key=lambda layer: sizes[layer])
    blocks = 4 * (sum(sizes.values()) - sizes[largest] // 2) // (18 * 1024)
    small, large = (Stores.of(graph, "stream", Resources(lut=lut, bram18=blocks)) for lut in (10_000, 100_000))
    assert {layer: small.at(layer) for layer in sizes} == {
        layer: "keep" if layer == largest else "rom" for layer in sizes
    }
    assert "rom" not in {large.at(layer) for layer in sizes}


def test_a_network_of_a_hundred_kernels_fits_a_small_chip() -> None:
    """MobileNetV2 did not at any setting: weights of all layers were loaded, each load ran 16 KiB ahead, and FIFOs in
    front of slow layers held rows of windows."""
    program = prepare(import_model("zoo:mobilenet_v2"), "w8a8")
    goal = Goal.of(("throughput",), [])
    evaluator = Evaluator.create(program, "zcu104", quantize="w8a8", goal=goal)
    found = evaluator.assume({**evaluator.space.fitted_setting(), "prefetch_kib": 0})
    assert found.feasible
    assert found.figures.interval < 1_000_000


def test_windows_of_a_frame_that_stands_still_are_kept_as_they_come_where_no_room_is_to_turn_them() -> None:
    """Their kernel computes the same in either order; the one without a block between holds less."""
    body = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.Conv2d(8, 64, 3, padding=1))
    program = prepare(imported(body, (1, 2, 3, 3)), "w8a8")
    graph = read_graph(program.module)
    own: dict[str, WeightStore] = {op.layer: "keep" for op in graph.operations if op.layer != "1"}
    stores = Stores("stream", own)
    assert "1" not in walked_frames(graph, stores)
    library, windows = load_library(load_platform("u55c").operators, 300.0), 8 * 9 * 9 * 8
    roomy, tight = (Resources(bram18=3 * windows * 4 // (18 * 1024) + more) for more in (1, 0))
    assert (may_be_turned(graph, stores, roomy), may_be_turned(graph, stores, tight)) == (True, False)
    fitter = Fitter(graph, "u55c", 300.0, library, stores)
    (op,) = [one for one in graph.operations if one.layer == "1"]
    (plain,) = fitter.walks(op)
    limits, held, moved = Resources(lut=20_000, ff=40_000, dsp=64), list[int](), list[int]()
    for walk in (plain, KernelWalk((0, 1, 2), frame=(1, 2))):
        walks = {one.layer: fitter.walks(one)[0] for one in fitter.heavy} | {"1": walk}
        lowered = lower(program, Design("u55c", 300.0, fitter.kernels(walks, limits), "w8a8"))
        assert all(one.equal for one in verify_levels(lowered, make_inputs(lowered, random_sets=1)))
        network = network_of(lowered.top, library)
        held.append(sum(c.bits * c.words * c.depth for c in network.channels.values() if c.kind != "stream"))
        moved.append(external_bits(network))
    assert held[1] < held[0]
    assert moved[1] == moved[0]  # each weight comes once, whichever stands still


def test_what_is_summed_up_of_a_frame_that_stands_still_is_not_turned_round() -> None:
    """It comes channel by channel, and a whole frame waited for its last channel; a window wants it place by place."""
    head = nn.Sequential(nn.Conv2d(2, 64, 3), nn.Conv2d(64, 64, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    program = prepare(imported(head, (1, 2, 4, 4)), "w8a8")
    graph = read_graph(program.module)
    own: dict[str, WeightStore] = {op.layer: "keep" for op in graph.operations if op.layer != "1"}
    stores = Stores("stream", own)
    (summed,) = [op.layer for op in graph.operations if op.reductions and op.layer.startswith("3")]
    assert summed not in walked_frames(graph, stores)
    assert summed in walked_frames(graph, Stores("keep"))
    library, limits = load_library(load_platform("u55c").operators, 300.0), Resources(lut=20_000, ff=40_000, dsp=64)
    fitter = Fitter(graph, "u55c", 300.0, library, stores)
    plain = {one.layer: fitter.walks(one)[0] for one in fitter.heavy}
    held = list[int]()
    for walks in (plain, plain | {summed: KernelWalk((1, 2), frame=(1, 2))}):
        lowered = lower(program, Design("u55c", 300.0, fitter.kernels(walks, limits), "w8a8"))
        assert all(one.equal for one in verify_levels(lowered, make_inputs(lowered, random_sets=1)))
        network = network_of(lowered.top, library)
        held.append(sum(c.bits * c.words * c.depth for c in network.channels.values() if c.kind != "stream"))
    assert held[1] - held[0] >= 64 * 4 * 8, "the whole frame"

    more = nn.Sequential(nn.Conv2d(2, 64, 3), nn.Conv2d(64, 64, 1), nn.ReLU(), nn.Conv2d(64, 2, 2), nn.Flatten())
    graph = read_graph(prepare(imported(more, (1, 2, 4, 4)), "w8a8").module)
    own = {op.layer: "keep" for op in graph.operations if op.layer != "1"}
    walked = walked_frames(graph, Stores("stream", own))
    assert {"1", "1.relu"} - walked.keys() == {"1"}


def test_windows_have_lanes_for_their_sides_however_few_places_they_have() -> None:
    """Three is no power of two: with lanes along channels alone ResNet-18 of 32 pixels had half the DSPs."""
    body = nn.Sequential(nn.Conv2d(256, 256, 3), nn.Flatten(), nn.Linear(1024, 64), nn.Linear(64, 8))
    graph = read_graph(prepare(imported(body, (1, 256, 4, 4))).module)
    assert [op.layer for op in graph.operations if op.layer in passing_by(graph, Stores("stream"))] == ["2"]


@pytest.mark.parametrize("quantize", [None, "w8a8"])
def test_kept_weights_compute_the_same(quantize: str | None) -> None:
    program = prepare(imported(FRAMES["residual"][0](), FRAMES["residual"][1]), quantize)
    design = default_design(read_graph(program.module), "u55c", 300.0, quantize)
    kept = {layer: replace(kernel, weights="keep") for layer, kernel in design.kernels.items()}
    lowered = lower(program, replace(design, kernels=kept))
    assert all(one.equal for one in verify_levels(lowered, make_inputs(lowered, random_sets=1)))


def test_fifos_where_paths_meet_hold_no_whole_tensors() -> None:
    """Without room for these they are as deep as the model says, which suffices; with it they are left as they are."""
    program = prepare(imported(FRAMES["residual"][0](), FRAMES["residual"][1]), "w8a8")
    evaluator = Evaluator.create(program, "u55c", quantize="w8a8", options=TilingOptions(max_lanes=64))
    network = evaluator.assembler.network(evaluator.space.design(evaluator.space.default_params()))
    platform, clock = evaluator.platform, evaluator.clock_mhz
    free = DesignModel(platform, clock).figures(network, bounded=False)
    whole = safe_depths(free.channels)
    assert depths_where_paths_meet(free.channels, whole, 1e9) == whole
    held = depths_where_paths_meet(free.channels, whole, 0)
    assert sum(held.values()) < sum(whole.values()) / 2
    assert runs_through(network, platform, clock, held)


@pytest.mark.parametrize("wrong", [2, 3, 6])
def test_depths_that_were_believed_wrongly_give_way_to_safe_ones(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the model says of depths, what is evaluated runs through."""
    program = prepare(imported(FRAMES["residual"][0](), FRAMES["residual"][1]), "w8a8")

    def believed(channels: Sequence[ChannelFigures], depths: Mapping[str, int], _: float) -> dict[str, int]:
        return {**depths, **{c.name: wrong for c in channels if c.kind == "stream"}}

    monkeypatch.setattr("penstock.dse.evaluation.assumed_depths.depths_where_paths_meet", believed)
    evaluator = Evaluator.create(program, "u55c", quantize="w8a8", options=TilingOptions(max_lanes=64))
    params = evaluator.space.default_params()
    found = evaluator.evaluate(params)
    assert not found.assumed
    depths = found.design.fifo_depths
    network = evaluator.assembler.network(found.design)
    assert runs_through(network, evaluator.platform, evaluator.clock_mhz, depths)
    assert evaluator.evaluate_design(replace(found.design, fifo_depths={})).design.fifo_depths == depths


@pytest.mark.parametrize("worth", [True, False])
def test_what_stands_still_is_timed_again_only_where_it_may_be_worth_it(
    worth: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With safe depths a design takes more, and what fits then may be far slower."""
    monkeypatch.setattr("penstock.dse.evaluation.assumed_depths._WHERE_PATHS_MEET", 0.0)
    program = prepare(imported(FRAMES["residual"][0](), FRAMES["residual"][1]), "w8a8")
    options, asked, timed = TilingOptions(max_lanes=64), list[Evaluation](), list[bool]()
    evaluator, other = (Evaluator.create(program, "u55c", quantize="w8a8", options=options) for _ in range(2))
    params = evaluator.space.default_params()
    whole, time_it = other.assume(params), evaluator._timed

    def stands_still(found: Evaluation) -> Evaluation | None:
        timed.append(found.assumed)
        return None if found.assumed else time_it(found)

    monkeypatch.setitem(evaluator.__dict__, "_timed", stands_still)
    found = evaluator.assume(params, lambda one: asked.append(one) or worth)
    assert timed == [True, False][: 1 + worth]
    assert [one.assumed for one in asked] == [False], "only what comes after one that stands still"
    assert found.timed == worth
    assert found.values[0] <= whole.values[0]


def _explored(trials: int) -> Exploration:
    program = prepare(imported(FRAMES["residual"][0](), FRAMES["residual"][1]), "w8a8")
    evaluator = Evaluator.create(program, "u55c", quantize="w8a8", options=TilingOptions(max_lanes=16))
    found = explore(evaluator, trials)
    best = found.best.evaluation
    assert not best.assumed
    network = evaluator.assembler.network(best.design)
    assert runs_through(network, evaluator.platform, evaluator.clock_mhz, best.design.fifo_depths)
    return found


def test_of_a_search_only_what_may_be_chosen_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    simulated: list[Mapping[str, int]] = []

    def seen(*asked: Any) -> bool:
        simulated.append(asked[-1])
        return runs_through(*asked)

    monkeypatch.setattr("penstock.dse.evaluation.evaluate.runs_through", seen)
    monkeypatch.setattr("penstock.dse.evaluation.assumed_depths._WHERE_PATHS_MEET", 0.0)
    found = _explored(4)
    assert sum(one.evaluation.assumed for one in found.tried) >= len(found.tried) - 2 > 0, "most are believed"
    assert 1 <= len(simulated) <= 2


def test_a_search_that_believed_wrongly_chooses_what_runs_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def believed(channels: Sequence[ChannelFigures], depths: Mapping[str, int], _: float) -> dict[str, int]:
        return {**depths, **{c.name: 2 for c in channels if c.kind == "stream"}}

    monkeypatch.setattr("penstock.dse.evaluation.assumed_depths.depths_where_paths_meet", believed)
    _explored(4)
