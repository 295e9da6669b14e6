"""The FIFO benchmark judges anew what sizing says of itself."""

from __future__ import annotations

import pytest

from benchmarks import fifo, partition
from benchmarks.fifo_networks import diamond, random_network
from penstock.dse.fifo.delays import Delay, start_times


@pytest.mark.parametrize(
    "network", [diamond(2, 0, 2), random_network(5, 2), random_network(4, 1)], ids=lambda n: n.name
)
def test_a_row_of_the_benchmark(network: fifo.Network):
    found = fifo.size(network)
    assert found.ratio == 1
    assert found.optimum == found.shrunk == found.bound <= found.periodic <= found.high_water
    assert found.row()["network"] == network.name


def test_the_benchmarks_networks_are_many_and_large():
    networks = fifo.networks()
    assert len(networks) >= 24
    assert len({n.name for n in networks}) == len(networks)
    assert max(len(n.channels) for n in networks) == 500


def test_the_program_grows_with_the_edges_and_not_with_the_paths():
    """A chain of 100 diamonds has 2^100 paths, of which the longer branch of each sets the times."""
    diamonds = [(f"fork{n}", f"long{n}", f"short{n}", f"fork{n + 1}") for n in range(100)]
    delays = [
        delay
        for fork, long, short, join in diamonds
        for delay in (Delay(fork, long, 5), Delay(fork, short, 1), Delay(long, join, 2), Delay(short, join, 1))
    ]
    starts = start_times([*{name for diamond in diamonds for name in diamond}], delays)
    assert starts["fork0"] == 0
    assert starts["fork100"] == 700


@pytest.mark.slow
def test_the_whole_benchmarks_hold_what_is_asked_for():
    found = fifo.run("*-*").summary
    assert found["deadlocks"] == 0
    assert float(str(found["latency_ratio_max"])) <= 1.001
    assert float(str(found["bits_vs_optimum_max"])) <= 1.05
    cut = partition.run().summary
    assert int(str(cut["better"])) >= 5
