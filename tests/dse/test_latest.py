"""The latest schedule: its depths suffice, and tokens wait where they are narrow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fifo_networks import random_network
from penstock.compiler.simulator import VITIS, Channel, Network, Phase, SimulatedMemory, SimulatedProcess, Simulator
from penstock.compiler.simulator.network import MemoryPort
from penstock.dse.fifo import latest as schedules
from penstock.dse.fifo import periodic_depths, size_fifos, total_bits
from penstock.dse.fifo.latest import latest_depths, latest_schedule
from penstock.dse.fifo.measure import SimulatedRuns
from penstock.dse.fifo.moved import moved_depths
from penstock.profiling.networks.guards import Guard
from tests.simulator.networks import access, draw_network

ROWS, WORDS = 8, 16


def windows() -> Network:
    """Words become windows of nine times as many bits, a row late; the reader takes them at an even pace, eight times
    slower. The last row of windows comes out at once: no new words belong to it."""
    trips = (ROWS + 1, WORDS)
    source = Phase((ROWS * WORDS,), 8, 2, (access("words", "write", (ROWS * WORDS,)),))
    widen = Phase(
        trips, 1, 3,
        (
            access("words", "read", trips, [Guard(0, "<=", ROWS - 1)]),
            access("windows", "write", trips, [Guard(0, ">=", 1)]),
        ),
    )  # fmt: skip
    sink = Phase((ROWS * WORDS,), 8, 2, (access("windows", "read", (ROWS * WORDS,)),))
    processes = [SimulatedProcess(n, (p,)) for n, p in (("source", source), ("widen", widen), ("sink", sink))]
    channels = (Channel("words", bits=32), Channel("windows", bits=288))
    return Network("windows", tuple(processes), channels)


def test_words_wait_before_they_become_windows() -> None:
    network, frames = windows(), 4
    bits = {c.name: c.bits for c in network.channels}
    runs = SimulatedRuns(network, VITIS, frames)
    free = runs.unbounded()
    found = latest_depths(network, VITIS, free.ends)
    assert found is not None
    assert runs(found).within(free.ends)
    assert found["windows"] <= 4 < free.high_water["windows"] / 3
    assert total_bits(found, bits) < total_bits(free.high_water, bits) / 2
    assert total_bits(found, bits) < total_bits(periodic_depths(network, VITIS), bits) / 2


def test_sizing_starts_there_and_needs_no_search_for_it() -> None:
    network = windows()
    bits = {c.name: c.bits for c in network.channels}
    free = SimulatedRuns(network, VITIS, 4).unbounded()
    sizing = size_fifos(network, VITIS, frames=4, simulations=0)
    assert sizing.bits < total_bits(free.high_water, bits) / 2


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_its_depths_always_suffice(seed: int, frames: int, drawn: bool) -> None:
    """Of chains with short cuts, guards, blocks and phases, and of graphs in which paths meet again."""
    network = draw_network(seed) if drawn else random_network(3 + seed % 12, seed)
    runs = SimulatedRuns(network, VITIS, frames)
    free = runs.unbounded()
    found = latest_depths(network, VITIS, free.ends) if free.ends else None
    if found is not None:
        assert set(found) == set(runs.fifos)
        assert runs(found).within(free.ends)


def some_limits(network: Network, seed: int) -> dict[str, int]:
    fifos = [c.name for c in network.channels if c.kind == "fifo"]
    return {name: 1 + (seed + number) % 9 for number, name in enumerate(fifos) if (seed >> number % 8) & 1}


@given(st.integers(0, 10**6), st.integers(1, 3), st.booleans())
@settings(max_examples=60, deadline=None)
def test_its_depths_suffice_with_limits_too(seed: int, frames: int, drawn: bool) -> None:
    """Frames end as they do where these FIFOs hold so much and all others what they will."""
    network = draw_network(seed) if drawn else random_network(3 + seed % 12, seed)
    limits = some_limits(network, seed)
    runs = SimulatedRuns(network, VITIS, frames)
    free = runs.unbounded(limits)
    found = latest_schedule(network, VITIS, free.ends, limits) if free.ends else None
    if found is not None:
        assert set(found.depths) == set(runs.fifos)
        assert runs(found.depths).within(free.ends)


def test_limits_are_mostly_kept() -> None:
    """The run that ends so has a schedule that keeps them; the latest one is found in a few sweeps, or not at all."""
    kept: list[bool] = []
    for seed in range(150):
        network = random_network(3 + seed % 12, seed)
        limits = some_limits(network, seed + 1)
        free = SimulatedRuns(network, VITIS).unbounded(limits)
        found = latest_schedule(network, VITIS, free.ends, limits) if limits and free.ends else None
        if found is not None:
            kept.append(all(found.depths[name] <= limit for name, limit in limits.items()))
    assert len(kept) > 75
    assert sum(kept) >= 0.9 * len(kept)


def two_in_turn(count: int = 64) -> Network:
    """Results of two products meet, and a third takes their sum. One port brings the weights of all, one after another:
    so the results of the first wait for the second, and the sums for the third."""
    names = ("first", "second", "third")
    port = [Phase((count,), 1, 2, (access(f"weights_{name}", "write", (count,)),)) for name in names]
    products = [
        Phase((count,), 1, 2, (access(f"weights_{n}", "read", (count,)), access(f"of_{n}", "write", (count,))))
        for n in names[:2]
    ]
    add = Phase(
        (count,), 1, 2,
        (*(access(f"of_{name}", "read", (count,)) for name in names[:2]), access("sums", "write", (count,))),
    )  # fmt: skip
    third = Phase((count,), 1, 2, (access("sums", "read", (count,)), access("weights_third", "read", (count,))))
    processes = [
        SimulatedProcess("port", tuple(port)),
        *(SimulatedProcess(n, (p,)) for n, p in zip(names[:2], products, strict=True)),
        SimulatedProcess("add", (add,)), SimulatedProcess("third", (third,)),
    ]  # fmt: skip
    channels = (
        *(Channel(f"weights_{name}", bits=512) for name in names),
        *(Channel(f"of_{name}", bits=32) for name in names[:2]), Channel("sums", bits=8),
    )  # fmt: skip
    return Network("turns", tuple(processes), channels)


def test_what_comes_through_a_port_in_turn_does_not_wait_in_it() -> None:
    network = two_in_turn()
    limits = {c.name: 4 for c in network.channels if c.name.startswith("weights")}
    runs = SimulatedRuns(network, VITIS)
    free = runs.unbounded(limits)
    as_late, within = (latest_schedule(network, VITIS, free.ends, each) for each in (None, limits))
    assert as_late is not None
    assert within is not None
    assert as_late.depths["weights_first"] > 40, "all of it, in one schedule of several"
    assert all(within.depths[name] <= 4 for name in limits)
    assert runs(within.depths).within(free.ends)
    bits = {c.name: c.bits for c in network.channels}
    moved = moved_depths(within, bits, {}, limits, 1 << 40)
    assert all(moved[name] <= 4 for name in (*limits, "of_second"))
    assert moved["of_first"] > 40, "until the weights of the second come"
    assert moved["sums"] > 40, "which are narrower than what they are made of"
    assert runs(moved).within(free.ends)


def test_more_time_lets_less_wait() -> None:
    """Frames may end later: then what is fast waits for what is slow with fewer tokens between them."""
    network = random_network(9, 3)
    bits = {c.name: c.bits for c in network.channels}
    free = Simulator(network, VITIS).outcome(bounded=False).frame_ends
    exact, loose = (latest_depths(network, VITIS, [int(end * more) for end in free]) for more in (1.0, 1.5))
    assert exact is not None
    assert loose is not None
    assert total_bits(loose, bits) <= total_bits(exact, bits)


def test_a_load_begins_no_later_than_its_memory_is_slow() -> None:
    """Words at a quarter of the pace at which they are taken: all but the last wait in the FIFO when taking begins."""
    count = 64
    load = Phase((count,), 1, 2, (access("port", "read", (count,)), access("words", "write", (count,))))
    hold = Phase((count,), 4, 2, (access("late", "write", (count,), [Guard(0, "==", count - 1)]),))
    sink = Phase(
        (count,), 1, 2, (access("late", "read", (count,), [Guard(0, "==", 0)]), access("words", "read", (count,)))
    )
    processes = [SimulatedProcess(n, (p,)) for n, p in (("load", load), ("hold", hold), ("sink", sink))]
    network = Network(
        "load", tuple(processes), (Channel("words"), Channel("late")),
        (MemoryPort("port", "memory", 0, 32),), (SimulatedMemory("memory", 1, 10.0),),
    )  # fmt: skip
    runs = SimulatedRuns(network, VITIS)
    free = runs.unbounded()
    found = latest_depths(network, VITIS, free.ends)
    assert found is not None
    assert found["words"] > count / 2
    assert runs(found).within(free.ends)


def test_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    network = windows()
    ends = Simulator(network, VITIS).outcome(bounded=False).frame_ends
    back = Phase((4,), 1, 2, (access("there", "write", (4,)), access("back", "read", (4,), stage=1)))
    forth = Phase((4,), 1, 2, (access("there", "read", (4,), stage=0), access("back", "write", (4,), stage=0)))
    circle = Network(
        "circle", (SimulatedProcess("a", (back,)), SimulatedProcess("b", (forth,))), (Channel("there"), Channel("back"))
    )
    assert latest_depths(circle, VITIS, (100,)) is None
    whole = Channel("whole", "pipo", producers=("source",), consumers=("sink",))
    assert latest_depths(replace(network, channels=(*network.channels, whole)), VITIS, ends) is None
    assert latest_depths(network, VITIS, ends) is not None
    monkeypatch.setattr(schedules, "_MOST_TOKENS", 2 * ROWS * WORDS - 1)
    assert latest_depths(network, VITIS, ends) is None
