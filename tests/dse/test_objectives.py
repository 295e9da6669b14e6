"""Objectives, limits and their contradictions by name; energy and traffic of a design; spaces with conditions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i8
from xdsl.dialects.test import TestOp as AnyOp

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import load_platform
from penstock.db import Database
from penstock.dse.bounds.bound import GoalBounds
from penstock.dse.bounds.reachable import check_reachable
from penstock.dse.evaluation.choosing import pareto_front, select_best
from penstock.dse.evaluation.energy import energy_table, run_cost
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import OBJECTIVES, Goal, Limit
from penstock.dse.search.samplers import grid, narrow, within
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Choices, Conditions
from tests.compiler.designs import Dense, build_network

PLATFORM = load_platform("u55c")


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    return Evaluator(program, PLATFORM, PLATFORM.clock_mhz)


@pytest.mark.parametrize(
    ("objectives", "limits", "code", "words"),
    [
        (["latancy"], [], "unknown-objective", "did you mean 'latency'"),
        (["beauty"], [], "unknown-objective", "latency, throughput, resources, energy, traffic"),
        (["latency", "latency"], [], "bad-objectives", "1 to 3 different ones"),
        (["latency", "resources", "energy", "traffic"], [], "bad-objectives", "1 to 3"),
        ([], ["dps<=0.5"], "unknown-limit", "did you mean 'dsp'"),
        ([], ["dsp"], "bad-limit", "dsp<=0.5"),
        ([], ["dsp<=-1"], "bad-limit", "above 0"),
        ([], ["dsp<=nan"], "bad-limit", "above 0"),
        ([], ["dsp<0.5"], "bad-limit", "NAME<=VALUE"),
        ([], ["latency_us<=2", "latency_us>=3"], "contradictory-limits", "latency_us>=3 and latency_us<=2"),
        ([], ["dsp<=0.2", "dsp>=9000"], "contradictory-limits", "dsp>=9000 and dsp<=0.2"),
        ([], ["lut>=2000000"], "contradictory-limits", "lut>=2000000 and the 804,048 lut of u55c cannot both be met"),
    ],
)
def test_what_cannot_be_wanted_is_named(objectives: list[str], limits: list[str], code: str, words: str) -> None:
    with pytest.raises(PenstockError) as caught:
        Goal.of(objectives, limits).on(PLATFORM)
    assert caught.value.code == code
    assert words in caught.value.one_line()


def test_limits_are_shares_or_counts_and_short_names_are_understood() -> None:
    half, count, power = (Limit.parse(text).on(PLATFORM) for text in ("dsp=0.5", "dsp<=220", "power<=3"))
    assert (half.bound, power.name) == (0.5, "power_w")
    assert count.bound == pytest.approx(220 / PLATFORM.limits.dsp)
    assert Limit.parse("interval>=10").violation({"interval_cycles": 5.0}) == 0.5
    assert Limit.parse("interval>=10").violation({"interval_cycles": 20.0}) <= 0


def test_values_follow_the_objectives_and_constraints_the_limits(evaluator: Evaluator) -> None:
    wanted = replace(evaluator, goal=Goal.of(["traffic", "energy", "throughput"], ["dsp<=0.0001", "latency_us<=100"]))
    one = wanted.evaluate(wanted.space.default_params())
    assert one.values == tuple(one.measures[OBJECTIVES[n].figure] for n in ("traffic", "energy", "throughput"))
    assert one.constraints["dsp"] == pytest.approx(one.shares["dsp"] / 0.0001 - 1)
    assert one.constraints["latency_us"] < 0
    assert one.feasible == (one.shares["dsp"] <= 0.0001)
    usual = evaluator.evaluate(evaluator.space.default_params())
    assert usual.values == (usual.figures.latency, max(usual.shares.values()))


def test_energy_is_the_sum_of_its_parts(evaluator: Evaluator) -> None:
    one = evaluator.evaluate(evaluator.space.default_params())
    network = evaluator.assembler.network(one.design)
    assert one.measures["energy_uj"] == pytest.approx(
        one.cost.dynamic_uj + one.cost.static_w * one.measures["latency_us"]
    )
    assert one.cost.dynamic_uj > evaluator.arithmetic_uj > 0
    ports = [p for t in network.tasks for n in t.nests for p in n.ports if p.kind == "external"]
    assert one.cost.traffic_bytes == sum(p.tokens * p.bits for p in ports) // 8
    assert one.cost.traffic_bytes >= 16 + 16
    one, other = AnyOp(result_types=[f32, i8]).results
    dear = energy_table().operation_pj(arith.MulfOp(one, one))
    assert dear > energy_table().operation_pj(arith.MuliOp(other, other)) > 0
    slow_memory = replace(PLATFORM, memories=tuple(replace(m, kind="ddr") for m in PLATFORM.memories))
    assert run_cost(network, slow_memory, 0.0).dynamic_uj > run_cost(network, PLATFORM, 0.0).dynamic_uj


def test_the_floor_is_below_every_design_and_what_is_below_it_is_refused(evaluator: Evaluator) -> None:
    tight = replace(evaluator, goal=Goal.of([], ["lut<=0.001", "dsp<=0.001"]).on(PLATFORM))
    for size in tight.space.choices["overall_unroll_size"][::6]:
        found = tight.evaluate(tight.space.default_params() | {"overall_unroll_size": size})
        if found.feasible:
            assert found.figures.latency >= GoalBounds(tight).latency().value
    both = Goal.of([], ["latency_cycles<=2", "lut<=0.001", "dsp<=0.001"]).on(PLATFORM)
    with pytest.raises(PenstockError, match=r"latency_cycles<=2 and dsp<=0.001 with lut<=0.001 cannot both be met"):
        check_reachable(replace(evaluator, goal=both))
    cold = Goal.of([], ["energy<=0.0000001"]).on(PLATFORM)
    with pytest.raises(PenstockError, match="the model's own arithmetic"):
        check_reachable(replace(evaluator, goal=cold))
    check_reachable(evaluator)


@pytest.mark.parametrize("figure", ["energy_uj", "traffic_bytes", "power_w"])
def test_what_no_design_can_be_below_is_refused_before_the_search(evaluator: Evaluator, figure: str) -> None:
    bounds = GoalBounds(evaluator)
    least = {
        "energy_uj": bounds.energy().value, "traffic_bytes": bounds.traffic().value, "power_w": bounds.leaking_w,
    }[figure]  # fmt: skip
    sizes = evaluator.space.choices["overall_unroll_size"][::6]
    designs = [evaluator.space.default_params() | {"overall_unroll_size": size} for size in sizes]
    assert min(evaluator.evaluate(one).measures[figure] for one in designs) >= least > 0
    check_reachable(replace(evaluator, goal=Goal.of([], [f"{figure}<={1.001 * least}"]).on(PLATFORM)))
    below = Goal.of([], [f"{figure}<={0.99 * least}"]).on(PLATFORM)
    with pytest.raises(PenstockError, match=f"{below.limits[0].text} and .* cannot both be met") as caught:
        check_reachable(replace(evaluator, goal=below))
    assert caught.value.code == "contradictory-limits"


def test_so_little_power_in_so_little_time_is_refused(evaluator: Evaluator) -> None:
    leaks = GoalBounds(evaluator).leaking_w
    both = Goal.of([], ["latency_us<=1000", f"power_w<={leaks + 0.9 * evaluator.arithmetic_uj / 1000}"]).on(PLATFORM)
    with pytest.raises(PenstockError, match=r"power_w<=\S+ and latency_us<=1000 cannot both be met"):
        check_reachable(replace(evaluator, goal=both))
    more = Goal.of([], ["latency_us<=1000", f"power_w<={leaks + 1.1 * evaluator.arithmetic_uj / 1000}"]).on(PLATFORM)
    check_reachable(replace(evaluator, goal=more))


def test_the_nearest_miss_names_the_users_limit(evaluator: Evaluator) -> None:
    wanted = replace(evaluator, goal=Goal.of([], ["latency_cycles<=3"]).on(PLATFORM))
    sizes = wanted.space.choices["overall_unroll_size"][:2]
    tried = [wanted.evaluate(wanted.space.default_params() | {"overall_unroll_size": n}) for n in sizes]
    with pytest.raises(PenstockError, match="times the latency_cycles that is allowed") as caught:
        select_best(tried)
    assert caught.value.code == "nothing-fits"
    assert pareto_front(tried) == []


SPACE: Choices = {"mode": ("a", "b"), "depth": (1, 2, 4), "only_b": (True, False), "deeper": (0, 1)}
CONDITIONS: Conditions = {"only_b": {"mode": ("b",)}, "deeper": {"only_b": (True,)}}


def test_what_means_nothing_is_not_sampled_and_a_grid_is_every_setting_once() -> None:
    study = Study.create_or_load("s", SPACE, conditions=CONDITIONS, sampler="tpe")
    for _ in range(60):
        asked = study.ask()
        assert ("only_b" in asked.params) == (asked.params["mode"] == "b")
        assert ("deeper" in asked.params) == (asked.params.get("only_b") is True)
        study.tell(asked.number, (float(int(asked.params["depth"])), 1.0), {})
    every = grid(SPACE, CONDITIONS, seed=4)
    assert len(every) == len({tuple(sorted(s.items())) for s in every}) == 3 + 3 * (2 + 1)
    assert grid(SPACE, CONDITIONS, seed=4) == every != grid(SPACE, CONDITIONS, seed=5)
    walked = Study.create_or_load("g", SPACE, conditions=CONDITIONS, sampler="grid", seed=4)
    assert [walked.ask(i).params for i in range(len(every))] == every
    assert walked.ask(3).params == every[3], "an attempt that was lost is made again"
    with pytest.raises(PenstockError, match="every setting of the space was tried"):
        walked.ask(len(every))
    with pytest.raises(PenstockError, match="too many settings"):
        grid({f"p{i}": tuple(range(10)) for i in range(5)}, {}, seed=0)


def test_a_parameter_can_be_fixed() -> None:
    narrowed = narrow(SPACE, ["mode=b", "only_b=false"])
    assert len(grid(narrowed, CONDITIONS, 0)) == 3
    assert within({"mode": "a", "depth": 2, "only_b": True}, narrowed) == {"mode": "b", "depth": 2, "only_b": False}
    with pytest.raises(PenstockError, match="did you mean 'depth'"):
        narrow(SPACE, ["dept=3"])
    with pytest.raises(PenstockError, match="depth cannot be '3'"):
        narrow(SPACE, ["depth=3"])


@pytest.fixture
def database_study(database: Database) -> str:
    return database.study_url()


def test_a_study_is_bound_to_its_objectives(database_study: str) -> None:
    first = Study.create_or_load(
        "s", SPACE, storage_url=database_study, objectives=("latency", "energy"), sampler="tpe"
    )
    first.close()
    for other in (("latency", "resources"), ("energy", "latency"), ("latency",)):
        with pytest.raises(PenstockError, match="was made for latency, energy") as caught:
            Study.create_or_load("s", SPACE, storage_url=database_study, objectives=other, sampler="tpe")
        assert caught.value.code == "other-objectives"
    with pytest.raises(PenstockError, match="deleted") as caught:
        Study.create_or_load("gone", SPACE, storage_url=database_study, create=False, sampler="tpe")
    assert caught.value.code == "study-gone"


def test_a_long_study_keeps_its_best_in_sight(database_study: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.dse.search.storage.REMEMBERED", 4)
    monkeypatch.setattr("penstock.dse.search.storage.BEST_REMEMBERED", 1)
    study = Study.create_or_load("long", SPACE, storage_url=database_study, sampler="random")
    for number in range(20):
        asked = study.ask()
        value = abs(number - 3) + 1.0
        study.tell(asked.number, (value, -value), {"dsp": 1.0 if number == 19 else -1.0})
    study.close()
    again = Study.create_or_load("long", SPACE, storage_url=database_study, sampler="random")
    seen = [t.number for t in again.trials()]
    assert seen == [3, 16, 17, 18, 19], "the newest, and the best by each objective that keeps its limits: 3 and 18"
    assert again.counts() == {"complete": 20}
    running = again.ask()
    assert again.orphans(leased=()) == (running.number,)
    again.close()
