"""Token times against measured RTL, and against a simulator that steps through every cycle."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.compiler.dialects.nest import Term
from penstock.compiler.jit import Compiled
from penstock.compiler.platforms import load_platform
from penstock.compiler.schedule import NestSchedule
from penstock.profiling import sampling
from penstock.profiling import timeline as timelines
from penstock.profiling.network import TaskNetwork
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.simulated import simulate_design
from penstock.profiling.timeline import FreeTimeline, Timeline
from tests.profiling.steppers import Stuck, flushed, nest, network, port, step_through


def times(net: TaskNetwork, *, flushing: bool = False, bounded: bool = True, seen: bool = False) -> Timeline:
    board = load_platform("ecp5-85k")
    net = flushed(net) if flushing else net
    free = FreeTimeline(net, read_stage=0, platform=board, clock_mhz=100.0)
    return free.bounded(net, seen=seen) if bounded else free.result()


def product(name: str, m: int, n: int, k: int, lanes: int, pack: int, source: str, sink: str) -> NestSchedule:
    """A matrix product of the open route: a row is read in a burst and kept, results leave packed."""
    trips = [m, n // pack, pack, k // lanes]
    depth = 7 + int(math.log2(lanes)) + (pack > 1)
    first, last = [Term(1, "eq", 0), Term(2, "eq", 0)], [Term(2, "eq", pack - 1), Term(3, "eq", k // lanes - 1)]
    ports = [port(source, "read", 0, trips, first), port(sink, "write", depth - 1, trips, last)]
    return nest(name, trips, ports, depth=depth)


def chain(m: int, k: int, hidden: int, first: int, outputs: int, second: int, depth: int) -> TaskNetwork:
    """Two products in a row, fed and drained every cycle."""
    tokens, results = m * k // first, m * outputs // 4
    nests = [
        nest("source", [tokens], [port("a", "write", 0, [tokens])]),
        product("t1", m, hidden, k, first, second, "a", "mid"),
        product("t2", m, outputs, hidden, second, 4, "mid", "o"),
        nest("sink", [results], [port("o", "read", 0, [results])]),
    ]
    return network(nests, {"a": tokens, "mid": depth, "o": results})


MEASURED = [
    ("balanced", 4, 4, 1024, 17411, 1090, 15),
    ("balanced", 4, 4, 2, 29696, 1090, 2),
    ("balanced", 4, 4, 7, 24896, 1090, 7),
    ("balanced", 4, 4, 14, 18176, 1090, 14),
    ("balanced", 4, 4, 15, 17411, 1090, 15),
    ("slow consumer", 8, 4, 1024, 16900, 579, 128),
    ("slow consumer", 8, 4, 2, 22945, 579, 2),
    ("slow consumer", 8, 4, 64, 16900, 579, 64),
    ("slow consumer", 8, 4, 127, 16900, 579, 127),
    ("fast consumer", 4, 8, 1024, 16908, 1067, 3),
    ("fast consumer", 4, 8, 2, 18753, 1067, 2),
]


@pytest.mark.parametrize("flushing", [True, False])
@pytest.mark.parametrize(("name", "first", "second", "depth", "latency", "initial", "high_water"), MEASURED)
def test_two_products_in_a_row_at_every_measured_depth(
    flushing: bool, name: str, first: int, second: int, depth: int, latency: int, initial: int, high_water: int
):
    """RTL figures of the open route, to the cycle; ours has one more, in which the source makes its first token."""
    timeline = times(chain(16, 64, 64, first, 64, second, depth), flushing=flushing)
    assert timeline.tasks["t2"].end == latency + 1, name
    assert int(timeline.channels["o"].written[0]) == initial + 1
    assert timeline.channels["mid"].high_water == high_water


def test_the_papers_five_tokens():
    """StreamTensor's example: a token a cycle from cycle 5, taken every second: three wait at most, done at 15."""
    five = [5]
    nests = [
        nest("source", five, [port("fifo", "write", 4, five)], depth=5),
        nest("target", five, [port("fifo", "read", 0, five)], ii=2, depth=2),
    ]
    timeline = times(network(nests, {"fifo": 5}))
    assert timeline.channels["fifo"].high_water == 3
    assert timeline.latency == 15


