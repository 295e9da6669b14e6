"""The engine against the simulator that steps through every cycle: times, marks and verdicts, cycle for cycle."""

from __future__ import annotations

from random import Random

import pytest

from compiler.simulator import OPEN_RTL, VITIS, Network, Rules, Simulation, Simulator, state
from compiler.simulator.layout import MOST_NEW_RUNS
from tests.simulator.networks import draw_network
from tests.simulator.stepping import Stuck, step_through


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


def check_seeds(rules: Rules, seeds: range) -> list[bool]:
    """Whether each run ended in a deadlock."""
    verdicts: list[bool] = []
    for seed in seeds:
        network = draw_network(seed)
        for depths in depth_settings(network, seed):
            verdicts.append(check(network, rules, depths, 1 + seed % 2).deadlock is not None)
    return verdicts


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
def test_random_networks_agree_cycle_for_cycle(rules: Rules):
    verdicts = check_seeds(rules, range(20))
    assert 0 < sum(verdicts) < len(verdicts) / 2, "some of them deadlock, most do not"


def test_memory_for_times_grows_where_it_must(monkeypatch: pytest.MonkeyPatch):
    """Rooms for four runs of times, where a process may have to be hundreds ahead."""
    monkeypatch.setattr(state, "RUNS_KEPT", MOST_NEW_RUNS)
    check_seeds(VITIS, range(2000, 2010))
    check_seeds(OPEN_RTL, range(2000, 2010))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(5))
@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
def test_five_hundred_random_networks_agree_cycle_for_cycle(rules: Rules, part: int):
    check_seeds(rules, range(1000 + 100 * part, 1100 + 100 * part))
