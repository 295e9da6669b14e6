"""FIFOs that may cost time: fewer bits, no later than slower tasks would be, no deadlock, both sides told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fifo_networks import random_network
from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.schedule import PatternLevel, TokenPattern
from penstock.compiler.simulator import (
    OPEN_RTL,
    VITIS,
    Channel,
    ChannelAccess,
    Network,
    Phase,
    Rules,
    SimulatedProcess,
    Simulator,
)
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.fifo import CONSERVATIVE, runs_through, size_fifos, total_bits
from penstock.dse.fifo.equalise import slower_network
from penstock.dse.space.equalising import EQUALISATION
from penstock.dse.space.options import TilingOptions
from tests.compiler.designs import Dense, build_network


def in_iterations(first: int, count: int) -> TokenPattern:
    return TokenPattern((PatternLevel(((first, count),), 1),))


def burst_beside_a_slow_task() -> Network:
    """`use` reads nothing before `gather` has read all; meanwhile `fast` fills `wide`. `slowest` outlasts them all."""
    return Network(
        "burst",
        (
            SimulatedProcess("fast", (Phase((64,), 1, 1, (
                ChannelAccess("narrow", "write", in_iterations(0, 64)),
                ChannelAccess("wide", "write", in_iterations(0, 64)),
            )),)),
            SimulatedProcess("gather", (Phase((128,), 1, 1, (
                ChannelAccess("narrow", "read", in_iterations(0, 64)),
                ChannelAccess("sum", "write", in_iterations(64, 64)),
            )),)),
            SimulatedProcess("use", (Phase((64,), 1, 1, (
                ChannelAccess("wide", "read", in_iterations(0, 64)),
                ChannelAccess("sum", "read", in_iterations(0, 64)),
            )),)),
            SimulatedProcess("slowest", (Phase((64,), 20, 1, (ChannelAccess("out", "write", in_iterations(0, 64)),)),)),
            SimulatedProcess("drain", (Phase((64,), 1, 1, (ChannelAccess("out", "read", in_iterations(0, 64)),)),)),
        ),
        (Channel("narrow", bits=8), Channel("wide", bits=512), Channel("sum", bits=8), Channel("out", bits=8)),
    )  # fmt: skip


@given(
    st.integers(2, 10), st.integers(0, 10**6), st.sampled_from([30, CONSERVATIVE]), st.sampled_from([VITIS, OPEN_RTL])
)
@settings(max_examples=15)
def test_never_more_bits_and_never_later_than_slower_tasks(edges: int, seed: int, equalisation: int, rules: Rules):
    network = random_network(edges, seed)
    bits = {c.name: c.bits for c in network.channels}
    normal = size_fifos(network, rules, simulations=40)
    sized = size_fifos(network, rules, simulations=40, equalisation=equalisation, start=normal.depths)
    assert total_bits(sized.depths, bits) == sized.bits <= normal.bits
    run = Simulator(network, rules).run(dict(sized.depths))
    assert run.deadlock is None
    slower = Simulator(slower_network(network, rules, equalisation), rules).run(bounded=False)
    assert normal.latency <= run.latency == sized.latency <= max(normal.latency, slower.latency)


@pytest.mark.parametrize("equalisation", [0, 50, CONSERVATIVE])
def test_slower_tasks_take_part_of_what_the_slowest_does(equalisation: int):
    network = burst_beside_a_slow_task()
    plan = Simulator(slower_network(network, VITIS, equalisation), VITIS).plan
    busy = dict(zip(plan.processes, plan.busy, strict=True))
    own = dict(zip(plan.processes, Simulator(network, VITIS).plan.busy, strict=True))
    slowest = max(own.values())
    assert busy["slowest"] == own["slowest"] == slowest
    for name, cycles in busy.items():
        wanted = own[name] + equalisation * (slowest - own[name]) / 100
        assert own[name] <= cycles <= wanted
        assert cycles > wanted - own[name], (
            "an interval is a whole number of cycles, and the next one would be too slow"
        )


def test_the_pace_of_the_slowest_lets_a_fast_task_wait_for_its_readers():
    """A FIFO need not hold what a fast writer is ahead by, and the end is later by at most what slower tasks cost."""
    network = burst_with_a_slow_end()
    normal, conservative = (size_fifos(network, VITIS, equalisation=e) for e in (0, CONSERVATIVE))
    assert conservative.bits < normal.bits
    slower = Simulator(slower_network(network, VITIS, CONSERVATIVE), VITIS).run(bounded=False)
    assert normal.latency < conservative.latency <= slower.latency


def burst_with_a_slow_end() -> Network:
    """`fast` writes both of its results in one burst; `slow` takes one of them, `last` the other and is long then."""
    return Network(
        "slow end",
        (
            SimulatedProcess("fast", (Phase((64,), 1, 1, (
                ChannelAccess("a", "write", in_iterations(0, 64)),
                ChannelAccess("b", "write", in_iterations(0, 64)),
            )),)),
            SimulatedProcess("slow", (Phase((64,), 3, 1, (ChannelAccess("a", "read", in_iterations(0, 64)),)),)),
            SimulatedProcess("last", (
                Phase((64,), 1, 1, (ChannelAccess("b", "read", in_iterations(0, 64)),)),
                Phase((150,), 1, 1, ()),
            )),
        ),
        (Channel("a", bits=32), Channel("b", bits=32)),
    )  # fmt: skip


def residual(goal: Goal | None = None, equalisation: int | None = None) -> Evaluator:
    program = build_network("int8", None, 8, (Dense(8, False, True), Dense(8, False, False)), seed=3)
    return Evaluator.create(program, "u55c", options=TilingOptions(equalisation=equalisation), goal=goal)


def test_a_search_decides_where_bits_of_fifos_are_asked_for():
    assert EQUALISATION not in residual().space.choices
    assert EQUALISATION not in residual(Goal.of(("latency",), ("fifo_bits>=9",))).space.choices
    for goal in (Goal.of(("latency", "fifo_bits")), Goal.of(("latency",), ("fifo_bits<=100000",))):
        assert residual(goal).space.choices[EQUALISATION][0] == 0
        assert EQUALISATION not in residual(goal, equalisation=50).space.choices, "the user has decided"
    assert residual(equalisation=50).space.design({}).equalisation == 50


def test_trials_have_fewer_bits_and_run_through():
    evaluator = residual(Goal.of(("latency", "fifo_bits")))
    normal, conservative = (evaluator.evaluate({EQUALISATION: e}) for e in (0, CONSERVATIVE))
    assert conservative.measures["fifo_bits"] < normal.measures["fifo_bits"]
    assert conservative.values[1] == conservative.measures["fifo_bits"]
    assert conservative.design.equalisation == CONSERVATIVE
    network = evaluator.assembler.network(conservative.design)
    assert runs_through(network, evaluator.platform, evaluator.clock_mhz, conservative.design.fifo_depths)


def test_a_finished_design_tells_both_sides():
    evaluator = residual(equalisation=CONSERVATIVE)
    tight = evaluator.tightened(evaluator.evaluate({}))
    found, normal = tight.equalised, residual().tightened(residual().evaluate({}))
    assert found is not None
    assert normal.equalised is None
    assert found.bits <= found.normal_bits
    assert found.normal_latency <= found.latency
    bits = {c.name: c.bits for c in tight.figures.channels if c.kind == "stream"}
    assert found.bits == total_bits(tight.design.fifo_depths, bits)


def test_a_record_keeps_it_and_refuses_what_is_no_percent():
    design = residual(equalisation=30).space.design({})
    document = design.to_json()
    assert document["equalisation"] == 30
    assert Design.from_json(document) == design
    assert "equalisation" not in replace(design, equalisation=0).to_json(), "records of before are the same"
    for wrong in (101, -1, "all", True):
        with pytest.raises(PenstockError, match="equalisation"):
            Design.from_json({**document, "equalisation": wrong})
