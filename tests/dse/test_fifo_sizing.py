"""Sizing by simulation: no deadlock, no lost cycle, the fewest bits where that can be checked, refusals by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fifo_networks import attention, chain, diamond, random_network
from benchmarks.fifo_optimum import exhaustive
from benchmarks.straight_lines import straight_depths
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
from penstock.dse.fifo import Effort, periodic_depths, shrink, size_fifos, total_bits
from penstock.dse.fifo import size as sizing
from penstock.dse.fifo.known_failures import KnownFailures
from penstock.dse.fifo.measure import MeasuredDepths, MeasureDepths, SimulatedRuns
from penstock.dse.fifo.single_slots import with_single_slots


@given(st.integers(2, 12), st.integers(0, 10**6))
@settings(max_examples=25)
def test_sized_fifos_never_deadlock_and_cost_no_cycle(edges: int, seed: int):
    check(random_network(edges, seed), VITIS)


@pytest.mark.parametrize("seed", range(4))
def test_the_same_where_pipelines_flush(seed: int):
    check(random_network(4 + 2 * seed, seed), OPEN_RTL, simulations=40)


@pytest.mark.slow
@pytest.mark.parametrize("share", range(4))
def test_hundreds_of_random_networks_never_deadlock(share: int):
    """400 networks of 2 to 31 edges; every tenth under the rules of the open route too."""
    for seed in range(share * 100, share * 100 + 100):
        network = random_network(2 + seed % 30, seed)
        check(network, VITIS)
        if seed % 10 == 0:
            check(network, OPEN_RTL, simulations=60)


def check(network: Network, rules: Rules, simulations: int = 200) -> None:
    sizing = size_fifos(network, rules, simulations=simulations)
    simulator = Simulator(network, rules)
    final, free = simulator.run(dict(sizing.depths)), simulator.run(bounded=False)
    assert final.deadlock is None
    assert final.latency == free.latency == sizing.latency == sizing.unbounded_latency
    bits = {c.name: c.bits for c in network.channels}
    assert sizing.bound <= sizing.bits == total_bits(sizing.depths, bits)
    assert min(sizing.depths.values()) >= 2
    high = {n: max(2, c.high_water) for n, c in free.channels.items()}
    assert sizing.bits <= total_bits(high, bits)


@pytest.mark.parametrize("edges", [3, 4, 5])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_shrinking_finds_the_optimum_of_small_networks(edges: int, seed: int):
    network = random_network(edges, seed, shape=(1, 3, 3))
    bits = {c.name: c.bits for c in network.channels}
    measure = SimulatedRuns(network, VITIS)
    best = exhaustive(measure, network.tokens(), bits, allowed=measure.unbounded().ends)
    assert best is not None
    sizing = size_fifos(network, VITIS, least=1)
    assert sizing.bits == sizing.bound == total_bits(best, bits)


def test_a_narrow_fifo_may_be_deep_so_that_a_wide_one_is_shallow():
    """No FIFO is ever that full in a run without limits: the high-water mark is not where the search may end."""
    network = diamond(6, 1, 5)
    bits = {c.name: c.bits for c in network.channels}
    free = Simulator(network, VITIS).run(bounded=False)
    sizing = size_fifos(network, VITIS, least=1)
    high = {n: c.high_water for n, c in free.channels.items()}
    assert any(sizing.depths[n] > high[n] for n in high)
    assert sizing.bits < total_bits(high, bits) / 2


def test_the_papers_depths_can_deadlock():
    """A straight line does not know that a reader takes a whole block before it reads from the other path."""
    stuck = [
        seed
        for seed in range(12)
        if Simulator(n := random_network(14, seed), VITIS).run(straight_depths(n, VITIS)).deadlock is not None
    ]
    assert stuck
    network = random_network(14, stuck[0])
    assert Simulator(network, VITIS).run(dict(size_fifos(network, VITIS).depths)).deadlock is None


def test_a_tolerance_saves_bits_and_keeps_its_word():
    network = attention(2)
    exact, loose = size_fifos(network, VITIS, least=1), size_fifos(network, VITIS, least=1, tolerance=0.2)
    assert loose.bits < exact.bits
    assert exact.latency == exact.unbounded_latency
    assert loose.unbounded_latency <= loose.latency <= 1.2 * loose.unbounded_latency


def test_with_a_tolerance_the_schedule_without_is_tried_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in which everything comes later may turn out to be too late where memory is shared."""
    tried, latest = list[tuple[int, ...]](), sizing.latest_schedule

    def noted(network: Network, rules: Rules, ends: tuple[int, ...], limits: dict[str, int]):
        tried.append(ends)
        return None if len(tried) == 1 else latest(network, rules, ends, limits)

    network = attention(2)
    exact = size_fifos(network, VITIS, least=1, simulations=0)
    monkeypatch.setattr(sizing, "latest_schedule", noted)
    assert size_fifos(network, VITIS, least=1, simulations=0, tolerance=0.2).bits <= exact.bits
    first, then = tried
    assert first == (int(then[0] * 1.2),)


