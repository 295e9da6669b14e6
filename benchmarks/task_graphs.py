"""Graphs of tasks to be placed: drawn at random from a seed, of the shapes that designs have."""

from __future__ import annotations

import random

from penstock.compiler.platforms import Resources
from penstock.dse.partition import PlacedThing, PlacementGraph, Wires

SHAPES = ("chain", "diamonds", "residual", "wide", "random")
WIDTHS = (8, 16, 32, 64, 128, 256, 512)


def random_graph(shape: str, tasks: int, seed: int, fullness: int = 1) -> PlacementGraph:
    """`fullness` scales what each task needs."""
    draw = random.Random(f"{shape}/{tasks}/{seed}")
    things = [
        PlacedThing(
            f"t{i}",
            Resources(
                lut=draw.randint(2000, 24000) * fullness, ff=draw.randint(2000, 30000) * fullness,
                dsp=draw.randint(0, 160) * fullness, bram18=draw.randint(0, 50) * fullness,
                uram=draw.choice((0, 0, 8)) * fullness,
            ),
        )
        for i in range(tasks)
    ]  # fmt: skip
    pairs = sorted({(s, t) for t in range(1, tasks) for s in _sources(shape, t, draw)})
    wires = [Wires(f"c{s}_{t}", f"t{s}", f"t{t}", draw.choice(WIDTHS) + 2) for s, t in pairs]
    return PlacementGraph(tuple(things), tuple(wires))


def _sources(shape: str, task: int, draw: random.Random) -> list[int]:
    match shape:
        case "chain":
            return [task - 1]
        case "diamonds":  # fork, two sides, join, and so on
            return {1: [task - 1], 2: [task - 2], 0: [task - 2, task - 1]}[task % 3]
        case "residual":
            return [task - 1, task - 4] if task % 4 == 0 else [task - 1]
        case "wide":  # several parallel chains from one source into one sink
            return [max(0, task - 4)]
        case _:
            return draw.sample(range(max(0, task - 8), task), min(task, draw.randint(1, 2)))
