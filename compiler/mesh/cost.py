"""What plans take by closed form: a model of ours for many at once, the paper's, traffic outside, the bound.

Ours follows the simulator: what is fetched one round ahead must come within a round, in which hoisted tiles and results
of the instance before may stand in its way; links serve in turns; at the edges of a grid some cores rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.jit import Ints
from penstock.compiler.mesh.facts import ProgramFacts
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan, Mapping, MeshPlan, events_at, tiles_at, waves_between
from penstock.compiler.mesh.traffic import Floats, MeshShare, Traffic


@dataclass(frozen=True)
class WaveKind:
    """Waves at which the same cores work; `loads`: cycles a byte by share, of the links that may be the busiest."""

    waves: int
    loads: Floats
    rounds: Floats
    """Of every phase, on average."""


@dataclass(frozen=True)
class MappingCost:
    """All plans of one mapping. `shares`: how their loads may be shared, the empty one first."""

    facts: ProgramFacts
    mapping: Mapping
    traffic: Traffic
    shares: tuple[MeshShare, ...]

    @cached_property
    def kinds(self) -> list[WaveKind]:
        """Full waves, and those at the edges of the grid."""
        found: list[WaveKind] = []
        for waves, active, rounds in self.mapping.kinds(self.facts):
            loads = self.traffic.worst(self.shares, active)
            found.append(WaveKind(waves, loads, np.array(rounds)))
        return found

    @cached_property
    def compute(self) -> Floats:
        return np.array([phase.cycles for phase in self.facts.phases])

    @cached_property
    def stored(self) -> list[float]:
        """Bytes that a core stores in a wave of each kind."""
        sizes = np.array([phase.stored for phase in self.facts.phases], float)
        return [float(kind.rounds @ sizes) for kind in self.kinds]

    def arithmetic(self) -> float:
        return sum(kind.waves * float(kind.rounds @ self.compute) for kind in self.kinds)

    def carried(self, at: int, load: LoadPlan) -> list[Floats]:
        """Cycles that a load keeps every link busy in a wave of each kind."""
        share, fact = self.shares.index(load.share), self.facts.loads[at]
        once = tiles_at(self.facts, self.mapping, fact, load.level) * fact.bytes
        if load.level == INSIDE:
            return [kind.loads[share] * (once * kind.rounds[fact.phase]) for kind in self.kinds]
        return [kind.loads[share] * (once / waves_between(self.mapping, load.level)) for kind in self.kinds]

    def least(self, carried: Sequence[Floats]) -> Floats:
        """What no plan that carries so much is below: its arithmetic, or its busiest link, in every kind of wave."""
        found = np.zeros(len(carried[0]))
        for kind, stored, there in zip(self.kinds, self.stored, carried, strict=True):
            busiest = (there + kind.loads[0] * stored).max(axis=1)
            found += kind.waves * np.maximum(busiest, kind.rounds @ self.compute)
        return found

    def cycles(self, table: Sequence[Sequence[LoadPlan]], picks: Ints) -> Floats:
        """Of plans whose loads are `table[load][picks[plan, load]]`."""
        size, count = len(picks), len(table)
        facts = np.zeros((size, count, 6))
        for at, choices in enumerate(table):
            facts[:, at] = np.array([self._column(at, load) for load in choices])[picks[:, at]]
        share, inside, ahead, tiles, waves, events = (facts[:, :, i] for i in range(6))
        sizes = np.array([fact.bytes for fact in self.facts.loads], float)
        phase_of = np.array([fact.phase for fact in self.facts.loads], int)
        at_share = share.astype(int)
        starts = np.array([self.traffic.start(one) for one in self.shares])[at_share]
        inside, ahead = inside > 0, ahead > 0
        hoisted = ~inside & ahead & (events > 1)
        exposed = ~inside & ~ahead & (events > 1)
        any_inside = inside.any(axis=1)
        full = self.kinds[0].loads
        first = (full[at_share] * (tiles * sizes)[:, :, None]).sum(axis=1).max(axis=1) + starts.max(axis=1, initial=0)
        last = self.traffic.start(()) + full[0].max() * self.stored[0]
        total, idle = first + last, np.zeros(size)
        for kind, stored in zip(self.kinds, self.stored, strict=True):
            each = kind.loads[at_share] * sizes[None, :, None]
            out = kind.loads[0] * stored
            busy = kind.rounds @ self.compute
            steps = max(float(kind.rounds.sum()), 1.0)
            wave = np.full(size, busy)
            # results of the wave before stand before the next fetch, unless a load that is waited for comes in between
            behind = np.where((exposed & (waves == 1)).any(axis=1), 0.0, 1.0)
            for p, compute in enumerate(self.compute):
                here = inside & (phase_of == p)
                rows = here.any(axis=1)
                if not rows.any():
                    continue
                base = (each * here[:, :, None]).sum(axis=1)
                start = np.where(here, starts, 0.0).max(axis=1)
                rate = np.where(hoisted, tiles / waves / steps, 0.0)
                last_here: Ints = np.where(here, np.arange(count), -1).max(axis=1)
                late = np.arange(count) > last_here[:, None]
                mean = _mixed_round(float(compute), base, start, rate, each, events, late)
                with_one: Floats = base + (each * (hoisted & ~late & (tiles >= waves))[:, :, None]).sum(axis=1)
                stall = _alone(float(compute), with_one + out, start) - _alone(float(compute), with_one, start)
                rounds = float(kind.rounds[p])
                own = rounds * (mean - compute) + stall * behind * (1 - 1 / self.mapping.waves)
                wave += np.where(rows, own, 0.0)
                behind = np.where(rows, 0.0, behind)
                if kind is self.kinds[0]:
                    idle = np.where(rows, _round(float(compute), base, start) - compute, 0.0)
            # nothing is fetched round by round: it must come within the shortest turn of a hoisted load
            unit = np.where(hoisted, waves, np.inf).min(axis=1, initial=np.inf)
            none = np.isinf(unit)
            unit = np.where(none, 1.0, unit)
            owner = hoisted & (waves == unit[:, None])
            base = (each * (owner * tiles)[:, :, None]).sum(axis=1) + out * unit[:, None]
            start = np.where(owner, starts, 0.0).max(axis=1, initial=0)
            rate = np.where(hoisted & ~owner, tiles * unit[:, None] / waves, 0.0)
            whole = _mixed_round(busy * unit, base, start, rate, each, events, np.ones_like(hoisted))
            wave = np.where(any_inside, wave, whole / unit)
            often = np.where(inside, kind.rounds[phase_of], np.where(hoisted, tiles / waves, 0.0))
            carried = (each * often[:, :, None]).sum(axis=1) + out * (1 - 1 / self.mapping.waves)
            wave = np.maximum(wave, carried.max(axis=1))
            if kind is self.kinds[0] and not any_inside.all():
                idle = np.where(any_inside, idle, np.maximum(wave - busy, 0.0) * unit * ~none)
            total += kind.waves * wave
            for at in range(count):
                waits = (each[:, at] * tiles[:, at : at + 1] + out).max(axis=1) + starts[:, at]
                total += np.where(exposed[:, at], waits * (kind.waves / self.mapping.waves) * (events[:, at] - 1), 0.0)
        return total - idle

    def _column(self, at: int, load: LoadPlan) -> tuple[float, ...]:
        mapping, fact = self.mapping, self.facts.loads[at]
        waves = 1 if load.level == INSIDE else waves_between(mapping, load.level)
        return (
            self.shares.index(load.share), load.level == INSIDE, load.buffers > 1,
            tiles_at(self.facts, mapping, fact, load.level), waves, events_at(self.facts, mapping, fact, load.level),
        )  # fmt: skip


def _round(compute: Floats | float, links: Floats, start: Floats) -> Floats:
    """Two tiles are on their way: each must come within two rounds, and every link serve one in a round."""
    served = links.max(axis=1)
    return np.maximum(np.maximum(compute, served), (compute + served + start) / 2)


def _alone(compute: float, links: Floats, start: Floats) -> Floats:
    """A round that is longer than those around it."""
    return np.maximum(compute, links.max(axis=1) + start)


def _mixed_round(
    compute: Floats | float,
    base: Floats,
    start: Floats,
    rate: Floats,
    each: Floats,
    events: Floats,
    late: NDArray[np.bool_],
) -> Floats:
    """Behind the last turn of a hoisted load nothing more is fetched for it."""
    if not rate.any():
        return _round(compute, base, start)
    fewest = np.where(rate > 0, events, np.inf).min(axis=1, initial=np.inf)
    after = np.where(events == fewest[:, None], 0.0, rate)
    with_all = _mean_round(compute, base, start, rate, each, late)
    return with_all + (_mean_round(compute, base, start, after, each, late) - with_all) / fewest


def _mean_round(
    compute: Floats | float, base: Floats, start: Floats, rate: Floats, each: Floats, late: NDArray[np.bool_]
) -> Floats:
    """A round's length on average, when hoisted tiles come with it at these rates, as many as possible at once.

    What is late comes behind the fetch of its round, and may so use the idle time of the round after too.
    """
    whole = np.floor(rate)
    base = base + (each * whole[:, :, None]).sum(axis=1)
    part = rate - whole
    usual = _round(compute, base, start)
    found = usual.copy()
    for at in range(part.shape[1]):
        share = part[:, at]
        if not (share * late[:, at]).any():
            continue
        two = np.maximum(2 * usual, (2 * base + each[:, at]).max(axis=1))
        full = _round(compute, base + each[:, at], start)
        seldom = share * (two - 2 * usual)
        often = (1 - share) * two + (2 * share - 1) * full - usual
        found += np.where(late[:, at], np.where(share <= 0.5, seldom, often), 0.0)
    part = np.where(late, 0.0, part)
    if not part.any():
        return found
    order = np.argsort(-part, axis=1)
    part = np.take_along_axis(part, order, axis=1)
    each = np.take_along_axis(each, order[:, :, None], axis=1)
    for at in range(part.shape[1]):
        base = base + each[:, at]
        more = _round(compute, base, start)
        found += part[:, at] * (more - usual)
        usual = more
    return found


def modelled_cycles(plan: MeshPlan, traffic: Traffic) -> float:
    shares = tuple(dict.fromkeys([(), *(load.share for load in plan.loads)]))
    cost = MappingCost(plan.facts, plan.mapping, traffic, shares)
    return float(cost.cycles([[load] for load in plan.loads], np.zeros((1, len(plan.loads)), np.int64))[0])


def paper_cycles(plan: MeshPlan, traffic: Traffic) -> float:
    """Section 2.5 of the TL paper, from the innermost loop outward: loads, arithmetic and stores of a loop overlap."""
    facts, mapping = plan.facts, plan.mapping
    body = 0.0
    for at, phase in enumerate(facts.phases):
        load = _together(plan, traffic, [i for i, f in enumerate(facts.loads) if f.phase == at], INSIDE)
        store = float(traffic.vector(()).max()) * phase.stored
        body += _overlapped(phase.most, load, phase.cycles, store)
    for level in range(len(mapping.order), 0, -1):
        load = _together(plan, traffic, list(range(len(facts.loads))), level)
        body = _overlapped(mapping.trips[level - 1], load, body, 0.0)
    return body + _together(plan, traffic, list(range(len(facts.loads))), 0)


def _together(plan: MeshPlan, traffic: Traffic, which: list[int], level: int) -> float:
    """Transfers on disjoint links run at the same time, those on one link share it."""
    found = np.zeros(traffic.size)
    for at in which:
        if plan.loads[at].level == level:
            found += traffic.vector(plan.loads[at].share) * plan.tiles(at) * plan.facts.loads[at].bytes
    return float(found.max())


def _overlapped(trips: int, load: float, compute: float, store: float) -> float:
    if trips < 2:
        return load + compute + store
    steady = (trips - 2) * max(load + store, compute)
    return steady + max(load, compute) + max(store, compute) + load + store


def dram_bytes(plan: MeshPlan, traffic: Traffic) -> float:
    """What all channels carry."""
    facts = plan.facts
    loads = sum(
        plan.events(at) * plan.tiles(at) * fact.bytes * len(traffic.groups(load.share))
        for at, (fact, load) in enumerate(zip(facts.loads, plan.loads, strict=True))
    )
    return loads + facts.program.instances * sum(phase.stored * phase.most for phase in facts.phases)


def bound_cycles(facts: ProgramFacts, machine: Machine) -> tuple[float, str]:
    """What no plan of this program with these blocks is below: its arithmetic on all cores, each tensor moved once."""
    trips = facts.program.trips
    # the mean of what is affine, over a box of instances, is what it is in the middle
    rounds = [p.extent.const + sum(f * (trips[k] - 1) / 2 for k, f in p.extent.terms) for p in facts.phases]
    arithmetic = sum(p.cycles * n for p, n in zip(facts.phases, rounds, strict=True))
    arithmetic *= facts.program.instances / len(machine.cores)
    moved = sum(tensor.bytes for tensor in facts.program.tensors.values()) / machine.outside_bandwidth
    return (arithmetic, "arithmetic on all cores") if arithmetic >= moved else (moved, "every tensor moved once")