def test_frames_in_a_row_keep_their_distance():
    network = attention(3)
    one, several = size_fifos(network, VITIS, least=1), size_fifos(network, VITIS, least=1, frames=4)
    free = SimulatedRuns(network, VITIS, 4).unbounded()
    assert SimulatedRuns(network, VITIS, 4)(several.depths).within(free.ends)
    assert several.bits >= one.bits


def test_a_budget_of_nothing_still_gives_depths_that_hold():
    network = random_network(10, 5)
    sizing = size_fifos(network, VITIS, simulations=0)
    assert sizing.latency == sizing.unbounded_latency
    assert sizing.bits > sizing.bound


def seldom(every: int) -> Network:
    """A wide token for every so many turns of its writer, which its reader takes as it comes."""
    rare, each = (TokenPattern((PatternLevel(((0, 8),), stride),)) for stride in (every, 1))
    made = Phase((8 * every,), 1, 4, (ChannelAccess("wide", "write", rare, 3),))
    taken = Phase((8,), 1, 2, (ChannelAccess("wide", "read", each, 0),))
    ends = (SimulatedProcess("ahead", (made,)), SimulatedProcess("behind", (taken,)))
    return Network("seldom", ends, (Channel("wide", bits=4096),))


def test_wide_tokens_that_come_seldom_have_one_slot():
    """Only where a design's FIFOs are sized: two slots are what tokens need that follow each other every cycle."""
    for every, slots in ((1, 2), (4, 1)):
        network = seldom(every)
        usual, single = (size_fifos(network, VITIS, singles=singles) for singles in (False, True))
        assert (usual.depths["wide"], single.depths["wide"]) == (2, slots)
        assert single.latency == usual.latency
        assert single.bound <= single.bits


def test_tokens_of_half_a_thousandth_are_not_looked_at():
    """Each look is a simulation: of a block with fifty FIFOs of results, all together are worth one."""
    bits = {"rows": 64, "sums": 512, "rest": 64}
    depths = {"rows": 4096, "sums": 2, "rest": 2}
    looked: list[Mapping[str, int]] = []

    def measure(tried: Mapping[str, int]) -> MeasuredDepths:
        looked.append(tried)
        return MeasuredDepths((100,), tried)

    found = with_single_slots(measure, depths, bits, allowed=(100,), exhausted=lambda: False, ahead=())
    assert found == looked[0] == {**depths, "sums": 1}
    assert len(looked) == 1


@given(st.integers(2, 12), st.integers(0, 10**6))
@settings(max_examples=15)
def test_single_slots_cost_no_cycle_in_any_network(edges: int, seed: int):
    network = random_network(edges, seed)
    usual, single = (size_fifos(network, VITIS, simulations=64, singles=singles) for singles in (False, True))
    assert Simulator(network, VITIS).run(dict(single.depths)).latency == usual.latency
    assert single.bound <= single.bits <= usual.bits


def loop(late: bool) -> Network:
    """Two processes that feed each other; with `late`, each reads before it ever writes."""
    trips = (8,)
    each, but_first, but_last = (TokenPattern((PatternLevel((run,), 1),)) for run in ((0, 8), (1, 7), (0, 7)))
    back = (each, each) if late else (but_last, but_first)
    ahead = Phase(trips, 1, 2, (ChannelAccess("back", "read", back[1], 0), ChannelAccess("there", "write", each, 1)))
    behind = Phase(trips, 1, 2, (ChannelAccess("there", "read", each, 0), ChannelAccess("back", "write", back[0], 1)))
    channels = (Channel("there"), Channel("back"))
    return Network("loop", (SimulatedProcess("ahead", (ahead,)), SimulatedProcess("behind", (behind,))), channels)


