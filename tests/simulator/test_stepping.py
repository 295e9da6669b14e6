"""The engine against the simulator that steps through every cycle: times, marks and verdicts, cycle for cycle."""

from __future__ import annotations

import sys
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from penstock.compiler.jit import Compiled
from penstock.compiler.simulator import (
    OPEN_RTL,
    VITIS,
    Channel,
    MemoryPort,
    Network,
    Phase,
    Rules,
    SimulatedMemory,
    SimulatedProcess,
    Simulation,
    Simulator,
    layout,
    recurrence,
    stalling,
    state,
)
from penstock.compiler.simulator import layout as at
from penstock.profiling.networks.guards import Guard
from tests.simulator.networks import access, draw_network
from tests.simulator.stepping import Stuck, step_through

simulate_module = sys.modules[Simulator.__module__]  # the package's `simulate` is the function


def depth_settings(network: Network, seed: int) -> list[dict[str, int | None]]:
    """Five of them: one slot, two, as drawn, anything, and as many as are needed."""
    random = Random(seed)
    names = [c.name for c in network.channels]
    return [
        dict.fromkeys(names, 1),
        dict.fromkeys(names, 2),
        {},
        {name: random.choice([1, 2, 3, 5, 8, 20, None]) for name in names},
        dict.fromkeys(names, None),
    ]


def check(network: Network, rules: Rules, depths: dict[str, int | None], frames: int) -> Simulation:
    result = Simulator(network, rules).run(depths, frames=frames)
    try:
        stepped = step_through(network, rules, depths, frames)
    except Stuck:
        assert result.deadlock is not None, (network, depths)
        return result
    assert result.deadlock is None, (network, depths)
    assert {name: own.end for name, own in result.processes.items()} == {n: e[0] for n, e in stepped.ends.items()}
    assert result.frame_ends == tuple(max(ends[i] for ends in stepped.ends.values()) for i in range(frames))
    marks = {name: c.high_water for name, c in result.channels.items() if name in stepped.high}
    assert marks == stepped.high
    return result


def of_all_kinds(network: Network, seed: int) -> Network:
    """Some pipelines flush, some stop, and some wait as the rules say."""
    random = Random(seed)
    return replace(
        network,
        processes=tuple(
            replace(p, phases=tuple(replace(f, flushes=random.choice([None, False, True])) for f in p.phases))
            for p in network.processes
        ),
    )


def check_seeds(rules: Rules, seeds: range, *, mixed: bool = False) -> list[bool]:
    """Whether each run ended in a deadlock."""
    verdicts: list[bool] = []
    for seed in seeds:
        network = of_all_kinds(draw_network(seed), seed) if mixed else draw_network(seed)
        for depths in depth_settings(network, seed):
            verdicts.append(check(network, rules, depths, 1 + seed % 2).deadlock is not None)
    return verdicts


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
def test_random_networks_agree_cycle_for_cycle(rules: Rules):
    verdicts = check_seeds(rules, range(20))
    assert 0 < sum(verdicts) < len(verdicts) / 2, "some of them deadlock, most do not"


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
def test_networks_whose_pipelines_wait_each_in_its_way_agree_too(rules: Rules):
    check_seeds(rules, range(7000, 7020), mixed=True)


def without_trace(result: Simulation) -> Simulation:
    """Without what is known in part only: which stalls led to the end, and which of a deadlock's cycles is named."""
    return replace(result, critical_path=(), deadlock=None)


def test_what_recurs_is_carried_on_as_it_would_have_gone(monkeypatch: pytest.MonkeyPatch):
    """Times, marks and every count of stalls, where states are compared early and where they never are."""
    monkeypatch.setattr(Compiled, "left", lambda self: at.FAR)
    repeated: list[int] = []
    repeat = recurrence.repeat

    def count(times: int, *state: Any) -> None:
        repeated.append(times)
        repeat(times, *state)

    monkeypatch.setattr(recurrence, "repeat", count)
    runs = 0
    for seed in range(4000, 4060):
        network = draw_network(seed, times=1 + seed % 3 * 5)
        simulator = Simulator(network, OPEN_RTL if seed % 2 else VITIS)
        for depths in depth_settings(network, seed)[:4]:
            runs += 1
            monkeypatch.setattr(layout, "SWEEPS_BEFORE_KEPT", 1 << 40)
            slow = simulator.run(depths, frames=1 + seed % 2)
            monkeypatch.setattr(layout, "SWEEPS_BEFORE_KEPT", 1 + seed % 5)
            quick = simulator.run(depths, frames=1 + seed % 2)
            assert (quick.deadlock is None) == (slow.deadlock is None)
            assert without_trace(quick) == without_trace(slow), (network.name, depths)
    assert len(repeated) > runs / 4, "many of them recur"


