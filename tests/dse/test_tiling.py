"""The tiling space: legal designs only, lanes where the time is, neighbours that agree."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.default_design import weights_placement
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.alignment import divisors
from penstock.dse.space.tiling import TilingOptions, TilingSpace
from tests.compiler.designs import Dense, build_network, networks


def space_of(program: Program, platform: str = "u55c", options: TilingOptions | None = None) -> TilingSpace:
    return TilingSpace(read_graph(program.module), load_platform(platform), 100.0, None, options or TilingOptions())


def mlp(*widths: int, first: int = 8, kind: str = "int8") -> Program:
    return build_network(kind, None, first, tuple(Dense(w, False, False) for w in widths), seed=1)


@given(st.data())
@settings(max_examples=25)
def test_every_setting_is_a_legal_design(data: st.DataObject):
    program = data.draw(networks())
    space = space_of(program)
    params = {name: data.draw(st.sampled_from(values)) for name, values in space.choices.items()}
    design = space.design(params)
    assert design == space.design(dict(reversed(params.items())))
    lower(program, design)
    budget = int(params["overall_unroll_size"])
    assert params["allocation"] == "fitted" or sum(design.kernels[op.layer].lanes for op in space.heavy) <= max(
        budget, len(space.graph.operations)
    )


@pytest.mark.parametrize(
    ("side", "placed"), [(240, ("rom", "rom")), (280, ("rom", "stream")), (340, ("stream", "stream"))]
)
def test_constants_take_more_block_ram_where_ultraram_takes_the_rest(side: int, placed: tuple[str, str]):
    """A layer of a third, two thirds or nine tenths of what a design may use, with UltraRAM and without."""
    program = mlp(side, first=side, kind="float32")
    with_ultraram = load_platform("kv260")
    (die,) = with_ultraram.dies
    without = replace(with_ultraram, dies=(replace(die, resources=replace(die.resources, uram=0)),))
    graph = read_graph(program.module)
    assert (weights_placement(graph, with_ultraram), weights_placement(graph, without)) == placed


def test_lanes_go_where_the_time_is():
    """64x8 takes eight times as long as 8x8, and gets the lanes."""
    space = space_of(mlp(64, 1, first=64))
    design = space.design({"default_tile_size": 64, "overall_unroll_size": 32, "connect": False})
    assert design.kernels["fc0"].lanes >= 16
    assert design.kernels["fc1"].lanes == 1


def test_lanes_stop_when_the_slowest_kernel_has_no_more():
    space = space_of(mlp(2, 8, first=1), options=TilingOptions(per_kernel=False))
    most = space.choices["overall_unroll_size"][-1]
    design = space.design({"default_tile_size": space.choices["default_tile_size"][-1], "overall_unroll_size": most})
    assert max(k.lanes for k in design.kernels.values()) <= 16


def test_a_boost_moves_lanes():
    space = space_of(mlp(8, 8))
    base = {"default_tile_size": 8, "overall_unroll_size": 16, "connect": False}
    plain = space.design({**base, "boost.fc0": 0, "boost.fc1": 0})
    boosted = space.design({**base, "boost.fc0": 0, "boost.fc1": 2})
    assert boosted.kernels["fc1"].lanes > plain.kernels["fc1"].lanes


def test_reductions_outside_parallel_loops_inside():
    space = space_of(mlp(8))
    parallel = space.design({"order": "parallel-outer"}).kernels["fc0"]
    reduction = space.design({"order": "reduction-outer"}).kernels["fc0"]
    (reduced,) = space.graph.by_layer["fc0"].reductions
    assert parallel.order[-1] == reduced
    assert reduction.order[0] == reduced


def test_elementwise_kernels_walk_like_their_producer():
    space = space_of(mlp(8, 8))
    design = space.design({"default_tile_size": 4, "overall_unroll_size": 16, "unroll_along": "parallel"})
    product, relu = design.kernels["fc0"], design.kernels["fc0.relu"]
    assert product.unroll[0] > 1
    assert (relu.tile[0], relu.unroll[0]) == (product.tile[0], product.unroll[0])


def test_connected_kernels_agree_on_lanes():
    space = space_of(mlp(8, 8))
    params = {
        "default_tile_size": 8,
        "overall_unroll_size": 32,
        "unroll_along": "parallel",
        "boost.fc0": 0,
        "boost.fc1": 0,
    }
    apart = space.design({**params, "connect": False}).kernels
    together = space.design({**params, "connect": True}).kernels
    assert apart["fc1"].unroll != together["fc1"].unroll
    assert together["fc1"].unroll[1] == together["fc0"].unroll[0]
    assert together["fc1"].lanes == apart["fc1"].lanes


def test_kernels_decided_by_hand_are_left_alone():
    fixed = KernelDesign((4, 8), (2, 2), (1, 0))
    space = space_of(mlp(8, 8), options=TilingOptions(kernels={"fc0": fixed}))
    assert space.design(space.default_params()).kernels["fc0"] == fixed
    assert "boost.fc0" not in space.choices


def test_weights_leave_the_chip_only_where_there_is_a_memory():
    assert space_of(mlp(8)).weights == "rom"
    assert space_of(mlp(8), options=TilingOptions(weights="stream")).weights == "stream"


def test_the_space_ends_where_the_device_ends():
    large = mlp(512, first=512)
    small, big = space_of(large, "ecp5-25k"), space_of(large, "u55c")
    assert small.max_lanes < 500 < big.max_lanes
    limited = space_of(large, "u55c", TilingOptions(max_lanes=16))
    assert limited.choices["overall_unroll_size"][-1] == 16


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"default_tile_size": 3}, "bad-parameter"),
        ({"tile": 4}, "unknown-parameter"),
        ({"order": "any"}, "bad-parameter"),
    ],
)
def test_a_setting_outside_the_space_is_named(params: dict[str, int | str], code: str):
    with pytest.raises(PenstockError) as caught:
        space_of(mlp(8)).design(params)
    assert caught.value.code == code
    assert caught.value.limit


@given(st.integers(1, 5000))
def test_divisors(number: int):
    assert divisors(number) == tuple(d for d in range(1, number + 1) if number % d == 0)


@pytest.mark.parametrize("platform", ["u55c", "zcu104", "ecp5-85k", "ecp5-25k"])
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_the_first_guess_fits_and_uses_what_is_there(platform: str, kind: str):
    program = mlp(64, 32, first=64, kind=kind)
    evaluator = Evaluator.create(program, platform)
    guess = evaluator.evaluate(evaluator.space.default_params())
    assert guess.feasible
    settings = evaluator.space.first_settings()
    assert settings[0] == evaluator.space.default_params()
    for setting in settings:
        evaluator.space.design(setting)
    lanes = sum(k.lanes for k in guess.design.kernels.values())
    assert lanes >= min(evaluator.space.lanes_that_fit // 3, 64)


def test_a_float_lane_costs_more_than_an_integer_one():
    assert space_of(mlp(64, kind="int8")).lanes_that_fit > 3 * space_of(mlp(64, kind="float32")).lanes_that_fit


def test_operators_are_a_choice_where_the_platform_has_one():
    assert space_of(mlp(8, kind="float32")).choices["adders"] == ("dsp", "fabric")
    assert space_of(mlp(8, kind="int8")).choices["multipliers"] == ("dsp", "fabric", "paired", "chained")
    for kind in ("float32", "int8"):
        assert not {"adders", "multipliers"} & set(space_of(mlp(8, kind=kind), "ecp5-85k").choices)


def test_adders_are_built_as_chosen_and_nothing_else_changes():
    evaluator = Evaluator.create(mlp(8, 8, kind="float32"), "u55c")
    guess = evaluator.space.default_params()
    dsp, fabric = (evaluator.evaluate({**guess, "adders": choice}) for choice in ("dsp", "fabric"))
    assert not any(kernel.bindings for kernel in dsp.design.kernels.values())
    assert all(kernel.bindings == {"arith.addf": "fabric"} for kernel in fabric.design.kernels.values())
    assert {n: replace(k, bindings={}) for n, k in fabric.design.kernels.items()} == dsp.design.kernels
    assert fabric.figures.resources.dsp < dsp.figures.resources.dsp


def test_dims_with_few_divisors_are_padded_where_that_pays():
    program = build_network("float32", 25, 250, (Dense(37, False, False),), seed=1)
    evaluator = Evaluator.create(program, "u55c")
    guess = evaluator.space.default_params()
    assert guess["padding"] is False
    plain, padded = (evaluator.evaluate({**guess, "padding": choice}) for choice in (False, True))
    assert plain.design.kernels["fc0"].tile == (5, 1, 10)
    assert padded.design.kernels["fc0"].tile == (14, 10, 16)
    assert padded.feasible
    assert 2 * padded.figures.latency < plain.figures.latency
    assert any(s.get("padding") for s in evaluator.space.first_settings())
    lower(program, padded.design)


def test_nothing_is_padded_where_that_changes_nothing():
    assert "padding" not in space_of(mlp(8, 16)).choices
    assert "padding" in space_of(mlp(7, 16)).choices
    by_hand = TilingOptions(kernels={"fc0": KernelDesign((7, 8), (1, 1), (0, 1))})
    space = space_of(mlp(7, 16), options=by_hand)
    assert "padding" not in space.choices  # the next layer walks these seven too
