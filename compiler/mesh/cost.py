"""What a plan takes by closed form: the paper's model, and one with contention of links and the cost of starts."""

from __future__ import annotations

import numpy as np

from penstock.compiler.mesh.mapping import INSIDE, MeshPlan
from penstock.compiler.mesh.traffic import Floats, Traffic


def modelled_cycles(plan: MeshPlan, traffic: Traffic) -> float:
    """Every round costs its arithmetic or its transfers, whichever is longer; hoisted tiles come in between."""
    facts, mapping = plan.facts, plan.mapping
    rounds = mapping.waves * sum(phase.most for phase in facts.phases)
    between, exposed, first = np.zeros(traffic.size), 0.0, 0.0
    inside: list[Floats] = [np.zeros(traffic.size) for _ in facts.phases]
    starts = [0.0 for _ in facts.phases]
    for at, (fact, load) in enumerate(zip(facts.loads, plan.loads, strict=True)):
        vector, start = traffic.vector(load.share), traffic.start(load.share)
        once = plan.tiles(at) * fact.bytes
        first += float(vector.max()) * once
        if load.level == INSIDE:
            inside[fact.phase] = inside[fact.phase] + vector * once
            starts[fact.phase] = max(starts[fact.phase], start)
        elif load.buffers == 1:
            exposed += (plan.events(at) - 1) * (start + float(vector.max()) * once)
        else:
            between += vector * once * (plan.events(at) - 1) / rounds
    first += max((traffic.start(load.share) for load in plan.loads), default=0.0)
    stored = traffic.vector(())
    out = sum(phase.stored * phase.most for phase in facts.phases)
    between += stored * out * mapping.waves / rounds
    steady = idle = 0.0
    for phase, vector, start in zip(facts.phases, inside, starts, strict=True):
        slowest = max(phase.cycles, float((vector + between).max()) + start)  # one round ahead, no further
        steady += phase.most * slowest
        idle = slowest - phase.cycles  # behind the last round nothing is fetched
    last = traffic.start(()) + float(stored.max()) * out
    return first + exposed + mapping.waves * steady - idle + last


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


def bound_cycles(plan: MeshPlan, traffic: Traffic) -> tuple[float, str]:
    """What no plan of this program with these blocks is below: its arithmetic on all cores, each tensor moved once."""
    facts, machine = plan.facts, traffic.machine
    trips = facts.program.trips
    # the mean of what is affine, over a box of instances, is what it is in the middle
    rounds = [p.extent.const + sum(f * (trips[k] - 1) / 2 for k, f in p.extent.terms) for p in facts.phases]
    arithmetic = sum(p.cycles * n for p, n in zip(facts.phases, rounds, strict=True))
    arithmetic *= facts.program.instances / len(machine.cores)
    moved = sum(tensor.bytes for tensor in facts.program.tensors.values()) / machine.outside_bandwidth
    return (arithmetic, "arithmetic on all cores") if arithmetic >= moved else (moved, "every tensor moved once")
