"""The published workloads: what they compute, what the tables say of them, and one small row from search to figures."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import kernel_designs, kernels, workloads
from benchmarks.kernel_designs import CNN_BLOCKS, WORKLOADS, Workload, limited, search
from benchmarks.published import BUDGETS, published, rivals
from penstock.compiler.design import Design
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.interpreter import linalg
from penstock.compiler.pipeline import prepare
from penstock.compiler.platforms import Resources
from penstock.compiler.transforms.pad_dims import Dims
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.factors import cheapest, pareto_lanes
from penstock.dse.lanes.mixing import changeable_in_a_lane, changes_towards
from penstock.dse.lanes.neighbours import follow
from penstock.dse.lanes.pacing import Fitter
from penstock.dse.lanes.walks import KernelWalk
from penstock.dse.search.explore import explore

SMALL = {
    "gemm": workloads.gemm(4, 5, 6),
    "2mm": workloads.two_mm(3, 4, 5, 6),
    "3mm": workloads.three_mm(3, 4, 5, 6, 7),
    "atax": workloads.atax(5, 6),
    "bicg": workloads.bicg(5, 6),
    "gesummv": workloads.gesummv(5),
    "mvt": workloads.mvt(6),
    "FeedForward": workloads.feed_forward(3, 4, 6),
    "MultiHeadSelfAttention1": workloads.self_attention(4, 8, 2),
    "ResMLP": workloads.residual_mlp(2, 8, 6, 4, 3),
    "Autoencoder": workloads.autoencoder(2, (8, 6, 4, 2)),
    "DepthwiseSeparableConvBlock": workloads.depthwise_block(2, 5),
    "ResidualBlock": workloads.residual_block(2, 5),
}
ALL = {**WORKLOADS, **CNN_BLOCKS}


def program(name):
    module, inputs = SMALL[name]
    return prepare(import_loaded(LoadedModel(name, f"workloads.py:{name}", module, inputs)))


@pytest.mark.parametrize("name", ALL)
def test_a_workload_computes_in_the_interpreter_what_pytorch_computes(name):
    canonical = program(name)
    samples = canonical.samples
    assert samples is not None
    found = linalg.run(canonical, samples.inputs)
    for ours, theirs in zip(found, samples.outputs, strict=True):
        assert np.allclose(np.asarray(ours).reshape(theirs.shape), theirs, atol=1e-4)


def test_the_formulas_are_those_of_the_tables():
    module, (a, b, c) = SMALL["gemm"]
    assert np.allclose(module(a, b, c), 0.5 * (a.numpy() @ b.numpy()) + 0.1 * c.numpy(), atol=1e-5)
    module, (a, b, r, p) = SMALL["bicg"]
    assert [tuple(out.shape) for out in module(a, b, r, p)] == [(6,), (5,)]
    assert WORKLOADS["gemm"].macs == 10_560_000
    assert WORKLOADS["Autoencoder"].macs == 32 * 2 * (784 * 256 + 256 * 128 + 128 * 64)


def test_published_figures_are_read_as_they_are():
    gemm = published("gemm")
    assert (gemm[0].label, gemm[0].cycles, gemm[0].budget) == ("Stream-HLS Opt5, 8304 DSP", 7100, 9024)
    assert ("HIDA", 176964, 324) in {(one.framework, one.cycles, one.dsp) for one in gemm}
    assert all(one.lut > 0 for one in gemm)
    assert not [one for one in published("3mm") if one.framework == "Allo"], "its co-simulation failed"
    over = next(one for one in published("2mm") if one.dsp == 222)
    assert over.counts_at(220), "made for 220 DSPs, though it takes two more"
    assert not over.counts_at(221)
    assert all(published(name) for name in ALL)
    assert all(one.dsp >= 100 for name in WORKLOADS for one in rivals(name))


def test_lanes_on_the_front_beat_each_other_in_nothing():
    front = pareto_lanes((6, 4, 10), (2,), 12)
    assert [one.cycles for one in front] == sorted({one.cycles for one in front})
    assert [one.count for one in front] == sorted((one.count for one in front), reverse=True)
    chosen = cheapest(front, 24)
    assert chosen is not None
    assert chosen.unroll == (1, 1, 10), "of equals the one that adds up most before it keeps anything"
    assert cheapest(front, 19) is None
    assert {one.unroll[2] for one in pareto_lanes((6, 4, 10), (2,), 12, ((2, 1),))} == {1}
    words = pareto_lanes((393 * 128, 1024), (1,), 1000, binary=(0, 1))
    assert words[0].count == 512, "393 x 2 are more, and two at a time"
    assert all(n & (n - 1) == 0 for one in words for n in one.unroll)
    assert {one.unroll[2] for one in pareto_lanes((6, 4, 10), (2,), 12, only=((2, (1,)),))} == {1}


def test_neighbours_fall_in_with_a_walk_and_padding_finds_more_even_lanes():
    evaluator = Evaluator.create(program("3mm"), "xcu280")
    graph = evaluator.space.graph
    last = graph.by_layer["mm_3"]
    walks = {op.layer: KernelWalk((0,)) for op in graph.operations} | {"mm_3": KernelWalk((2,), most=1)}
    turned = follow(walks, last, graph)
    assert (turned["mm"].outer, turned["mm_2"].outer) == ((1,), (0,)), "columns times rows"
    fitter = Fitter(graph, "xcu280", 300.0, evaluator.space.library)
    limits = limited(evaluator, 30).may_use
    assert fitter.pace(walks, limits, fitter.padding(walks, limits)) <= fitter.pace(walks, limits, {})
    assert isinstance(fitter.dims, Dims)


def test_a_row_from_search_to_figures(monkeypatch):
    evaluator = Evaluator.create(program("gemm"), "xcu280")
    monkeypatch.setattr(kernel_designs, "evaluator_of", lambda _: evaluator)
    monkeypatch.setattr(kernels, "evaluator_of", lambda _: evaluator)
    row = kernels.budget_row(Workload("gemm", workloads.gemm, ((4, 5, 6),)), 220)
    found = evaluator.evaluate_design(search("gemm", 220).design)
    assert row["cycles"] == found.figures.latency, "the model is the simulator's, on so small a design"
    assert row["dsp"] == found.figures.resources.dsp
    assert row["values_checked"] == 20
    assert row["beats_all"]


def test_a_search_for_the_tables_is_made_once_and_is_the_public_one(monkeypatch):
    evaluator = Evaluator.create(program("mvt"), "xcu280")
    monkeypatch.setattr(kernel_designs, "evaluator_of", lambda _: evaluator)
    made = search("mvt", 60, 40_000)
    assert explore(limited(evaluator, 60, 40_000)).best.evaluation.design.with_fifo_depths({}) == made.design

    def again(_):
        raise AssertionError("it was searched again")

    monkeypatch.setattr(kernel_designs, "explore", again)
    assert search("mvt", 60, 40_000) == made
    with pytest.raises(AssertionError, match="searched again"):
        search("mvt", 60, 40_001)


def test_what_earlier_searches_reached_is_known_for_every_budget():
    for name in WORKLOADS:
        assert set(BUDGETS) <= set(kernel_designs.earlier_cycles(name)), name
        assert kernel_designs.earlier_best(name, 10) is None
    assert kernel_designs.earlier_best("gemm", 3000) == kernel_designs.earlier_cycles("gemm")[2560]


def test_operators_change_until_both_resources_suffice():
    evaluator = Evaluator.create(program("gemm"), "xcu280")
    op, library = evaluator.space.graph.by_layer["mm"], evaluator.space.library
    (adder,) = changeable_in_a_lane(op, library, {"arith.addf": "fabric"})
    assert (adder.here.binding, adder.there.binding, adder.count) == ("fabric", "dsp", 1)
    saved = adder.here.lut - adder.there.lut
    hundred = replace(adder, count=100)
    area = Resources(lut=10_000, dsp=300)
    changes, fits = changes_towards(area, Resources(lut=10_000 - 3 * saved, dsp=306), [hundred])
    assert (changes, fits) == ({("mm", "arith.addf"): 3}, True)
    assert changes_towards(area, Resources(lut=10_000 - 4 * saved, dsp=307), [hundred]) == (changes, False)
    assert changes_towards(area, Resources(lut=10_000, dsp=300), [hundred]) == ({}, True)
    assert hundred.binding(3) == "3 dsp, fabric"
    assert hundred.binding(100) == "dsp"


def test_a_mixture_fits_more_lanes_than_either_kind():
    """Adders of LUTs alone run short of LUTs, adders of DSPs alone of DSPs."""
    evaluator = Evaluator.create(program("gemm"), "xcu280")
    fitter = Fitter(evaluator.space.graph, "xcu280", 300.0, evaluator.space.library)
    limits = Resources(lut=11_500, dsp=120)
    paces = {
        (adders, mixed): fitter.pace({"mm": KernelWalk((0,), adders=adders, mixed=mixed)}, limits, {})
        for adders in ("dsp", "fabric") for mixed in (False, True)
    }  # fmt: skip
    assert paces["dsp", True] == paces["fabric", True] < min(paces["dsp", False], paces["fabric", False])
    kernels = fitter.kernels({"mm": KernelWalk((0,), adders="fabric", mixed=True)}, limits)
    design = Design("xcu280", 300.0, kernels)
    figures = evaluator.evaluate_design(design).figures
    mixed = design.kernels["mm"].bindings["arith.addf"]
    assert mixed.endswith(" dsp, fabric")
    assert figures.resources.dsp <= limits.dsp
    assert Design.from_json(design.to_json()) == design


def test_a_paced_setting_may_mix_adders():
    space = Evaluator.create(program("gemm"), "xcu280").space
    assert space.choices["mixed_adders"] == (False, True)
    assert space.conditions["mixed_adders"] == {"allocation": ("paced",)}
    design = space.design({**space.paced_settings()[0], "operator_luts": 5, "mixed_adders": True})
    assert set(design.kernels) == set(space.graph.by_layer)
