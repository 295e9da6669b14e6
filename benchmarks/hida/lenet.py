"""LeNet within what HIDA's LeNet takes of a PYNQ-Z2 (its table 2): our search, and a walk through a space like theirs.

The paper's device, an XC7Z020, has no operator tables here. A ZU3EG limited to the same share of an XC7Z020's counts
stands for it: the same LUTs with six inputs and block RAMs of 18 kbit; products are one to a DSP slice, since two of
eight bits do not fit the XC7Z020's 25 x 18 bits, or of LUTs. The paper gives no clock; 100 MHz is the board's usual
one, and with it HIDA's 53,200 frames a second are 1.06 products a cycle and DSP. Its table of factors is not readable,
nor is what its network computes beyond six layers: ours is `zoo:lenet5`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, prod

from benchmarks.hida.published import TABLE_2
from benchmarks.registry import Value
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.lanes.binding import MULTIPLIERS
from penstock.dse.rungs import Bench
from penstock.dse.rungs.ranking import measure_all
from penstock.dse.search.explore import explore
from penstock.dse.space.orders import follow_producer

MODEL, PLATFORM, CLOCK_MHZ, QUANTISED = "zoo:lenet5", "zu3eg", 100.0, "w8a8"
XC7Z020 = {"lut": 53_200, "ff": 106_400, "dsp": 220, "bram18": 280}
SHARE_PCT = TABLE_2["HIDA"].resources_pct
UNPAIRED = ("dsp", "fabric")
"""Multipliers of DSPs, one to a slice, or of LUTs."""
FACTORS: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
    ("0", (0,), (1, 2, 3, 6)),
    ("0", (3, 4), (1, 5, 25)),
    ("3", (0,), (1, 2, 4, 8, 16)),
    ("3", (3,), (1, 2, 3, 6)),
    ("3", (4, 5), (1, 5, 25)),
    ("7", (0,), (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 24, 30, 40, 60, 120)),
    ("9", (0,), (1, 2, 3)),
)
"""A layer, its loops, and the lanes along them: 34,560 designs, where HIDA's authors had more than 24,000."""
Row = Mapping[str, Value]


def limits() -> list[str]:
    """What HIDA's design takes, of each resource the same share."""
    return [f"{name}<={int(count * SHARE_PCT / 100)}" for name, count in XC7Z020.items()]


def evaluator(program: Program) -> Evaluator:
    goal = Goal.of(("throughput",), limits())
    return Evaluator.create(program, PLATFORM, clock_mhz=CLOCK_MHZ, quantize=QUANTISED, goal=goal)


def searched() -> Row:
    """The better of what the search finds with each kind of multipliers, all else left to it, from PyTorch on."""
    began, cpu_began = time.perf_counter(), time.process_time()
    found = evaluator(prepare(import_model(MODEL), QUANTISED))
    searches = {kind: explore(found, fixed=[f"{MULTIPLIERS}={kind}"]) for kind in UNPAIRED}
    kind, explored = min(searches.items(), key=lambda item: item[1].best.evaluation.values)
    row = _row("lenet/search", found, explored.best.evaluation, began, cpu_began)
    modelled = sum(one.modelled for one in searches.values())
    tried = sum(len(one.tried) for one in searches.values())
    of_dsp = searches[UNPAIRED[0]].best.evaluation.figures.interval
    return {
        **row, "multipliers": kind, "modelled_interval_cycles_of_dsp": of_dsp,
        "designs": modelled + tried, "modelled": modelled,
    }  # fmt: skip