def test_a_cycle_is_sized_by_simulation_alone():
    with pytest.raises(PenstockError, match="feed each other in a cycle") as caught:
        periodic_depths(loop(late=False), OPEN_RTL)
    assert caught.value.where == "ahead, behind"
    sizing = size_fifos(loop(late=False), OPEN_RTL)
    assert sizing.latency == sizing.unbounded_latency


def test_a_cycle_that_cannot_start_is_named():
    with pytest.raises(PenstockError, match="stops for ever") as caught:
        size_fifos(loop(late=True), VITIS)
    assert caught.value.code == "deadlock"


def test_ends_that_do_not_match_are_refused():
    network = chain(3, 1)
    process = network.processes[1]
    fewer = replace(process.phases[0], trips=(1, *process.phases[0].trips[1:]))
    broken = replace(network, processes=(network.processes[0], replace(process, phases=(fewer,)), network.processes[2]))
    with pytest.raises(PenstockError):
        size_fifos(broken, VITIS)


def test_what_a_budget_leaves_undone_is_named_and_more_budget_does_it():
    network = random_network(30, 5)
    short, long = (size_fifos(network, VITIS, least=1, simulations=n) for n in (6, 2000))
    assert short.open
    assert not long.open
    assert short.bits > long.bits
    assert short.latency == short.unbounded_latency == long.latency
    for name in long.depths:
        assert long.depths[name] == 1 or not runs_as_early(network, {**long.depths, name: long.depths[name] - 1})


def runs_as_early(network: Network, depths: Mapping[str, int]) -> bool:
    simulator = Simulator(network, VITIS)
    found = simulator.run(dict(depths))
    return found.deadlock is None and found.latency == simulator.run(bounded=False).latency


def test_a_sizing_ends_after_so_much_work_as_well_as_after_so_many_runs():
    network = random_network(30, 5)
    everything = size_fifos(network, VITIS, least=1, effort=Effort(2000, 1 << 40))
    part = size_fifos(network, VITIS, least=1, effort=Effort(2000, everything.work // 4))
    assert part.simulations < everything.simulations
    assert part.bits >= everything.bits
    assert part == size_fifos(network, VITIS, least=1, effort=Effort(2000, everything.work // 4)), "always the same"


def test_failures_that_say_less_than_others_are_not_kept():
    known = KnownFailures(["a", "b"])
    known.add({"a": 1, "b": 5})
    known.add({"a": 3, "b": 2})
    assert known.cover({"a": 1, "b": 4})
    assert known.cover({"a": 2, "b": 2})
    assert not known.cover({"a": 2, "b": 3})
    known.add({"a": 3, "b": 5})
    assert known.cover({"a": 2, "b": 3})
    assert not known.cover({"a": 4, "b": 1})


def test_shrinking_stays_within_its_budget():
    network = random_network(20, 1)
    bits = {c.name: c.bits for c in network.channels}
    measure = SimulatedRuns(network, VITIS)
    allowed = measure.unbounded().ends
    found = shrink(measure, [network.tokens()], network.tokens(), bits, allowed=allowed, simulations=25)
    assert found.simulations <= 25 + len(bits)
    assert measure(found.depths).within(allowed)


def needing(needed: Mapping[str, int]) -> MeasureDepths:
    """Runs that end in time exactly if each FIFO has the slots that it needs."""
    return lambda depths: MeasuredDepths((0 if all(depths[n] >= d for n, d in needed.items()) else 1,), dict(depths))


def test_what_kernels_hand_over_is_shrunk_beside_far_more_that_loads_fetch_ahead():
    ahead, between = {f"load{n}": 700 for n in range(16)}, {f"between{n}": 2 + n % 2 for n in range(16)}
    bits = dict.fromkeys(ahead, 1024) | dict.fromkeys(between, 8)
    start = dict.fromkeys(ahead, 1000) | dict.fromkeys(between, 100)
    found = shrink(needing(ahead | between), [start], start, bits, allowed=(0,), ahead=ahead, least=2, simulations=60)
    assert sum(found.depths[n] for n in between) < sum(start[n] for n in between) / 3
    assert all(found.depths[n] >= d for n, d in (ahead | between).items())


def test_many_fifos_that_are_all_too_deep_and_all_needed_go_half_way_together():
    needed = {f"fifo{n}": 30 for n in range(32)}
    start, bits = dict.fromkeys(needed, 1000), dict.fromkeys(needed, 64)
    found = shrink(needing(needed), [start], start, bits, allowed=(0,), least=2, simulations=24)
    assert total_bits(found.depths, bits) < total_bits(start, bits) / 8
