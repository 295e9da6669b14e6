"""Token models: the paper's example and equations on their own assumptions, curves against the simulator."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fifo_networks import Walk, Wire, attention, build, pattern, random_network
from benchmarks.straight_lines import Line, line_depths, straight_depths, tokens_of_fast_source, tokens_of_slow_source
from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import (
    OPEN_RTL,
    VITIS,
    Channel,
    ChannelAccess,
    MemoryPort,
    Network,
    Phase,
    Rules,
    SimulatedMemory,
    SimulatedProcess,
    Simulator,
)
from penstock.dse.fifo.curves import curves_of
from penstock.dse.fifo.delays import Delay, start_times
from penstock.dse.fifo.periodic import periodic_depths


def pair(tokens: int, source: tuple[int, int], target: tuple[int, int], depth: int | None = None) -> Network:
    """A source and a target of one token an iteration, each with (II, depth)."""
    one = Phase((tokens,), *source, (ChannelAccess("fifo", "write", pattern([tokens], {}), source[1] - 1),))
    two = Phase((tokens,), *target, (ChannelAccess("fifo", "read", pattern([tokens], {}), 0),))
    return Network(
        "pair",
        (SimulatedProcess("source", (one,)), SimulatedProcess("target", (two,))),
        (Channel("fifo", "fifo", depth),),
    )


def test_the_papers_two_kernels():
    """Five tokens, one a cycle from cycle 5 on, taken every second cycle: three in the FIFO at most, done at 15."""
    network = pair(5, (1, 5), (2, 2))
    run = Simulator(network, OPEN_RTL).run(bounded=False)
    assert run.latency == 15
    assert run.channels["fifo"].high_water == 3
    line = Line("fifo", "source", "target", 5, latency=8, initial_delay=4, source_interval=1, target_interval=2)
    assert line_depths(["source", "target"], [line]) == {"fifo": 3}
    assert straight_depths(network, OPEN_RTL) == {"fifo": 3}
    assert periodic_depths(network, OPEN_RTL) == {"fifo": 3}
    assert Simulator(network, OPEN_RTL).run({"fifo": 3}).latency == 15


@given(st.integers(1, 40), st.integers(0, 30), st.integers(1, 6), st.integers(0, 6), st.integers(0, 40))
def test_equation_1_counts_what_a_slow_target_has_left(tokens: int, initial: int, source: int, more: int, wait: int):
    """On its own assumptions: a token leaves the FIFO when the target is done with it."""
    target, delay = source + more, initial + wait
    written = initial + source * np.arange(tokens)
    latency = int(written[-1])
    done = delay + target * (1 + np.arange(tokens))
    held = max(i + 1 - int((done <= at).sum()) for i, at in enumerate(written))
    assert tokens_of_fast_source(tokens, latency, delay, target) == held or delay > latency
    # a target that starts after the source ended finds all of its tokens
    if delay >= latency:
        assert tokens_of_fast_source(tokens, latency, delay, target) == tokens == held


@given(st.integers(1, 40), st.integers(0, 30), st.integers(1, 6), st.integers(0, 6), st.integers(0, 60))
def test_equation_2_counts_what_a_slow_source_has_made(tokens: int, initial: int, target: int, more: int, wait: int):
    """On its own assumptions: most tokens wait at the moment at which the target starts."""
    source, delay = target + more, initial + wait
    written = initial + source * np.arange(tokens)
    assert tokens_of_slow_source(tokens, delay, initial, source) == int((written < delay).sum())


@given(st.integers(1, 30), st.integers(1, 5), st.integers(1, 12), st.integers(1, 5), st.integers(1, 8))
@settings(max_examples=60)
def test_for_two_even_kernels_the_papers_depth_is_at_most_one_too_few(
    tokens: int, source_ii: int, source_depth: int, target_ii: int, target_depth: int
):
    """The equations let a slot be filled in the cycle in which it is read; a FIFO of registers or RAM does not."""
    network = pair(tokens, (source_ii, source_depth), (target_ii, target_depth))
    depth = straight_depths(network, OPEN_RTL)["fifo"]
    simulator = Simulator(network, OPEN_RTL)
    free = simulator.run(bounded=False)
    assert depth >= free.channels["fifo"].high_water - 1
    assert simulator.run({"fifo": depth + 1}).latency == free.latency


def test_the_papers_graph_of_three_kernels():
    """Figure 8(f): kernel 2 starts after the sum of both initial delays, whatever the direct edge would allow."""
    starts = start_times(["k0", "k1", "k2"], [Delay("k0", "k1", 3), Delay("k1", "k2", 4), Delay("k0", "k2", 3)])
    assert (starts["k1"] - starts["k0"], starts["k2"] - starts["k0"]) == (3, 7)


def test_paths_between_two_kernels_all_have_the_longest_paths_sum():
    """The threshold of the paper's rows, and every edge's row implies it."""
    edges = [Delay("a", "b", 5), Delay("b", "d", 1), Delay("a", "c", 2), Delay("c", "d", 2), Delay("d", "e", 7)]
    starts = start_times(list("abcde"), edges)
    assert starts["d"] - starts["a"] == 6
    assert starts["e"] - starts["a"] == 13


def test_wide_tokens_wait_where_narrow_ones_could():
    """A kernel between a wide and a narrow FIFO starts early if its input is the wide one, late if its output is."""
    late = [Delay("s", "t", 20), Delay("s", "k", 1, weight=1), Delay("k", "t", 1, weight=64)]
    early = [Delay("s", "t", 20), Delay("s", "k", 1, weight=64), Delay("k", "t", 1, weight=1)]
    assert start_times(["s", "k", "t"], late)["k"] == 19
    assert start_times(["s", "k", "t"], early)["k"] == 1


def test_delays_in_a_cycle_have_no_start_times():
    with pytest.raises(PenstockError, match="no start times"):
        start_times(["a", "b"], [Delay("a", "b", 1), Delay("b", "a", 1)])


@pytest.mark.parametrize("lag", range(1, 5))
def test_hida_balances_paths_with_one_block_more_for_every_stage_between(lag: int):
    """On HIDA's assumptions: stages take equally long and hand over whole buffers. Then a frame leaves every stage
    time exactly if a buffer that skips over `lag` stages has room for `lag` + 2 frames, one copy for each stage
    that it passes by and two to hand over; with one less, and the neighbours' two, it does not."""
    work = 16
    stages = lag + 2

    def process(i: int) -> SimulatedProcess:
        accesses: list[ChannelAccess] = []
        once = pattern([work], {0: 0})
        for name, (source, target) in channels.items():
            if i == source:
                accesses.append(ChannelAccess(name, "write", once, 0, hold=work - 1))
            if i == target:
                accesses.append(ChannelAccess(name, "read", once, 0, hold=work - 1))
        return SimulatedProcess(f"s{i}", (Phase((work,), 1, 1, tuple(accesses)),))

    channels = {f"b{i}": (i, i + 1) for i in range(stages - 1)} | {"skip": (0, stages - 1)}
    blocks = tuple(Channel(name, "block", 2, words=work) for name in channels)
    simulator = Simulator(Network("hida", tuple(process(i) for i in range(stages)), blocks), OPEN_RTL)
    enough = simulator.run({"skip": lag + 2}, frames=12)
    assert enough.interval == work
    assert enough.latency == work * stages
    short = simulator.run({"skip": lag + 1}, frames=12)
    assert (short.frame_ends[-1] - short.frame_ends[0]) > work * 11


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
@given(st.integers(2, 14), st.integers(0, 10**6))
@settings(max_examples=40)
def test_what_waits_in_a_curves_fifo_is_its_high_water_mark(rules: Rules, edges: int, seed: int):
    network = random_network(edges, seed)
    run = curves_of(network, rules)
    simulated = Simulator(network, rules).run(bounded=False)
    assert {n: p.end for n, p in simulated.processes.items()} == dict(run.ends)
    for edge in run.edges:
        assert edge.held() == simulated.channels[edge.name].high_water
        assert edge.slack >= 0


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
def test_curves_wait_for_tokens_alone(rules: Rules):
    """Not for external memory; a block passes as one token, and is read when it is given back."""
    words, block = ChannelAccess("words", "read", pattern([8], {}), 0), pattern([8], {0: 0})
    one = Phase((8,), 1, 3, (words, ChannelAccess("block", "write", block, 2, hold=7)))
    two = Phase((8,), 4, 1, (ChannelAccess("block", "read", block, 0, hold=7),))
    network = Network(
        "memory", (SimulatedProcess("one", (one,)), SimulatedProcess("two", (two,))), (Channel("block", "block", 1),),
        (MemoryPort("words", "slow", 0, 32),), (SimulatedMemory("slow", 1, 1.0, 50),),
    )  # fmt: skip
    run = curves_of(network, rules)
    (edge,) = run.edges
    assert (edge.written.tolist(), edge.read.tolist()) == ([9], [10 + 7 * 4])
    assert run.ends["one"] == 10
    assert Simulator(network, rules).run(bounded=False).processes["one"].end > 200


