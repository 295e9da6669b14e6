"""A schedule of which tasks are moved: its depths suffice, and tokens wait where they are narrow on every way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fifo_networks import random_network
from penstock.compiler.simulator import VITIS, Channel, Network, Phase, Rules, SimulatedProcess
from penstock.dse.fifo import size_fifos, total_bits
from penstock.dse.fifo.latest import blocks_of, latest_schedule
from penstock.dse.fifo.measure import SimulatedRuns
from penstock.dse.fifo.moved import moved_depths
from penstock.profiling.networks.guards import Guard
from tests.simulator.networks import access, draw_network

COUNT, MANY = 64, 1 << 40
FLUSHING = replace(VITIS, flushing=True)


def moved(
    network: Network,
    ends: tuple[int, ...],
    rules: Rules = VITIS,
    most: int = MANY,
    limits: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, int]:
    latest = latest_schedule(network, rules, ends)
    assert latest is not None
    bits = {c.name: c.bits for c in network.channels if c.kind == "fifo"}
    return dict(moved_depths(latest, bits, blocks_of(network), limits, most))


def narrowing(behind: int = 1) -> Network:
    """Wide tokens become narrow ones, which `behind` tasks hand on; the last one wants none before all are there."""
    flow = ["source", "narrow", *(f"pass{n}" for n in range(behind)), "sink"]
    names = ["wide", "narrow0", *(f"narrow{n + 1}" for n in range(behind))]
    channels = [Channel("wide", bits=512), *(Channel(name, bits=8) for name in names[1:]), Channel("late", bits=8)]
    late = access("late", "write", (COUNT,), [Guard(0, "==", COUNT - 1)])
    processes = [
        SimulatedProcess(flow[0], (Phase((COUNT,), 4, 2, (access("wide", "write", (COUNT,)), late)),)),
        *(
            SimulatedProcess(
                task,
                (Phase((COUNT,), 1, 3, (access(taken, "read", (COUNT,)), access(made, "write", (COUNT,)))),),
            )
            for task, taken, made in zip(flow[1:-1], names[:-1], names[1:], strict=True)
        ),
        SimulatedProcess(
            flow[-1],
            (Phase((COUNT,), 1, 2, (access("late", "read", (COUNT,), [Guard(0, "==", 0)]),
                                    access(names[-1], "read", (COUNT,)))),),
        ),
    ]  # fmt: skip
    return Network("narrowing", tuple(processes), tuple(channels))


def test_tokens_wait_where_they_are_narrow_whatever_hands_them_on() -> None:
    for network in (narrowing(0), narrowing(1), narrowing(3)):
        runs = SimulatedRuns(network, VITIS)
        free = runs.unbounded()
        latest = latest_schedule(network, VITIS, free.ends)
        assert latest is not None
        found = moved(network, free.ends)
        assert latest.depths["wide"] > COUNT / 2, "as late as it can be, it waits before it is narrow"
        assert found["wide"] <= 2
        assert runs(found).within(free.ends)


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_its_depths_always_suffice_and_hold_no_more(seed: int, frames: int, drawn: bool) -> None:
    network = draw_network(seed) if drawn else random_network(3 + seed % 12, seed)
    runs = SimulatedRuns(network, VITIS, frames)
    free = runs.unbounded()
    latest = latest_schedule(network, VITIS, free.ends) if free.ends else None
    if latest is not None:
        found = moved(network, free.ends)
        bits = {c.name: c.bits for c in network.channels if c.kind == "fifo"}
        assert set(found) == set(runs.fifos)
        assert total_bits(found, bits) <= total_bits({n: max(1, d) for n, d in latest.depths.items()}, bits)
        assert runs(found).within(free.ends)


def test_they_mostly_do_where_pipelines_flush() -> None:
    """A full FIFO would stop what is in such a pipeline, too; the simulation says where that matters."""
    sufficed: list[bool] = []
    for seed in range(100):
        network = random_network(3 + seed % 12, seed)
        runs = SimulatedRuns(network, FLUSHING)
        free = runs.unbounded()
        sufficed.append(runs(moved(network, free.ends, FLUSHING)).within(free.ends))
    assert sum(sufficed) >= 90


def test_nothing_is_moved_without_a_budget() -> None:
    network = narrowing()
    ends = SimulatedRuns(network, VITIS).unbounded().ends
    latest = latest_schedule(network, VITIS, ends)
    assert latest is not None
    assert moved(network, ends, most=0) == {n: max(1, d) for n, d in latest.depths.items()}


def shared_port(count: int = COUNT) -> Network:
    """One port brings what the first task scales with, and then what the second one weighs with."""
    port = (
        Phase((count,), 1, 2, (access("scales", "write", (count,)),)),
        Phase((count,), 1, 2, (access("weights", "write", (count,)),)),
    )
    source = Phase((count,), 4, 2, (access("rows", "write", (count,)),))
    scale = Phase(
        (count,), 1, 2,
        (access("rows", "read", (count,)), access("scales", "read", (count,)), access("scaled", "write", (count,))),
    )  # fmt: skip
    weigh = Phase((count,), 1, 2, (access("scaled", "read", (count,)), access("weights", "read", (count,))))
    processes = [
        SimulatedProcess("port", port),
        *(SimulatedProcess(n, (p,)) for n, p in (("source", source), ("scale", scale), ("weigh", weigh))),
    ]
    channels = (
        Channel("scales", bits=8),
        Channel("weights", bits=8),
        Channel("rows", bits=64),
        Channel("scaled", bits=64),
    )
    return Network("port", tuple(processes), channels)


def test_a_load_holds_more_than_its_limit_only_where_that_saves_more() -> None:
    network, limits = shared_port(), {"scales": 4, "weights": 4}
    runs = SimulatedRuns(network, VITIS)
    free = runs.unbounded(limits)
    found = moved(network, free.ends, limits=limits)
    assert runs(found).within(free.ends)
    assert found["weights"] <= 4 < found["scales"]
    bits = {c.name: c.bits for c in network.channels}
    sized = size_fifos(network, VITIS, most=limits, simulations=4)
    assert sized.latency <= free.ends[0]
    assert sized.bits <= total_bits({**free.high_water, **limits}, bits)
    assert sized.bits < total_bits(free.high_water, bits)
