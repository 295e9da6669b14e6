"""Long simulations: what their benchmark says of short ones, and how long they take."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from benchmarks.long_chains import mixed_chain, pass_through_chain, products_chain
from benchmarks.simulation import CYCLES, TASKS, bridges, modes
from penstock.compiler.simulator import OPEN_RTL, VITIS, Network, Rules, Simulator
from penstock.compiler.simulator.simulate import ENGINE
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


@pytest.mark.slow
@CHAINS
@BOTH
def test_chains_of_ten_million_cycles_take_less_than_two_seconds(chain: Chain, rules: Rules):
    """Processor time: what others do on the machine does not count."""
    network = chain(TASKS, CYCLES)
    names = [c.name for c in network.channels]
    ENGINE.function()
    Simulator(pass_through_chain(2, CYCLES), rules).run()
    for depth in (None, 2, 1):
        begun = time.process_time()
        result = Simulator(network, rules).run(dict.fromkeys(names, depth))
        assert time.process_time() - begun < 2
        assert result.latency > 0.9 * CYCLES