def test_a_pipo_passes_from_the_end_of_its_writer_to_the_start_of_its_reader():
    one, two = (SimulatedProcess(name, (Phase((5,), 1, 2, ()),)) for name in ("one", "two"))
    network = Network("pipo", (one, two), (Channel("p", "pipo", 2, producers=("one",), consumers=("two",)),))
    (edge,) = curves_of(network, VITIS).edges
    assert (edge.written.tolist(), edge.read.tolist(), edge.slack) == ([6], [7], 0)


@pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)
@given(st.integers(2, 14), st.integers(0, 10**6))
@settings(max_examples=30)
def test_periodic_depths_cost_no_time(rules: object, edges: int, seed: int):
    """What the moved curves promise, simulated; and the program never takes more bits than leaving them unmoved."""
    network = random_network(edges, seed)
    chosen = VITIS if rules is VITIS else OPEN_RTL
    simulator = Simulator(network, chosen)
    free = simulator.run(bounded=False)
    depths = periodic_depths(network, chosen)
    assert simulator.run(depths).latency == free.latency
    bits = {c.name: c.bits for c in network.channels}
    held = {n: c.high_water for n, c in free.channels.items()}
    assert sum(bits[n] * d for n, d in depths.items()) <= sum(bits[n] * d for n, d in held.items())


def test_straight_lines_do_not_see_bursts():
    """A reader that takes a row at once and then works on it: lines say little waits, and the run is longer."""
    walks = [Walk(2, False, 1, 4), Walk(2, True, 1, 4), Walk(1, False, 1, 4)]
    wires = [Wire(0, 1), Wire(1, 2), Wire(0, 2)]
    network = build("burst", (1, 4, 16), walks, wires)
    simulator = Simulator(network, OPEN_RTL)
    free = simulator.run(bounded=False)
    lines, curves = straight_depths(network, OPEN_RTL), periodic_depths(network, OPEN_RTL)
    assert lines["c0_0_1"] < curves["c0_0_1"] == free.channels["c0_0_1"].high_water
    assert simulator.run(curves).latency == free.latency
    bounded = simulator.run(lines)
    assert bounded.deadlock is not None or bounded.latency > free.latency


def test_a_block_needs_its_room_beside_a_path_that_runs_on():
    network = attention(1)
    depths = periodic_depths(network, VITIS)
    assert Simulator(network, VITIS).run(depths).deadlock is None
    assert math.prod(depths.values()) > 1
