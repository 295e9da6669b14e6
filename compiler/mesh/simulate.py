"""A plan on its machine, transfer by transfer: when every round ends, and what every link and core did meanwhile.

Evidence: `simulated`. What is larger than MOST_ROUNDS rounds is run twice, for its first waves, and goes on evenly
from there; such a result says that it is `extended`.
"""

# numpy's and torch's functions have few types
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.jit import Compiled
from penstock.compiler.mesh import engine
from penstock.compiler.mesh.mapping import INSIDE, MeshPlan
from penstock.compiler.mesh.traffic import Floats, Group, Traffic

MOST_ROUNDS = 12_000
_COMPILED_FROM = 400
_ENGINE = Compiled("mesh", ("penstock.compiler.mesh.engine",), "run_rounds")
MeshInts = NDArray[np.int64]


@dataclass(frozen=True)
class MeshRun:
    """`busy`: cycles of every link and then every channel; `cores`: cycles of every core; `rounds`: their ends."""

    cycles: float
    busy: Floats
    cores: Floats
    rounds: Floats
    extended: bool


def simulate_plan(plan: MeshPlan, traffic: Traffic) -> MeshRun:
    each = sum(phase.most for phase in plan.facts.phases)
    most = max(MOST_ROUNDS // each, 4)
    waves = plan.mapping.waves
    if waves <= most:
        return _run(plan, traffic, waves)
    # whole turns of the inner loops, so that both runs end at the same point of a turn
    turn = next((n for n in _turns(plan.mapping.trips) if n * 2 <= most), 1)
    long, short = most // turn * turn, max(most // 2 // turn * turn, turn)
    far, near = _run(plan, traffic, long), _run(plan, traffic, short if short < long else long - turn)
    ahead = (waves - long) / (long - (short if short < long else long - turn))
    return MeshRun(
        far.cycles + ahead * (far.cycles - near.cycles),
        far.busy + ahead * (far.busy - near.busy),
        far.cores + ahead * (far.cores - near.cores),
        far.rounds,
        True,
    )


def _turns(trips: tuple[int, ...]) -> list[int]:
    """Waves in a turn of every loop, the largest first."""
    return [math.prod(trips[at:]) for at in range(1, len(trips) + 1)]


def _run(plan: MeshPlan, traffic: Traffic, waves: int) -> MeshRun:
    machine, facts, mapping = traffic.machine, plan.facts, plan.mapping
    cores, dims = machine.cores, facts.program.grid
    counts = np.zeros((waves, len(facts.phases), len(cores)), np.int64)
    at_wave = _places(mapping.trips, waves)
    for c, core in enumerate(cores):
        if not mapping.works(core):
            continue
        places = {
            dim: at_wave[:, i] * mapping.width(dim) + mapping.offset(dim, core) for i, dim in enumerate(mapping.order)
        }
        there = np.all([place < dims[dim].extent for dim, place in places.items()], axis=0)
        for p, phase in enumerate(facts.phases):
            extent = np.full(waves, phase.extent.const)
            for dim, place in places.items():
                extent = extent + dict(phase.extent.terms).get(dims[dim].counter, 0) * place
            counts[:, p, c] = np.where(there, extent, 0)
    most = counts.max(axis=2)
    wave, phase, within = _rounds(most)
    active = (within[:, None] < counts[wave, phase]).astype(np.int64)
    active[0] = 0  # the round before all others
    rows = [_fetches(plan, i, wave, phase, waves) for i in range(len(facts.loads))]
    issue, issued_for, begins, ends = (
        np.stack([row[k] for row in rows]) if rows else np.zeros((0, len(wave)), np.int64) for k in range(4)
    )
    groups = [traffic.groups(load.share) for load in plan.loads]
    flat = list(itertools.chain.from_iterable(groups))
    stores = traffic.groups(())
    store_begin, store_at, store_cycles = _uses(stores)
    use_begin, use_at, use_cycles = _uses(flat)
    busy, core_busy, ended = np.zeros(traffic.size), np.zeros(len(cores)), np.zeros(len(wave))
    run = _ENGINE.function() if len(wave) * len(flat) > _COMPILED_FROM else engine.run_rounds
    per_load = (len(facts.loads), len(cores))
    cycles = run(
        np.array([facts.phases[p].cycles for p in phase], float),
        np.array([facts.phases[p].stored for p in phase], float), active, issue, issued_for, begins, ends,
        np.array([load.buffers > 1 for load in plan.loads], np.int64),
        np.array([fact.bytes for fact in facts.loads], float),
        _offsets([len(row) for row in groups]), _offsets([len(group.cores) for group in flat]),
        np.array([core for group in flat for core in group.cores], np.int64),
        use_begin, use_at, use_cycles, np.array([group.start for group in flat], float),
        store_begin, store_at, store_cycles, max(group.start for group in stores),
        np.zeros(traffic.size), busy, np.zeros(len(cores)), core_busy, np.zeros(per_load), np.zeros(per_load),
        np.zeros(per_load), np.zeros((len(cores), 2)), ended,
    )  # fmt: skip
    return MeshRun(float(cycles), busy, core_busy, ended, False)


def _places(trips: tuple[int, ...], waves: int) -> MeshInts:
    """Where every loop of the order is in each wave."""
    left, found = np.arange(waves), np.zeros((waves, len(trips)), np.int64)
    for at in range(len(trips) - 1, -1, -1):
        left, found[:, at] = np.divmod(left, trips[at])
    return found


def _rounds(most: MeshInts) -> tuple[MeshInts, MeshInts, MeshInts]:
    """Wave, phase and number within the phase of every round."""
    waves, phases = most.shape
    counts = most.ravel()
    total = int(counts.sum())
    within: MeshInts = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    each_wave: MeshInts = np.arange(waves, dtype=np.int64)
    each_phase: MeshInts = np.arange(phases, dtype=np.int64)
    wave: MeshInts = np.repeat(np.repeat(each_wave, phases), counts)
    phase: MeshInts = np.repeat(np.tile(each_phase, waves), counts)
    # before all rounds stands one of no phase, in which the first tiles are asked for
    return np.append(0, wave), np.append(-1, phase), np.append(0, within)


def _fetches(
    plan: MeshPlan, at: int, wave: MeshInts, phase: MeshInts, waves: int
) -> tuple[MeshInts, MeshInts, MeshInts, MeshInts]:
    """For a load, in every round: how many tiles are asked for, for which round, and whether its tiles begin or end."""
    fact, load = plan.facts.loads[at], plan.loads[at]
    size = len(wave)
    issue, issued_for, begins, ends = (np.zeros(size, np.int64) for _ in range(4))
    used = np.flatnonzero(phase == fact.phase)
    if not len(used):
        return issue, issued_for, begins, ends
    if load.level == INSIDE:
        first = last = used
    else:
        turn = wave[used] // math.prod(plan.mapping.trips[load.level :])
        new = np.flatnonzero(np.diff(turn, prepend=-1))
        first, last = used[new], used[np.append(new[1:] - 1, len(used) - 1)]
    begins[first], ends[last] = 1, 1
    tiles = plan.tiles(at)
    issue[0], issued_for[0] = tiles, first[0]
    if load.buffers == 1:  # nothing is ahead: all of it at once
        issue[first[1:]], issued_for[first[1:]] = tiles, first[1:]
    elif len(first) > 1:
        # a tile after the other, while the tiles before them are in use
        events, part = np.repeat(np.arange(1, len(first)), tiles), np.tile(np.arange(tiles), len(first) - 1)
        when = first[events - 1] + part * (first[events] - first[events - 1]) // tiles
        np.add.at(issue, when, 1)
        issued_for[when] = first[events]
    return issue, issued_for, begins, ends


def _offsets(sizes: list[int]) -> MeshInts:
    return np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]).astype(np.int64)


def _uses(groups: list[Group]) -> tuple[MeshInts, MeshInts, Floats]:
    begin = _offsets([len(group.occupied) for group in groups])
    at = np.array([link for group in groups for link, _ in group.occupied], np.int64)
    return begin, at, np.array([cycles for group in groups for _, cycles in group.occupied], float)
