"""Networks for tests: small ones by hand, and random ones from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from penstock.compiler.simulator import Channel, ChannelAccess, Network, Phase, SimulatedProcess
from penstock.compiler.simulator.network import Direction
from penstock.profiling.networks.guards import Guard, pattern_of


def access(
    channel: str,
    direction: Direction,
    trips: Sequence[int],
    terms: Sequence[Guard] = (),
    stage: int | None = None,
    count: int = 1,
    hold: int = 0,
) -> ChannelAccess:
    return ChannelAccess(channel, direction, pattern_of(trips, terms), stage, count, hold)


def two_kernels() -> Network:
    """StreamTensor's example: a token a cycle from cycle 5 on, taken every second cycle."""
    source = Phase((5,), 1, 5, (access("fifo", "write", (5,)),))
    target = Phase((5,), 2, 2, (access("fifo", "read", (5,), stage=0),))
    processes = (SimulatedProcess("source", (source,)), SimulatedProcess("target", (target,)))
    return Network("two kernels", processes, (Channel("fifo", depth=5),))


def draw_network(seed: int, times: int = 1) -> Network:
    """Chains with short cuts, sometimes a way back; guards, IIs, depths, stages, counts, phases, blocks, pipos.

    `times` as many rows make it longer.
    """
    random = Random(seed)
    rows, words = random.choice([(2, 2), (2, 4), (3, 4), (4, 2), (2, 6), (2, 24)])
    rows *= times
    count = random.randint(2, 5)
    edges = [(i, i + 1) for i in range(count - 1)]
    edges += [edge for edge in ((0, 2), (1, 3), (0, 3), (2, 4)) if edge[1] < count and random.random() < 0.35]
    if random.random() < 0.1:
        edges.append((count - 1, 0))
    channels = [_channel(random, a, b) for a, b in edges]
    processes: list[SimulatedProcess] = []
    for i in range(count):
        mine = [(c, a == i) for c, (a, b) in zip(channels, edges, strict=True) if i in (a, b) and c.kind != "pipo"]
        phases = random.choice([1, 1, 1, 2]) if rows > 1 else 1
        parts = [rows] if phases == 1 else [1, rows - 1]
        processes.append(SimulatedProcess(f"p{i}", tuple(_phase(random, part, words, mine) for part in parts)))
    return Network(f"random {seed}", tuple(processes), tuple(channels))


def _channel(random: Random, a: int, b: int) -> Channel:
    kind = random.choices(["fifo", "block", "pipo"], [8, 2, 1])[0]
    ends = ((f"p{a}",), (f"p{b}",)) if kind == "pipo" else ((), ())
    return Channel(f"c{a}{b}", kind, random.randint(1, 4), 8, 1, *ends)  # type: ignore[arg-type]


def _phase(random: Random, rows: int, words: int, met: Sequence[tuple[Channel, bool]]) -> Phase:
    """`rows` blocks of `words` tokens pass through every channel; more iterations than tokens, in many ways."""
    extra = random.randint(1, 3)
    shape = random.choice(["inside", "outside", "longer"])
    doubled = shape == "inside" and words % 2 == 0 and random.random() < 0.3
    trips = {
        "inside": (rows, words // 2 if doubled else words, extra),
        "outside": (rows, extra, words),
        "longer": (rows, words + extra, 1),
    }[shape]
    depth = random.randint(1, 7)
    accesses: list[ChannelAccess] = []
    for channel, writes in met:
        stage = random.choice([None, None, random.randrange(depth)])
        direction: Direction = "write" if writes else "read"
        if channel.kind == "block":
            first = [Guard(1, "==", 0), Guard(2, "==", 0)]
            accesses.append(access(channel.name, direction, trips, first, stage, 1, trips[1] * trips[2] - 1))
        else:
            terms = _terms(random, shape, extra, words)
            accesses.append(access(channel.name, direction, trips, terms, stage, 2 if doubled else 1))
    return Phase(trips, random.randint(1, 3), depth, tuple(accesses))


def _terms(random: Random, shape: str, extra: int, words: int) -> list[Guard]:
    """Guards that let exactly `words` tokens a row pass."""
    if shape == "longer":
        choices = [Guard(1, ">=", extra), Guard(1, "<=", words - 1)]
        if extra == 1:
            choices.append(Guard(1, "!=", random.randrange(words + 1)))
        if extra == words:
            choices.append(Guard(1, "mod", random.randrange(2), 2))
        return [random.choice(choices)]
    return [Guard(2 if shape == "inside" else 1, "==", random.choice([0, extra - 1]))]
