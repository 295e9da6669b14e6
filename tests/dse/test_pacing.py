"""Lanes fitted to a pace within the space: legal and deterministic designs that keep what a user decided."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import KernelDesign
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import Resources, load_platform
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.lanes.factors import Lanes
from penstock.dse.lanes.leftover import Alike, with_leftover
from penstock.dse.search.samplers import means_something, narrow
from penstock.dse.search.start import starting_settings
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


def test_what_a_common_pace_leaves_goes_to_whoever_saves_most_for_it() -> None:
    """Lanes are powers of two: at one pace both have 4 of 10 DSPs, and the next would take 16."""
    large = tuple([Lanes(4096 // n, (n,)) for n in (16, 8, 4, 2, 1)])
    small = tuple([Lanes(1024 // n, (n,)) for n in (16, 8, 4, 2, 1)])
    asked: list[float] = []

    def along(lanes: Mapping[str, Lanes], faster: float) -> Mapping[str, Lanes]:
        asked.append(faster)
        return {"bias": lanes["large"]}

    kinds = [Alike(("large",), large, along), Alike(("small", "twin"), small, lambda *_: {})]
    start = {"large": large[2], "bias": large[2], "small": small[3], "twin": small[3]}

    def area(layer: str, lanes: Lanes) -> tuple[int, int, int]:
        return (0 if layer == "bias" else lanes.count, 10 * lanes.count, lanes.count)

    def found(dsp: int) -> dict[str, int]:
        limits = Resources(dsp=dsp, lut=10_000)
        return {layer: one.count for layer, one in with_leftover(start, kinds, area, limits, None).items()}

    assert found(8) == {"large": 4, "bias": 4, "small": 2, "twin": 2}, "nothing is left"
    assert found(12) == {"large": 8, "bias": 8, "small": 2, "twin": 2}, "512 cycles for 4 DSPs, not 256 for 4"
    assert found(16) == {"large": 8, "bias": 8, "small": 4, "twin": 4}, "what is alike gets more together"
    assert max(asked) >= 2, "what goes along is asked for as many times as fast"
