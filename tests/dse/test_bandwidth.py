"""The share of external memory's bandwidth: what it is, that no design exceeds it, and what a user may ask of it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from benchmarks.workloads import Formula
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.pipeline import prepare
from penstock.compiler.platforms import MEMORY_EFFICIENCY, Platform, load_platform
from penstock.dse.bounds.bound import GoalBounds
from penstock.dse.bounds.reachable import check_reachable
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal, Limit
from penstock.dse.evaluation.traffic import least_traffic_bits
from penstock.dse.explaining.sensitivity import explain
from penstock.dse.partition.of_network import placement_graph
from penstock.profiling.bandwidth import memory_ports
from penstock.profiling.simulated import simulate_design
from tests.compiler.designs import Dense, build_network

PLATFORM = load_platform("u55c")


def slow(gb_s: float, ports: int = 1) -> Platform:
    return replace(PLATFORM, memories=(replace(PLATFORM.memories[0], ports=ports, port_gb_s=gb_s),))


def evaluator_on(platform: Platform, *limits: str, inputs: int = 16) -> Evaluator:
    program = build_network("int8", None, inputs, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    return Evaluator(program, platform, platform.clock_mhz, goal=Goal.of([], limits).on(platform))


def some(evaluator: Evaluator, count: int = 12) -> list[Evaluation]:
    chance = random.Random(5)
    choices = evaluator.space.choices
    settings = [{name: chance.choice(values) for name, values in choices.items()} for _ in range(count)]
    return [evaluator.evaluate(evaluator.space.default_params()), *map(evaluator.evaluate, settings)]


@pytest.mark.parametrize(
    "platform", [PLATFORM, slow(0.05), slow(0.002), slow(0.02, ports=3)], ids=["hbm", "slow", "slower", "three"]
)
def test_it_is_traffic_by_what_the_memory_sustains_and_never_above(platform: Platform) -> None:
    sustained = platform.memories[0].gb_s * MEMORY_EFFICIENCY * 1e9
    for one in some(evaluator_on(platform)):
        seconds = one.measures["interval_us"] * 1e-6
        share = one.measures["bandwidth_share"]
        assert share == pytest.approx(one.cost.traffic_bytes / seconds / sustained)
        assert 0 < share <= 1
        assert one.measures["resource_share"] == max(one.shares.values())  # what it takes of the chip alone
        slower = one.measures_at(one.figures.latency, 2 * one.figures.interval)
        assert slower["bandwidth_share"] == pytest.approx(share / 2)


def test_a_limit_holds_and_is_named_where_it_does_not() -> None:
    found = some(evaluator_on(slow(0.05), "bandwidth<=0.6"))
    assert any(one.constraints["bandwidth"] > 0 for one in found)
    for one in found:
        assert one.constraints["bandwidth"] == pytest.approx(one.measures["bandwidth_share"] / 0.6 - 1)
        assert one.feasible == (one.measures["bandwidth_share"] <= 0.6)


def test_an_amount_is_of_what_is_sustained() -> None:
    assert Limit.parse("bandwidth<=0.5").on(PLATFORM).bound == 0.5
    assert Limit.parse("bandwidth<=100").on(PLATFORM).bound == pytest.approx(100 / PLATFORM.memories[0].sustained_gb_s)


@pytest.mark.parametrize(
    ("limits", "platform", "code", "words"),
    [
        (["bandwidth<=0"], PLATFORM, "bad-limit", "above 0"),
        (["bandwith<=0.5"], PLATFORM, "unknown-limit", "did you mean 'bandwidth'"),
        (["bandwidth<=0.2", "bandwidth>=300"], PLATFORM, "contradictory-limits", "bandwidth>=300 and bandwidth<=0.2"),
        (["bandwidth>=500"], PLATFORM, "contradictory-limits", "the 391 GB/s that hbm of u55c sustains"),
        (["bandwidth<=0.5"], load_platform("ecp5-45k"), "bad-limit", "ecp5-45k has none"),
    ],
)
def test_what_cannot_be_asked_is_named(limits: list[str], platform: Platform, code: str, words: str) -> None:
    with pytest.raises(PenstockError) as caught:
        Goal.of([], limits).on(platform)
    assert caught.value.code == code
    assert words in caught.value.one_line()


def test_an_interval_that_the_bandwidth_cannot_feed_is_refused_before_the_search() -> None:
    both = evaluator_on(slow(0.05), "interval_us<=1", "bandwidth<=0.5")
    least = least_traffic_bits(both.space.graph)
    assert least >= 16 * 8 + 16 * 8
    assert all(least <= one.cost.traffic_bytes * 8 for one in some(both))
    with pytest.raises(PenstockError, match=r"interval_us<=1 and bandwidth<=0.5 cannot both be met") as caught:
        check_reachable(both)
    assert caught.value.code == "contradictory-limits"
    with pytest.raises(PenstockError, match=r"GB/s that hbm of u55c sustains cannot both be met"):
        check_reachable(evaluator_on(slow(0.05), "interval_cycles<=10"))
    check_reachable(evaluator_on(PLATFORM, "interval_us<=1", "bandwidth<=0.5"))


def test_the_explanation_says_whether_external_memory_binds() -> None:
    for platform, inputs, words in (
        (slow(0.002), 16, "External memory binds"),
        (slow(0.002), 96, "External memory binds"),
        (slow(0.05, ports=4), 96, "load_x waits for its port, one of 4,"),
        (PLATFORM, 96, "External memory does not bind"),
    ):
        evaluator = evaluator_on(platform, inputs=inputs)
        chosen = evaluator.evaluate(evaluator.space.default_params())
        assert words in " ".join(explain(evaluator, chosen, []).sentences)
    alone = load_platform("ecp5-45k")
    evaluator = evaluator_on(alone)
    chosen = evaluator.evaluate(evaluator.space.default_params())
    assert "bandwidth_share" not in chosen.measures
    assert "External memory" not in " ".join(explain(evaluator, chosen, []).sentences)


def test_ports_of_several_memories_stand_on_their_own_dies() -> None:
    """Each task that loads or stores has its wires to the module on whose bank it is, and none to others."""
    u200 = load_platform("u200")
    evaluator = evaluator_on(u200)
    network = evaluator.assembler.network(evaluator.evaluate(evaluator.space.default_params()).design)
    graph = placement_graph(network, u200, evaluator.assembler.library)
    banks = {name: u200.fastest_memories[use.bank] for name, use in memory_ports(network, u200).items()}
    assert len({one.name for one in banks.values()}) > 1
    dies = {thing.name: thing.die for thing in graph.things}
    ends = [{wires.source, wires.target} for wires in graph.connections]
    for name, memory in banks.items():
        assert dies[memory.name] == memory.die
        others = {one.name for one in banks.values()} - {memory.name}
        assert {memory.name, name} in ends
        assert not any(name in both and both & others for both in ends)


@pytest.mark.parametrize("pad", [0, 1])
def test_a_token_of_several_words_comes_with_the_last_of_them(pad: int) -> None:
    """All of a row at once: 3,328 bits through a port of 512; in a row of 105 elements one after the other."""
    row = LoadedModel("row", "test", Formula(lambda x: x / x.sum(-1, keepdim=True)), (torch.ones(1, 104),))
    evaluator = Evaluator.create(prepare(import_loaded(row)), "u55c")
    setting = {**evaluator.space.fitted_setting(), "walk.sum": "1", "walk.div": "1", "pad.sum.1": pad}
    found = evaluator.assume(setting)
    assert found.design.kernels["sum"].unroll == (1, 104 + pad)
    network = evaluator.assembler.network(found.design)
    seen = simulate_design(network, evaluator.platform, evaluator.clock_mhz, depths=found.design.fifo_depths)
    assert abs(found.figures.latency - seen.latency) <= 2
    (load,) = next(task.nests for task in network.tasks if task.name.startswith("load"))
    assert load.ii == (105 if pad else 1)
    assert GoalBounds(evaluator).latency().value <= seen.latency