def walked() -> Row:
    """The best of all designs of `FACTORS`. One that could not be faster than the best so far is not modelled."""
    began, cpu_began = time.perf_counter(), time.process_time()
    found = evaluator(prepare(import_model(MODEL), QUANTISED))
    base = found.space.design({**found.space.default_params(), MULTIPLIERS: UNPAIRED[0]})
    best: Evaluation | None = None
    modelled = total = 0
    waiting: list[tuple[int, Factors]] = []
    for factors in all_factors():
        total += 1
        if factors.products(base) <= found.may_use.dsp:  # a product a slice: others do not fit
            waiting.append((factors.least_cycles(found, base), factors))
    for least, factors in sorted(waiting, key=lambda one: one[0]):
        if best is not None and least >= best.figures.interval:
            break
        one = found.evaluate_design(factors.design(found, base))
        modelled += 1
        if one.feasible and (best is None or one.figures.interval < best.figures.interval):
            best = one
    if best is None:
        raise AssertionError("a design of one lane each fits")
    return {**_row("lenet/walk", found, best, began, cpu_began), "designs": total, "modelled": modelled}


@dataclass(frozen=True)
class Factors:
    """One point: the lanes of each entry of `FACTORS`."""

    lanes: tuple[int, ...]

    def unroll(self, layer: str, kernel: KernelDesign) -> tuple[int, ...]:
        lanes = [1] * len(kernel.unroll)
        for (name, loops, _), count in zip(FACTORS, self.lanes, strict=True):
            if name == layer:
                for loop in reversed(loops):  # a window's places along its rows first
                    lanes[loop] = _SIDE if len(loops) > 1 and count > 1 else count
                    count = ceil(count / lanes[loop])
        return tuple(lanes)

    def products(self, base: Design) -> int:
        return sum(prod(self.unroll(layer, base.kernels[layer])) for layer in _LAYERS)

    def least_cycles(self, found: Evaluator, base: Design) -> int:
        """No design of these lanes takes fewer."""
        layers = found.space.graph.by_layer
        return max(layers[layer].work // prod(self.unroll(layer, base.kernels[layer])) for layer in _LAYERS)

    def design(self, found: Evaluator, base: Design) -> Design:
        kernels: dict[str, KernelDesign] = {}
        graph = found.space.graph
        for op in graph.operations:
            kernel = base.kernels[op.layer]
            if op.layer in _LAYERS:
                unroll = self.unroll(op.layer, kernel)
                tile = tuple(max(t, u) if n % max(t, u) == 0 and max(t, u) % u == 0 else n
                             for t, u, n in zip(kernel.tile, unroll, op.trips, strict=True))  # fmt: skip
                kernel = replace(kernel, unroll=unroll, tile=tile)
            elif not op.reductions:
                kernel = follow_producer(graph, op, kernel, kernels, (0,) * len(op.trips), connect=False)
            kernels[op.layer] = kernel
        return replace(base, kernels=kernels)


_SIDE = 5
_LAYERS = tuple(dict.fromkeys(layer for layer, _, _ in FACTORS))


def all_factors() -> Iterator[Factors]:
    return (Factors(lanes) for lanes in product(*(choices for _, _, choices in FACTORS)))


def _row(name: str, found: Evaluator, best: Evaluation, began: float, cpu_began: float) -> Row:
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu_began
    (measured,) = measure_all(found, [best], "simulated", Bench())
    if measured.measured is None:
        raise measured.error or AssertionError(measured.failure)
    interval = measured.measured.times.interval or best.figures.interval
    frames = CLOCK_MHZ * 1e6 / interval
    used = best.figures.resources.as_dict()
    share = max((used[name] / count, name) for name, count in XC7Z020.items())
    print(f"hida: {name}: {frames:.0f} frames/s, {cpu:.0f} s of the processor", file=sys.stderr, flush=True)
    return {
        "name": name, "part": "lenet", "frames_a_second": round(frames, 1), "interval_cycles": interval,
        "modelled_interval_cycles": best.figures.interval, **{name: used[name] for name in XC7Z020},
        "share_pct": round(100 * share[0], 1), "share_of": share[1], "fits": best.feasible,
        "search_s": round(wall, 1), "search_cpu_s": round(cpu, 1), "evidence": "simulated",
    }  # fmt: skip
