"""What a simulation reports, on networks small enough to check by hand."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.simulator import (
    OPEN_RTL,
    VITIS,
    Channel,
    MemoryPort,
    Network,
    Phase,
    Rules,
    Sequence,
    SimulatedMemory,
    SimulatedProcess,
    Simulator,
    Stall,
    simulate,
)
from penstock.compiler.simulator import layout as at
from penstock.compiler.simulator.check import check_network
from penstock.compiler.simulator.explain import cycle_of
from penstock.compiler.simulator.results import Wait
from penstock.compiler.simulator.simulate import ENGINE
from penstock.compiler.simulator.state import new_state
from penstock.profiling.networks.guards import COMPARISONS, Guard, pattern_of
from tests.simulator.networks import access, draw_network, two_kernels

BOTH = pytest.mark.parametrize("rules", [VITIS, OPEN_RTL], ids=lambda r: r.name)


@BOTH
def test_the_papers_five_tokens(rules: Rules):
    """A token a cycle from cycle 5 on, taken every second cycle: three wait at most, all is done at 15."""
    result = simulate(two_kernels(), rules)
    assert result.latency == 15
    assert result.channels["fifo"].high_water == 3
    assert result.channels["fifo"].first_write == 4
    assert result.initial_delay == 5
    assert result.processes["target"].stalls == (Stall("fifo", "empty", 5),)


@BOTH
@pytest.mark.parametrize("depth", [3, 2, 1])
def test_a_shallow_fifo_holds_the_source_back_but_not_the_target(rules: Rules, depth: int):
    result = Simulator(two_kernels(), rules).run({"fifo": depth})
    assert result.latency == 15
    assert result.channels["fifo"].high_water == depth
    waits = {stall.cause: stall.cycles for stall in result.processes["source"].stalls}
    assert waits == ({} if depth == 3 else {"full": {2: 2, 1: 4}[depth]})


def diamond(short: int) -> Network:
    """`far` holds a token for nine cycles, `near` is a short cut past it; the fork serves both in one cycle."""
    n = (8,)
    processes = (
        SimulatedProcess("fork", (Phase(n, 1, 2, (access("far", "write", n), access("near", "write", n))),)),
        SimulatedProcess("hold", (Phase(n, 1, 9, (access("far", "read", n), access("late", "write", n))),)),
        SimulatedProcess("join", (Phase(n, 1, 2, (access("late", "read", n), access("near", "read", n))),)),
    )
    return Network("diamond", processes, (Channel("far"), Channel("near", depth=short), Channel("late")))


def test_the_critical_path_goes_from_task_to_task():
    deep = simulate(diamond(16))
    assert [hop.process for hop in deep.critical_path] == ["fork", "hold", "join"]
    assert deep.critical_path[0].start == 0
    assert deep.critical_path[-1].end == deep.latency


@pytest.mark.parametrize(
    ("waiting", "named"),
    [({0: 1, 1: 2, 2: 1}, [1, 2]), ({1: 0, 0: 1}, [0, 1]), ({0: 1, 1: 2}, [0, 1]), ({}, [])],
    ids=["cycle behind one", "cycle", "for one that waits for no channel", "nobody"],
)
def test_whoever_waits_is_named(waiting: dict[int, int], named: list[int]):
    """Each of three waits for another one on a channel, or on none."""
    waits = [
        [(Wait(f"p{p}", f"c{p}", "empty", f"p{waiting[p]}"), waiting[p])] if p in waiting else [] for p in range(3)
    ]
    assert [wait.process for wait in cycle_of(waits)] == [f"p{p}" for p in named]


def test_a_deadlock_names_its_cycle():
    """A pipeline that stops whole cannot drain through a short cut that is too short; one that flushes can."""
    result = simulate(diamond(2))
    assert result.deadlock is not None
    waits = {(w.process, w.channel, w.cause, w.waits_for) for w in result.deadlock.cycle}
    assert waits == {
        ("fork", "near", "full", "join"),
        ("join", "late", "empty", "hold"),
        ("hold", "far", "empty", "fork"),
    }
    with pytest.raises(PenstockError, match="fork waits for join") as caught:
        _ = result.latency
    assert caught.value.code == "deadlock"
    assert simulate(diamond(2), OPEN_RTL).latency > simulate(diamond(16), OPEN_RTL).latency


def test_the_interval_between_frames_is_the_slowest_process():
    network = two_kernels()
    result = simulate(network, frames=4)
    assert result.frame_ends[0] == 15
    assert result.interval == 11, "ten cycles of work and one to start again"
    assert simulate(network).interval is None


def test_a_block_is_handed_over_whole_and_the_writer_is_two_ahead():
    rows = (4, 8)
    write = access("block", "write", rows, [Guard(1, "==", 0)], stage=0, hold=7)
    read = access("block", "read", rows, [Guard(1, "==", 0)], stage=0, hold=7)
    processes = (
        SimulatedProcess("fill", (Phase(rows, 1, 1, (write,)),)),
        SimulatedProcess("drain", (Phase(rows, 2, 1, (read,)),)),
    )
    double = simulate(Network("blocks", processes, (Channel("block", "block", 2),)))
    # a block takes 8 cycles to fill and 15 (its last read is the 15th) to drain, 16 from one to the next
    assert double.channels["block"].first_read == 8 + 14
    assert double.latency == 8 + 3 * 16 + 15
    single = simulate(Network("blocks", processes, (Channel("block", "block", 1),)))
    assert single.latency > double.latency


def with_memory(bits_per_cycle: float, latency: int, *, banks: int = 1, second_bank: int = 0) -> Network:
    """Two loads of 100 words of 64 bits."""
    n = (100,)
    processes = tuple(
        SimulatedProcess(f"load{i}", (Phase(n, 1, 1, (access(f"port{i}", "read", n, stage=0),)),)) for i in (0, 1)
    )
    ports = (MemoryPort("port0", "ddr", 0, 64, 4), MemoryPort("port1", "ddr", second_bank, 64, 4))
    return Network("memory", processes, (), ports, (SimulatedMemory("ddr", banks, bits_per_cycle, latency),))


def test_external_memory_never_gives_more_than_85_percent_of_its_peak():
    """64 bits a cycle for two ports of 64 bits: 2 / 0.85 cycles a word, so 99 words after the first take 233 cycles."""
    assert simulate(with_memory(64, 0)).latency == 1 + 233
    assert simulate(with_memory(64, 30)).latency == 31 + 233
    stalls = simulate(with_memory(64, 0)).processes["load0"].stalls
    assert stalls == (Stall("port0", "memory", 234 - 100),)


def test_ports_on_different_banks_do_not_share():
    apart = simulate(with_memory(64, 0, banks=2, second_bank=1))
    assert apart.latency == 1 + 117, "99 / 0.85"
    assert simulate(with_memory(1000, 0)).latency == 100


def test_a_store_ends_when_its_last_word_has_left_the_buffer():
    n = (100,)
    store = SimulatedProcess("store", (Phase(n, 1, 1, (access("port", "write", n, stage=0),)),))
    network = Network("store", (store,), (), (MemoryPort("port", "ddr", 0, 64, 8),), (SimulatedMemory("ddr", 1, 32),))
    assert simulate(network).latency == 236, "100 words, 2 / 0.85 cycles each"


def test_kernels_one_after_the_other_add_up():
    network = two_kernels()
    other = Network(
        "second", tuple(SimulatedProcess(f"{p.name}2", p.phases) for p in network.processes), network.channels
    )
    result = simulate(Sequence("both", ((network,), (other,))))
    assert result.latency == 15 + 15 + 1 + 2 - 1
    assert result.processes["source2"].start == 15 + 3


@pytest.mark.slow
def test_compiled_and_interpreted_engines_are_one():
    compiled = ENGINE.function()
    for seed in range(20):
        simulator = Simulator(draw_network(seed), OPEN_RTL if seed % 2 else VITIS)
        depths = [link.channel.depth for link in simulator.plan.links]
        one, other = new_state(simulator.plan, depths, 2), new_state(simulator.plan, depths, 2)
        assert Simulator._interpreted(one) == compiled(*other.arrays)
        assert (one.memory == other.memory).all()
        assert (one.rings == other.rings).all()


@BOTH
def test_a_run_that_takes_too_long_ends_within_a_process(rules: Rules):
    """Without depths the source would be through with all its tokens at once."""
    n, phases, most = (2,), 100, 50
    source = SimulatedProcess("source", (Phase(n, 2, 3, (access("fifo", "write", n, stage=2),)),) * phases)
    target = SimulatedProcess("target", (Phase(n, 3, 1, (access("fifo", "read", n),)),) * phases)
    plan = Simulator(Network("long", (source, target), (Channel("fifo"),)), rules).plan
    state = new_state(plan, [None], 1)
    state.memory[at.MOST_WORK] = most
    assert not Simulator._interpreted(state)
    assert state.memory[at.WORK] == most + 1


def test_rates_that_do_not_match_are_named():
    source, target = two_kernels().processes
    wrong = SimulatedProcess("target", (Phase((4,), 2, 2, (access("fifo", "read", (4,)),)),))
    with pytest.raises(PenstockError, match="source puts 5 and target gets 4") as caught:
        simulate(Network("wrong", (source, wrong), (Channel("fifo"),)))
    assert caught.value.where == "fifo"
    assert target.name == "target"


def circle(write_stage: int) -> Network:
    n = (4,)
    a = SimulatedProcess(
        "a", (Phase(n, 1, 3, (access("back", "read", n, stage=2), access("forth", "write", n, stage=write_stage))),)
    )
    b = SimulatedProcess("b", (Phase(n, 1, 2, (access("forth", "read", n), access("back", "write", n))),))
    return Network("circle", (a, b), (Channel("forth"), Channel("back")))


def test_a_cycle_that_cannot_start_is_named():
    assert simulate(circle(1)).deadlock is None
    stopped = simulate(circle(2)).deadlock
    assert stopped is not None
    assert {(wait.process, wait.channel) for wait in stopped.cycle} == {("a", "back"), ("b", "forth")}


@pytest.mark.parametrize(
    ("channel", "message"),
    [
        (Channel("fifo", depth=0), "depth is 0"),
        (Channel("fifo", bits=-8), "bits is -8"),
        (Channel("other"), "there is no channel 'fifo'"),
        (
            Channel("fifo", "pipo", 2, 8, 1, ("source",), ("nobody",)),
            "there is no process 'nobody'|a pipo passes between",
        ),
    ],
)
def test_bad_channels_are_named(channel: Channel, message: str):
    network = two_kernels()
    with pytest.raises(PenstockError, match=message) as caught:
        check_network(Network("bad", network.processes, (channel,)))
    assert caught.value.where


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        (Phase((5,), 0, 5, ()), "ii is 0"),
        (Phase((5,), 1, -1, ()), "depth is -1"),
        (Phase((0,), 1, 1, ()), "trip is 0"),
        (Phase((5,), 1, 5, (access("fifo", "write", (5,), stage=5),)), "stage 5"),
        (Phase((4,), 1, 5, (access("fifo", "write", (5,)),)), "iteration 4"),
    ],
)
def test_bad_phases_are_named(phase: Phase, message: str):
    network = two_kernels()
    with pytest.raises(PenstockError, match=message):
        check_network(Network("bad", (SimulatedProcess("source", (phase,)), network.processes[1]), network.channels))


def test_memories_with_missing_bandwidth_are_refused():
    for bad in (with_memory(0, 0), with_memory(64, -1), with_memory(64, 0, banks=1, second_bank=3)):
        with pytest.raises(PenstockError) as caught:
            check_network(bad)
        assert caught.value.where


def test_depths_and_frames_are_checked():
    simulator = Simulator(two_kernels())
    for depths in ({"fifo": 0}, {"none": 3}):
        with pytest.raises(PenstockError, match="a depth of"):
            simulator.run(depths)
    with pytest.raises(PenstockError, match="0 frames"):
        simulator.run(frames=0)


@pytest.mark.parametrize("seed", range(20))
def test_guards_keep_the_iterations_in_which_they_hold(seed: int):
    random = Random(seed)
    trips = tuple(random.randint(1, 7) for _ in range(3))
    kinds = random.choices(COMPARISONS, k=random.randint(0, 4))
    terms = [Guard(random.randrange(3), kind, random.randrange(4), random.randint(1, 4)) for kind in kinds]
    holds = {"==": int.__eq__, "!=": int.__ne__, ">=": int.__ge__, "<=": int.__le__}

    def all_hold(counters: tuple[int, ...]) -> bool:
        return all(
            counters[t.loop] % t.modulus == t.value
            if t.comparison == "mod"
            else holds[t.comparison](counters[t.loop], t.value)
            for t in terms
        )

    wanted = [i for i, counters in enumerate(product(*(range(trip) for trip in trips))) if all_hold(counters)]
    pattern = pattern_of(trips, terms)
    assert [pattern.iteration(token) for token in range(pattern.count)] == wanted


def test_a_depth_beyond_all_counting_is_no_limit():
    assert Simulator(two_kernels()).run({"fifo": 10**30}).latency == 15


def test_what_is_longer_than_can_be_counted_is_refused():
    for phase in (Phase((10**30,), 1, 1), Phase((5,), 10**20, 1)):
        with pytest.raises(PenstockError, match="at most"):
            check_network(Network("long", (SimulatedProcess("p", (phase,)),)))
