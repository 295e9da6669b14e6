"""ResNet-18 over parallel factors and tiles (HIDA's figure 10), and with lanes by work, by neighbours, by both and by
neither (its figure 11).

The parallel factor is how many lanes the busiest kernel gets, the tile how large each dim's is at most. Tiles of ours
are of channels: frames pass place by place, whatever the tile is. Every point is a setting of the space with
`allocation=aligned`, modelled; a few are simulated too, several frames in a row.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from benchmarks.registry import Value
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.rungs import Bench
from penstock.dse.rungs.ranking import measure_all
from penstock.dse.space.aligned_by import AlignedBy
from penstock.dse.space.options import TilingOptions

MODEL, PLATFORM, QUANTISED = "zoo:resnet18", "vu9p-slr", "w8a8"
FACTORS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
TILES = (2, 4, 8, 16, 32)
BY: tuple[AlignedBy, ...] = ("both", "intensity", "connection", "neither")
NAMED: Mapping[AlignedBy, str] = {"both": "IA+CA", "intensity": "IA", "connection": "CA", "neither": "naive"}
SIMULATED = {(64, 32), (256, 32)}
"""Parallel factors and tiles of figure 10 that are simulated too: a minute of a processor each."""
BRAM_BITS, URAM_BITS = 18 * 1024, 288 * 1024
Row = Mapping[str, Value]


@dataclass(frozen=True)
class Point:
    factor: int
    tile: int
    by: AlignedBy

    @property
    def name(self) -> str:
        return f"resnet18/{NAMED[self.by].lower()}/{self.factor}x{self.tile}"

    @property
    def in_figure_10(self) -> bool:
        return self.by == "both"

    @property
    def in_figure_11(self) -> bool:
        return self.tile == TILES[-1]


def points() -> Iterator[Point]:
    """All of figure 10, then what figure 11 has beside them: the other three ways, with the largest tile."""
    yield from (Point(factor, tile, "both") for tile in TILES for factor in FACTORS)
    yield from (Point(factor, TILES[-1], by) for by in BY[1:] for factor in FACTORS)


@cache
def _program() -> Program:
    return prepare(import_model(MODEL), QUANTISED)


def evaluator(program: Program, point: Point) -> Evaluator:
    """The space that a point is a setting of."""
    options = TilingOptions(aligned_by=point.by, parallel_factor=point.factor, smallest_tile=TILES[0])
    return Evaluator.create(program, PLATFORM, quantize=QUANTISED, goal=Goal.of(("throughput",), []), options=options)


def row(point: Point) -> Row:
    """One point; `simulated_...` is null where it was not."""
    began = time.process_time()
    found = evaluator(_program(), point)
    best = found.assume({"allocation": "aligned", "default_tile_size": point.tile})
    used, interval = best.figures.resources, best.figures.interval
    print(f"hida: {point.name}: {interval} cycles a frame", file=sys.stderr, flush=True)
    simulated: int | None = None
    if point.in_figure_10 and (point.factor, point.tile) in SIMULATED:
        (one,) = measure_all(found, [best], "simulated", Bench())
        simulated = None if one.measured is None else one.measured.times.interval
    return {
        "name": point.name, "part": "resnet18", "parallel_factor": point.factor, "tile": point.tile,
        "aligned_by": NAMED[point.by], "interval_cycles": interval,
        "frames_a_second": round(found.clock_mhz * 1e6 / interval, 3), "dsp": used.dsp, "lut": used.lut,
        "bram18": used.bram18, "uram": used.uram, "on_chip_bits": used.bram18 * BRAM_BITS + used.uram * URAM_BITS,
        "most_lanes": max(kernel.lanes for kernel in best.design.kernels.values()),
        "fits": best.feasible, "simulated_interval_cycles": simulated,
        "cpu_s": round(time.process_time() - began, 1), "evidence": "modelled",
    }  # fmt: skip
