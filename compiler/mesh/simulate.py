"""A plan on its machine, transfer by transfer: when it ends, and what every link and core did meanwhile.

Evidence: `simulated`. Turns of a loop that repeat exactly are counted. A plan of which more than MOST_ROUNDS rounds do
not repeat goes on from there at the pace of the latter half; such a result says that it is `extended`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from penstock.compiler.jit import Compiled, Ints
from penstock.compiler.mesh import engine
from penstock.compiler.mesh.mapping import INSIDE, MeshPlan
from penstock.compiler.mesh.traffic import Floats, Group, Traffic

MOST_ROUNDS = 200_000
MOST_TRACED, BINS = 20_000, 48
_ENGINE = Compiled(
    "mesh", ("penstock.compiler.mesh.engine",), "run_waves",
    before_loading=40_000, before_compiling=750_000,  # tiles moved, by all groups of links
)  # fmt: skip


@dataclass(frozen=True)
class MeshRun:
    """`busy`: cycles of every link and then every channel; `cores`: cycles of every core."""

    cycles: float
    busy: Floats
    cores: Floats
    extended: bool


def simulate_plan(plan: MeshPlan, traffic: Traffic, most_rounds: int = MOST_ROUNDS) -> MeshRun:
    return _simulated(plan, traffic, most_rounds, _periods(plan), 0.0, np.zeros((1, 1)))


def over_time(plan: MeshPlan, traffic: Traffic, run: MeshRun) -> tuple[Floats, float]:
    """By core, how much of each of BINS equal parts of the time it computes; of a long run the first part."""
    rounds = plan.mapping.waves * sum(phase.most for phase in plan.facts.phases)
    end = run.cycles * min(1.0, MOST_TRACED / max(rounds, 1))
    width, bins = end / BINS, np.zeros((len(traffic.machine.cores), BINS))
    _simulated(plan, traffic, MOST_TRACED, [0] * len(plan.mapping.order), width, bins)
    return bins / width, end


def _simulated(
    plan: MeshPlan, traffic: Traffic, most_rounds: int, periods: list[int], bin_width: float, bins: Floats
) -> MeshRun:
    facts, mapping, cores = plan.facts, plan.mapping, traffic.machine.cores
    grid, order, count = facts.program.grid, mapping.order, len(facts.loads)
    loops = np.array(
        [mapping.trips, [mapping.width(d) for d in order], [grid[d].extent for d in order]], np.int64
    ).reshape(3, len(order))  # fmt: skip
    places = np.array(
        [[*(mapping.offset(d, core) for d in order), mapping.works(core)] for core in cores], np.int64
    )  # fmt: skip
    by = np.array([[dict(phase.extent.terms).get(grid[d].counter, 0) for d in order] for phase in facts.phases])
    groups = [traffic.groups(load.share) for load in plan.loads]
    flat = list(itertools.chain.from_iterable(groups))
    stores = traffic.groups(())
    sizes = (traffic.size, len(cores), count * len(cores), count * len(cores), count * len(cores), 2 * len(cores))
    times, tally = np.zeros(sum(sizes)), np.zeros(traffic.size + len(cores))
    free, core_end, *held, stores_end = np.split(times, np.cumsum(sizes)[:-1])
    busy, core_busy = np.split(tally, [traffic.size])
    turns, marks = (len(order), engine.SAVED), np.zeros(4)
    rounds = mapping.waves * sum(phase.most for phase in facts.phases)
    run: Callable[..., float] = _ENGINE.function() if _ENGINE.pays(rounds * len(flat)) else engine.run_waves
    cycles = run(
        mapping.waves, loops, places, np.array(periods, np.int64), most_rounds,
        np.array([phase.extent.const for phase in facts.phases], np.int64), by.astype(np.int64),
        np.array([phase.cycles for phase in facts.phases], float),
        np.array([phase.stored for phase in facts.phases], float),
        np.array([fact.phase for fact in facts.loads], np.int64),
        np.array([0 if load.level == INSIDE else math.prod(mapping.trips[load.level :]) for load in plan.loads]),
        np.array([plan.tiles(at) for at in range(count)], np.int64),
        np.array([load.buffers > 1 for load in plan.loads], np.int64),
        np.array([fact.bytes for fact in facts.loads], float),
        _offsets([len(row) for row in groups]), _offsets([len(group.cores) for group in flat]),
        np.array([core for group in flat for core in group.cores], np.int64),
        *_uses(flat), np.array([group.start for group in flat], float),
        *_uses(stores), max(group.start for group in stores),
        times, free, core_end, *(part.reshape(count, len(cores)) for part in held), stores_end.reshape(-1, 2),
        busy, core_busy, tally,
        np.zeros((*turns, len(times))), np.zeros((*turns, len(tally))), np.zeros(turns, np.int64),
        np.zeros((len(facts.phases), len(cores)), np.int64), np.zeros(len(cores), np.int64),
        np.zeros(len(facts.phases), np.int64), marks, bin_width, bins,
    )  # fmt: skip
    wave, end, half, at_half = marks
    left = mapping.waves - wave
    if not left:
        return MeshRun(float(cycles), busy, core_busy, False)
    pace = (end - at_half) / (wave - half) if wave > half else end / max(wave, 1)
    return MeshRun(
        float(end + left * pace), busy * (mapping.waves / wave), core_busy * (mapping.waves / wave), True
    )  # fmt: skip


def _periods(plan: MeshPlan) -> list[int]:
    """After how many turns of each loop the same is asked for again; 0 where that never is so."""
    mapping, facts = plan.mapping, plan.facts
    found: list[int] = []
    for level, (dim, trip) in enumerate(zip(mapping.order, mapping.trips, strict=True)):
        period = 1
        for at, load in enumerate(plan.loads):
            if load.buffers > 1 and 0 <= load.level <= level:
                turns = math.prod(mapping.trips[load.level : level + 1])
                period = math.lcm(period, turns // math.gcd(turns, plan.tiles(at)))
        counter = facts.program.grid[dim].counter
        differs = any(counter in dict(phase.extent.terms) for phase in facts.phases)
        found.append(0 if differs or trip < 2 * period + 3 else period)
    return found


def _offsets(sizes: list[int]) -> Ints:
    return np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)


def _uses(groups: list[Group]) -> tuple[Ints, Ints, Floats]:
    begin = _offsets([len(group.occupied) for group in groups])
    at = np.array([link for group in groups for link, _ in group.occupied], np.int64)
    return begin, at, np.array([cycles for group in groups for _, cycles in group.occupied], float)