@st.composite
def drawn_networks(draw: st.DrawFn) -> TaskNetwork:
    """Chains and reconvergent paths of nests with guards, II, depth; some channels are ping-pong blocks."""
    tokens = draw(st.sampled_from([4, 6, 8, 12]))
    count = draw(st.integers(2, 5))
    skips = [edge for edge in ((0, 2), (1, 3), (0, 4)) if edge[1] < count and draw(st.booleans())]
    edges = [*((i, i + 1) for i in range(count - 1)), *skips]
    blocks = {f"c{a}{b}" for a, b in edges if draw(st.integers(0, 3)) == 0}
    parts = draw(st.sampled_from([d for d in (1, 2, 4) if tokens % d == 0]))
    nests: list[NestSchedule] = []
    for i in range(count):
        extra, depth = draw(st.integers(1, 3)), draw(st.integers(1, 6))
        outside = draw(st.booleans())
        trips = [parts, extra, tokens // parts] if outside else [parts, tokens // parts, extra]
        repeated = 1 if outside else 2
        ports = []
        for a, b in edges:
            if i not in (a, b):
                continue
            name, writes = f"c{a}{b}", i == a
            when = [Term(repeated, "eq", draw(st.sampled_from([0, extra - 1])))]
            stage = depth - 1 if writes else draw(st.integers(0, depth - 1))
            is_block = name in blocks
            ports.append(
                port(name, "write" if writes else "read", stage, trips, [] if is_block else when,
                     "block" if is_block else "stream")
            )  # fmt: skip
        nests.append(nest(f"t{i}", trips, ports, ii=draw(st.integers(1, 3)), depth=depth, block_loops=1))
    depths = {f"c{a}{b}": draw(st.integers(1, 5)) for a, b in edges}
    return network(nests, depths, sorted(blocks))


def test_a_pipeline_that_flushes_writes_nothing_before_it_has_read_it() -> None:
    """Also where it reads at a later stage than others do."""
    made = nest("a", [4, 3], [port("c", "write", 0, [4, 3], kind="block")], ii=2, depth=1, block_loops=1)
    both = [port("c", "read", 1, [4, 1], kind="block"), port("d", "write", 1, [4, 1])]
    passed = nest("b", [4, 1], both, ii=1, depth=2, block_loops=1)
    taken = nest("e", [4, 1], [port("d", "read", 0, [4, 1])], ii=1, depth=1, block_loops=1)
    channels = times(network([made, passed, taken], {"c": 1, "d": 2}, ["c"]), flushing=True).channels
    assert (channels["d"].written >= channels["c"].read).all()


def check_against_stepping(net: TaskNetwork) -> None:
    try:
        stepped: dict[str, int] | None = step_through(net)
    except Stuck:
        stepped = None
    if stepped is None:
        with pytest.raises(ProfilingError, match="does not settle"):
            times(net)
    else:
        assert {name: t.end for name, t in times(net).tasks.items()} == stepped


@given(drawn_networks())
@settings(max_examples=120)
def test_times_agree_with_stepping_through_every_cycle(net: TaskNetwork):
    check_against_stepping(net)


def swept(net: TaskNetwork, *, flushing: bool) -> Timeline | None:
    """The times that stay as they are when full channels hold their writers back; None where there are none."""
    net = flushed(net) if flushing else net
    free = FreeTimeline(net, read_stage=0, platform=load_platform("ecp5-85k"), clock_mhz=100.0)
    settled = free._with_depths_of(net)
    settled._sweep_through()
    return None if settled._waiting else settled.result()


@pytest.mark.parametrize("left", [1 << 60, 0], ids=["plain", "compiled"])
@given(net=drawn_networks(), most=st.sampled_from([4, 64]), flushing=st.booleans())
@settings(max_examples=100)
def test_times_in_order_are_those_that_sweeps_settle_on(left: int, net: TaskNetwork, most: int, flushing: bool):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timelines, "_MOST_SWEEPS", 300)
        patch.setattr(sampling, "MAX_TOKENS", most)
        patch.setattr(Compiled, "left", lambda _: left)
        expected = swept(net, flushing=flushing)
        if expected is None:
            with pytest.raises(ProfilingError, match="does not settle"):
                times(net, flushing=flushing)
            return
        ordered = times(net, flushing=flushing)
    assert ordered.tasks == expected.tasks
    for name, channel in ordered.channels.items():
        for field in ("claimed", "written", "read"):
            assert getattr(channel, field).tolist() == getattr(expected.channels[name], field).tolist()


@pytest.mark.parametrize("left", [1 << 60, 0], ids=["plain", "compiled"])
@given(net=drawn_networks(), inputs=st.integers(2, 5))
@settings(max_examples=100)
def test_inputs_that_are_followed_are_as_far_apart_as_simulated(left: int, net: TaskNetwork, inputs: int):
    board = load_platform("u55c")
    simulated = simulate_design(net, board, 250.0, frames=inputs)
    free = FreeTimeline(net, read_stage=1, platform=board, clock_mhz=250.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Compiled, "left", lambda _: left)
        if simulated.deadlock is not None:
            with pytest.raises(ProfilingError, match="does not settle"):
                free.followed(net, inputs)
            return
        found = free.followed(net, inputs)
    assert found.latency == simulated.latency
    latest = simulated.frame_ends[-3:]
    assert found.apart == math.ceil((latest[-1] - latest[0]) / (len(latest) - 1))
    assert found.tasks == free.bounded(net).tasks