def test_memory_for_times_grows_where_it_must(monkeypatch: pytest.MonkeyPatch):
    """Rooms for four runs of times, where a process may have to be hundreds ahead."""
    monkeypatch.setattr(state, "RUNS_KEPT", layout.MOST_NEW_RUNS)
    check_seeds(VITIS, range(2000, 2010))
    check_seeds(OPEN_RTL, range(2000, 2010))


def test_a_run_without_depths_may_be_given_up(monkeypatch: pytest.MonkeyPatch):
    """After one event, or as soon as it needs room: the run with depths says the same."""
    monkeypatch.setattr(simulate_module, "SHARE", 1 << 40)
    monkeypatch.setattr(simulate_module, "TRIED", 0)
    check_seeds(VITIS, range(5000, 5010))
    check_seeds(OPEN_RTL, range(5000, 5010))
    monkeypatch.setattr(simulate_module, "TRIED", 1 << 40)
    monkeypatch.setattr(simulate_module, "ROOM", 0)
    monkeypatch.setattr(state, "RUNS_KEPT", layout.MOST_NEW_RUNS)
    check_seeds(VITIS, range(6000, 6010))
    check_seeds(OPEN_RTL, range(6000, 6010))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
def test_five_hundred_random_networks_agree_cycle_for_cycle(rules: Rules, part: int):
    check_seeds(rules, range(1000 + 100 * part, 1100 + 100 * part), mixed=part % 2 == 1)


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
@pytest.mark.parametrize("kept", [layout.MOST_NEW_RUNS, 64])
def test_the_times_of_all_tokens_are_those_of_a_run_without_depths(
    rules: Rules, kept: int, monkeypatch: pytest.MonkeyPatch
):
    """However few times the rings begin with."""
    monkeypatch.setattr(state, "RUNS_KEPT", kept)
    compared = 0
    for seed in range(60):
        network = draw_network(seed)
        run = Simulator(network, rules).free_run()
        try:
            stepped = step_through(network, rules, {c.name: None for c in network.channels})
        except Stuck:
            continue
        assert dict(run.ends) == {name: ends[0] for name, ends in stepped.ends.items()}
        for tokens in run.tokens:
            if tokens.channel.kind != "pipo":
                compared += 1
                assert tokens.filled.tolist() == stepped.filled[tokens.channel.name], (seed, tokens.channel.name)
                assert tokens.freed.tolist() == stepped.freed[tokens.channel.name], (seed, tokens.channel.name)
    assert compared > 100


def memory_network(seed: int) -> Network:
    """Load, compute, store; the memory is slow, late or fast, and its two ports share a bank or do not."""
    random = Random(seed)
    n, rows = random.randint(20, 90), random.randint(1, 3)
    trips = (rows, n)
    ii = random.randint(1, 3)
    load = (access("in", "read", trips, stage=0), access("a", "write", trips))
    work = (access("a", "read", trips), access("b", "write", trips, [Guard(1, ">=", n // 2)]))
    back = (access("b", "read", (rows, n - n // 2)), access("out", "write", (rows, n - n // 2), stage=2))
    processes = (
        SimulatedProcess("load", (Phase(trips, random.randint(1, 2), 4, load),)),
        SimulatedProcess("work", (Phase(trips, ii, 5, work),)),
        SimulatedProcess("store", (Phase((rows, n - n // 2), 1, 3, back),)),
    )
    memory = SimulatedMemory("ddr", 2, random.choice([16, 33.5, 64, 100, 1000]), random.choice([0, 7, 60]))
    ports = (MemoryPort("in", "ddr", 0, 32, random.choice([1, 4, 16])), MemoryPort("out", "ddr", seed % 2, 32, 2))
    channels = (Channel("a", depth=random.choice([2, 9, None])), Channel("b", depth=random.choice([1, 30])))
    return Network(f"memory {seed}", processes, channels, ports, (memory,))


def test_turns_made_at_once_are_those_made_one_by_one(monkeypatch: pytest.MonkeyPatch):
    """What a steady rhythm skips is what it would have come to, external memory included."""
    monkeypatch.setattr(Compiled, "left", lambda self: at.FAR)
    networks = [memory_network(seed) for seed in range(60)] + [draw_network(seed) for seed in range(3000, 3040)]
    quick = [Simulator(network).run(frames=2) for network in networks]
    monkeypatch.setattr(stalling, "find_turns", lambda p, first, m: 0)
    for network, result in zip(networks, quick, strict=True):
        slow = Simulator(network).run(frames=2)
        assert replace(slow, critical_path=()) == replace(result, critical_path=()), network.name
