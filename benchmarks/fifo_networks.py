"""Networks of pipelined nests for sizing: chains, paths that meet again, burst readers, random graphs.

Tokens of every edge match by construction: all nests walk the same blocks, rows and columns, with a loop of their
own somewhere in between, and an edge carries a token for each column, each row or each block.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Literal

from penstock.compiler.schedule import PatternLevel, TokenPattern
from penstock.compiler.simulator import Channel, ChannelAccess, Network, Phase, SimulatedProcess

Grain = Literal["column", "row", "block"]
WIDTHS = (8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Walk:
    """How a process walks: `extra` rounds of its own, `inside` or around the columns of a row."""

    extra: int = 1
    around: bool = False
    ii: int = 1
    depth: int = 4


@dataclass(frozen=True)
class Wire:
    """An edge. The writer writes in the last of its rounds, the reader reads in the first."""

    source: int
    target: int
    bits: int = 32
    grain: Grain = "column"


def build(
    name: str, shape: tuple[int, int, int], walks: Sequence[Walk], wires: Sequence[Wire], depth: int = 2
) -> Network:
    """A network over `shape` = blocks, rows, columns."""
    accesses: dict[int, list[ChannelAccess]] = {i: [] for i in range(len(walks))}
    channels: list[Channel] = []
    for number, wire in enumerate(wires):
        channel = f"c{number}_{wire.source}_{wire.target}"
        channels.append(Channel(channel, "fifo", depth, wire.bits))
        accesses[wire.source].append(_access(channel, "write", shape, walks[wire.source], wire.grain))
        accesses[wire.target].append(_access(channel, "read", shape, walks[wire.target], wire.grain))
    processes = [
        SimulatedProcess(f"p{i}", (Phase(_trips(shape, walk), walk.ii, walk.depth, tuple(accesses[i])),))
        for i, walk in enumerate(walks)
    ]
    return Network(name, tuple(processes), tuple(channels))


def _trips(shape: tuple[int, int, int], walk: Walk) -> tuple[int, ...]:
    blocks, rows, columns = shape
    return (blocks, rows, walk.extra, columns) if walk.around else (blocks, rows, columns, walk.extra)


def _access(
    channel: str, direction: Literal["read", "write"], shape: tuple[int, int, int], walk: Walk, grain: Grain
) -> ChannelAccess:
    """One token a column, row or block: at the first occasion for a reader, at the last for a writer."""
    trips = _trips(shape, walk)
    own, column = (2, 3) if walk.around else (3, 2)
    held = {"column": [own], "row": [own, column], "block": [own, column, 1]}[grain]
    only = {loop: trips[loop] - 1 if direction == "write" else 0 for loop in held}
    return ChannelAccess(channel, direction, pattern(trips, only))


def pattern(trips: Sequence[int], only: Mapping[int, int]) -> TokenPattern:
    """The iterations in which some loops have one certain counter."""
    levels: list[PatternLevel] = []
    for loop, trip in enumerate(trips):
        runs = ((only[loop], 1),) if loop in only else ((0, trip),)
        levels.append(PatternLevel(runs, prod(trips[loop + 1 :])))
    return TokenPattern(tuple(levels))


def chain(length: int, seed: int, *, bursts: bool = False) -> Network:
    """Every process feeds the next; with `bursts`, every other one reads rows at once and then works on them."""
    draw = random.Random(f"chain/{length}/{seed}/{bursts}")
    walks = [
        Walk(draw.choice((2, 3, 4)), True, 1, draw.randint(2, 12))
        if bursts and i % 2
        else Walk(draw.choice((1, 2, 3)), False, 1, draw.randint(2, 12))
        for i in range(length)
    ]
    wires = [Wire(i, i + 1, draw.choice(WIDTHS)) for i in range(length - 1)]
    kind = "bursts" if bursts else "chain"
    return build(f"{kind}-{length}-{seed}", (2, 4, draw.choice((6, 8))), walks, wires)


def diamond(long: int, short: int, seed: int) -> Network:
    """A fork, two paths of different length, and a join that needs both."""
    draw = random.Random(f"diamond/{long}/{short}/{seed}")
    join = 1 + long + short
    walks = [Walk(1, False, 1, draw.randint(2, 20)) for _ in range(join + 1)]
    sides = [list(range(1, 1 + long)), list(range(1 + long, join))]
    wires: list[Wire] = []
    for side in sides:
        path = [0, *side, join]
        wires += [Wire(a, b, draw.choice(WIDTHS)) for a, b in pairwise(path)]
    return build(f"diamond-{long}-{short}-{seed}", (2, 4, 8), walks, wires)


def attention(seed: int) -> Network:
    """A reader that needs a whole block before it can go on, beside a path that runs on: room for a block."""
    draw = random.Random(f"attention/{seed}")
    walks = [
        Walk(1, False, 1, 6), Walk(2, True, 1, draw.randint(4, 12)), Walk(1, False, 1, draw.randint(4, 20)),
        Walk(draw.choice((1, 2)), True, 1, 8), Walk(1, False, 1, 4),
    ]  # fmt: skip
    wires = [
        Wire(0, 1, draw.choice(WIDTHS)), Wire(0, 2, draw.choice(WIDTHS)), Wire(1, 3, draw.choice(WIDTHS), "row"),
        Wire(2, 3, draw.choice(WIDTHS)), Wire(3, 4, draw.choice(WIDTHS), draw.choice(("row", "column"))),
    ]  # fmt: skip
    return build(f"attention-{seed}", (2, 3, draw.choice((4, 6))), walks, wires)


def random_network(edges: int, seed: int, shape: tuple[int, int, int] = (2, 4, 4)) -> Network:
    """A random graph without cycles: some two processes for three edges, all of them connected."""
    draw = random.Random(f"random/{edges}/{seed}")
    count = max(2, min(edges + 1, 1 + 2 * edges // 3))
    walks = [
        Walk(draw.choice((1, 1, 1, 2, 3)), draw.random() < 0.5, draw.choice((1, 1, 1, 2)), draw.randint(1, 12))
        for _ in range(count)
    ]
    grains: Mapping[int, Grain] = {0: "row", 1: "block"}
    pairs = [(draw.randrange(max(0, i - 6), i), i) for i in range(1, count)]
    while len(pairs) < edges:
        target = draw.randrange(1, count)
        pairs.append((draw.randrange(max(0, target - 8), target), target))
    wires = [Wire(a, b, draw.choice(WIDTHS), grains.get(draw.randrange(8), "column")) for a, b in pairs]
    return build(f"random-{edges}-{seed}", shape, walks, wires)
