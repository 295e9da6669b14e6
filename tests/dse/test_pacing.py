"""Lanes fitted to a pace within the space: legal and deterministic designs that keep what a user decided."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import KernelDesign
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.factors import Lanes
from penstock.dse.lanes.keeping_up import PacedKernel
from penstock.dse.search.samplers import means_something, narrow
from penstock.dse.search.start import starting_settings
from penstock.dse.space.fitted import IN_TURN
from penstock.dse.space.paced import OPERATOR_LUTS, PACED
from penstock.dse.space.tiling import TilingOptions, TilingSpace
from tests.compiler.designs import Dense, build_network, networks


def space_of(program: Program, platform: str, options: TilingOptions | None = None) -> TilingSpace:
    return TilingSpace(read_graph(program.module), load_platform(platform), 100.0, None, options or TilingOptions())


def mlp(*widths: int, first: int = 8, kind: str = "int8", rows: int | None = None) -> Program:
    return build_network(kind, rows, first, tuple(Dense(w, False, False) for w in widths), seed=1)


@given(st.data())
@settings(max_examples=25)
def test_every_paced_setting_is_a_legal_design(data: st.DataObject) -> None:
    program = data.draw(networks())
    platform = data.draw(st.sampled_from(["u55c", "zcu104", "ecp5-25k"]))
    options = TilingOptions(max_lanes=data.draw(st.sampled_from([None, 2, 16])))
    space = space_of(program, platform, options)
    params = {name: data.draw(st.sampled_from(values)) for name, values in space.choices.items()}
    params |= {"allocation": PACED}
    design = space.design(params)
    assert design == space.design(dict(reversed(params.items())))
    assert design == space_of(program, platform, options).design(params)  # whatever was designed before
    meaningful = {name: v for name, v in params.items() if means_something(name, params, space.conditions)}
    assert design == space.design(meaningful)
    lower(program, design)
    lanes = sum(design.kernels[op.layer].lanes for op in space.heavy)
    assert lanes <= max(int(params["overall_unroll_size"]), len(space.graph.operations))
    assert lanes <= max(options.max_lanes or lanes, len(space.graph.operations))


def test_kernels_keep_up_with_each_other() -> None:
    """With 2:1 of work, lanes are 2:1, where slowest-first can only double."""
    space = space_of(mlp(64, 32, first=64), "u55c")
    kernels = space.design({**space.paced_settings()[0], "overall_unroll_size": 96}).kernels
    assert (kernels["fc0"].lanes, kernels["fc1"].lanes) == (64, 32)


def test_what_a_user_decided_is_left_alone() -> None:
    program = mlp(16, 8, first=16)
    fixed = KernelDesign((4, 4), (2, 2), (1, 0), "rom")
    space = space_of(program, "u55c", TilingOptions(kernels={"fc0": fixed}, max_lanes=32))
    for params in space.paced_settings():
        design = space.design(params)
        assert design.kernels["fc0"] == fixed
        assert design.kernels["fc1"].lanes > 1
        lower(program, design)


def test_where_nothing_fits_there_is_one_lane_each() -> None:
    space = space_of(mlp(64, 32, first=64), "ecp5-25k", TilingOptions(max_lanes=1))
    assert all(kernel.lanes == 1 for kernel in space.design(space.paced_settings()[0]).kernels.values())


def test_what_a_user_ruled_out_is_not_tried_first() -> None:
    evaluator = Evaluator.create(mlp(48, 24, first=40), "ecp5-45k")
    starts, _ = starting_settings(evaluator)
    assert any(params["allocation"] == PACED and params[OPERATOR_LUTS] for params in starts)
    ruled, modelled = starting_settings(evaluator, narrow(evaluator.space.choices, ["allocation=aligned"]))
    assert {params["allocation"] for params in ruled} == {"aligned"}
    assert modelled == 0
    assert len(ruled) == len({tuple(sorted(p.items())) for p in ruled})


def test_no_paces_where_kernels_are_not_told_apart() -> None:
    space = space_of(mlp(16, 8), "u55c", TilingOptions(per_kernel=False))
    assert PACED not in space.choices["allocation"]
    assert OPERATOR_LUTS not in space.choices
    assert space.paced_settings() == ()


def test_in_turn_a_kernel_of_few_lanes_slows_no_other() -> None:
    """The sum of all times counts: that one of them is as long as its walk makes it gives the others no time."""
    space = space_of(mlp(32, 32, first=32), "u55c")
    turns = {**space.fitted_setting(), IN_TURN: True}
    plain, few = (space.design({**turns, "walk.fc0": walk}).kernels for walk in ("0", "0-fine"))
    assert few["fc0"].lanes == 32 < plain["fc0"].lanes, "none along its slow dim"
    assert few["fc1"].lanes >= plain["fc1"].lanes
    paced = space.design({**turns, IN_TURN: False, "walk.fc0": "0-fine"}).kernels
    assert paced["fc1"].lanes == 32, "at a common pace more would be wasted"


def test_parts_of_a_token_are_of_one_slice_after_the_other() -> None:
    """As they lie in the tensor: some lanes of every row would be turned around for a layer that sums over columns."""
    program = build_network("int8", 16, 16, (Dense(64, True, True), Dense(32, True, True)), seed=1)
    (one,) = [op for op in read_graph(program.module).operations if op.layer == "fc0.relu"]
    shared = tuple(range(len(one.trips)))
    kernel = PacedKernel(
        op=one, leader="fc0", shared=shared, work=16 * 64, slowness=1.0, part=1.0, hurry=1, options=(), single=None,
        least=Resources(), counts=False,
    )  # fmt: skip
    leading = {"fc0": Lanes(64, (4, 16))}
    assert [kernel.keeping_up(pace, leading) for pace in (16.0, 32.0, 64.0, 128.0, 1024.0)] == [
        Lanes(16, (4, 16)), Lanes(32, (2, 16)), Lanes(64, (1, 16)), Lanes(128, (1, 8)), Lanes(1024, (1, 1)),
    ]  # fmt: skip
