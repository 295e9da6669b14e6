"""Long simulations: what their benchmark says of short ones, and how much work they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from benchmarks.long_chains import mixed_chain, pass_through_chain, products_chain
from benchmarks.simulation import CYCLES, TASKS, bridges, modes
from penstock.compiler.jit import Compiled
from penstock.compiler.simulator import OPEN_RTL, VITIS, Network, Rules, Simulator
from penstock.compiler.simulator.layout import FAR
from tests.simulator.stepping import step_through
from tests.simulator.test_simulate import diamond

CHAINS = pytest.mark.parametrize("chain", [products_chain, pass_through_chain, mixed_chain])
BOTH = pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
Chain = Callable[[int, int], Network]


@CHAINS
@BOTH
def test_short_ones_end_when_every_cycle_is_stepped_through(chain: Chain, rules: Rules):
    network = chain(3, 1024 if chain is products_chain else 400)
    shallow: dict[str, int | None] = {c.name: 1 for c in network.channels}
    rows = modes(network, rules, {"depth 1": shallow})
    assert [row["mode"] for row in rows] == ["unbounded", "high water", "depth 1"]
    assert rows[0]["cycles"] == rows[1]["cycles"]
    stepped = step_through(network, rules, shallow)
    assert rows[2]["cycles"] == max(ends[0] for ends in stepped.ends.values())
    assert float(str(rows[2]["times_unbounded"])) >= 1


def test_bridges_are_the_only_way_between_two_parts():
    assert bridges(pass_through_chain(3, 8)) == ["c0", "c1"]
    assert bridges(diamond(4)) == []


def work(network: Network, rules: Rules, depth: int | None) -> int:
    """How many functions of the simulator a run calls, in plain Python, which counts as compiled code would."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_globals["__name__"].startswith("penstock.compiler.simulator.")

    depths = dict.fromkeys([c.name for c in network.channels], depth)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "left", lambda _: FAR)
        simulator = Simulator(network, rules)
        sys.setprofile(count)
        try:
            simulator.run(depths)
        finally:
            sys.setprofile(None)
    return calls


@BOTH
def test_twice_the_cycles_of_a_steady_chain_are_no_more_work(rules: Rules):
    for depth in (None, 2, 1):
        assert work(pass_through_chain(TASKS, 80_000), rules, depth) == work(
            pass_through_chain(TASKS, 40_000), rules, depth
        )


@pytest.mark.slow
@pytest.mark.parametrize("chain", [products_chain, pass_through_chain])
@BOTH
def test_most_cycles_of_most_tasks_are_no_work(chain: Chain, rules: Rules):
    """A step of every task in every cycle would be at least four times as many calls."""
    for depth in (None, 2, 1):
        assert work(chain(TASKS, 80_000), rules, depth) < TASKS * 80_000 / 4


@pytest.mark.slow
@CHAINS
@BOTH
def test_chains_of_ten_million_cycles_are_simulated(chain: Chain, rules: Rules):
    network = chain(TASKS, CYCLES)
    names = [c.name for c in network.channels]
    for depth in (None, 2, 1):
        assert Simulator(network, rules).run(dict.fromkeys(names, depth)).latency > 0.9 * CYCLES