@pytest.mark.slow
@given(drawn_networks())
@settings(max_examples=1000)
def test_times_agree_with_stepping_on_many_more_networks(net: TaskNetwork):
    check_against_stepping(net)


@given(drawn_networks())
@settings(max_examples=50)
def test_depths_at_the_high_water_mark_cost_no_time(net: TaskNetwork):
    free = times(net, bounded=False)
    enough = {name: channel.high_water for name, channel in free.channels.items()}
    assert times(net.with_depths(enough)).latency == free.latency
    assert step_through(net.with_depths(enough)) == {name: t.end for name, t in free.tasks.items()}


@given(drawn_networks())
@settings(max_examples=50)
def test_a_writer_of_one_channel_may_wait_without_anybody_noticing(net: TaskNetwork):
    """At the least depth of such channels, all others being deep enough, the design ends when it always did."""
    free = times(net, bounded=False)
    writers = [writer for writer, _ in net.ends().values()]
    depths = {
        name: channel.least_depth
        if net.channels[name].kind == "stream" and writers.count(net.ends()[name][0]) == 1
        else channel.count
        for name, channel in free.channels.items()
    }
    last = net.tasks[-1].name
    assert times(net.with_depths(depths)).tasks[last].end == free.tasks[last].end


@given(drawn_networks())
@settings(max_examples=50)
def test_shallower_channels_never_help(net: TaskNetwork):
    try:
        bounded = times(net)
    except ProfilingError:
        return
    free = times(net, bounded=False)
    assume(bounded.exact)
    assert bounded.latency >= free.latency
    assert free.latency >= max(free.busy.values())


def test_long_channels_are_sampled_and_say_so(monkeypatch: pytest.MonkeyPatch):
    net = chain(16, 64, 64, 4, 64, 4, 1024)
    whole = times(net)
    monkeypatch.setattr(sampling, "MAX_TOKENS", 64)
    sampled = times(net)
    assert whole.exact
    assert not sampled.exact
    assert sampled.latency == pytest.approx(whole.latency, rel=0.01)


@given(rows=st.integers(2, 60), row=st.integers(8, 40), few=st.integers(4, 32))
@settings(max_examples=30)
def test_too_few_samples_refuse_no_depth_that_suffices(rows: int, row: int, few: int):
    """Depths that just suffice stand in a circle of samples that each wait for a later one; one less still stops.

    Of few rows an uneven sample says less: the end is up to a quarter late then.
    """
    whole = [rows, 2, row]
    nests = [
        nest("fork", [rows, row], [port("a", "write", 0, [rows, row]), port("b", "write", 0, [rows, row])]),
        nest("hold", whole, [
            port("a", "read", 0, whole, [Term(1, "eq", 0)]), port("c", "write", 3, whole, [Term(1, "eq", 1)]),
        ], depth=4),
        nest("join", [rows, row], [port("c", "read", 0, [rows, row]), port("b", "read", 0, [rows, row])]),
    ]  # fmt: skip
    tight = network(nests, {"a": 2, "b": row, "c": 2})
    exact = times(tight).latency
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling, "MAX_TOKENS", few)
        assert times(tight, seen=True).latency == pytest.approx(exact, rel=0.05 if rows > 5 else 0.3)
    with pytest.raises(ProfilingError, match="does not settle"):
        times(tight.with_depths({"b": row - 1}), seen=True)


def test_ends_that_do_not_match_are_named():
    nests = [
        nest("source", [4], [port("c", "write", 0, [4])]),
        nest("sink", [5], [port("c", "read", 0, [5])]),
    ]
    with pytest.raises(ProfilingError, match="4 tokens are written and 5 read") as caught:
        times(network(nests, {"c": 2}))
    assert caught.value.where == "c"


def test_a_deadlock_names_the_channels():
    """The first stage sends its long row one way before it serves the other, which is too shallow to wait."""
    row = [8, 2]
    nests = [
        nest("fork", row, [
            port("a", "write", 0, row, [Term(1, "eq", 0)]), port("b", "write", 0, row, [Term(1, "eq", 1)]),
        ]),
        nest("hold", [8], [port("a", "read", 0, [8]), port("c", "write", 7, [8])], depth=8),
        nest("wait", [2, 8], [
            port("c", "read", 0, [2, 8], [Term(0, "eq", 0)]), port("b", "read", 0, [2, 8], [Term(0, "eq", 1)]),
        ]),
    ]  # fmt: skip
    net = network(nests, {"a": 2, "b": 2, "c": 2})
    with pytest.raises(ProfilingError, match="does not settle") as caught:
        times(net)
    assert "b" in caught.value.where.split(", ")
    with pytest.raises(Stuck):
        step_through(net)
    assert times(net.with_depths({"b": 8})).latency > 0
