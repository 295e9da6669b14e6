"""What can still be routed: a limit of its own, seen when a design is modelled."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.platforms import load_platform
from penstock.compiler.platforms.routing import routing_of
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import ROUTING, after_miss, describe_miss
from tests.schedule.gemms import gemm_program


def evaluated(lanes: tuple[int, int, int], platform: str = "u280", adders: str = "fabric") -> Evaluation:
    """A float product of 16 x 1,024 x 64 with weights from memory."""
    program = gemm_program(16, 1024, 64, "float32")
    kernel = KernelDesign((16, 1024, 64), lanes, (0, 1, 2), "stream", {"arith.addf": adders})
    return Evaluator.create(program, platform).evaluate_design(Design(platform, 300.0, {"fc": kernel}))


def test_a_pipeline_of_many_lanes_is_refused_by_name():
    small, large = evaluated((1, 128, 1)), evaluated((1, 1024, 1))
    assert small.feasible
    assert small.constraints[ROUTING] < 0
    assert large.constraints[ROUTING] > 1
    assert not large.feasible
    assert "It would not route: the pipeline of fc has" in large.explanation
    assert "routing" in large.explanation.rpartition("Over the limit: ")[2]


def test_a_token_of_more_bits_than_there_are_wires_is_refused():
    platform = load_platform("u280")
    limits = routing_of(platform)
    assert limits is not None
    assert limits.token_bits == min(link.wires for link in platform.links)
    wide = evaluated((1, 1024, 1)).routing
    assert wide is not None
    assert wide.share >= 1024 * 32 / limits.token_bits


def test_where_nothing_is_known_nothing_is_refused():
    assert routing_of(load_platform("xcu280")) is None
    assert routing_of(load_platform("ecp5-85k")) is None
    alone = replace(load_platform("u280"), links=())
    assert routing_of(alone) == routing_of(load_platform("u280"))


@pytest.mark.parametrize("lanes", [64, 128])
def test_adders_of_dsps_count_as_dsps(lanes: int):
    use = evaluated((1, lanes, 1), adders="dsp").routing
    assert use is not None
    assert use.share == pytest.approx(5 * lanes / 1700, rel=0.3)


def test_a_miss_says_what_to_do():
    assert "1.50 times as large as can be routed" in describe_miss(ROUTING, 0.5)
    assert "fewer lanes" in after_miss(ROUTING)


def test_a_common_pace_asks_no_kernel_for_more_than_routes():
    evaluator = Evaluator.create(gemm_program(16, 1024, 1024, "int8"), "u280")
    paced = [evaluator.evaluate(setting) for setting in evaluator.space.paced_settings()]
    assert paced
    assert all(one.constraints[ROUTING] <= 0 for one in paced)
