"""A plan executed with values, core by core: each sees what its plan's transfers bring, and nothing else.

What a group shares, its leader alone reads, at the leader's own place of the grid; what is hoisted is what was fetched
at that event. So a plan that shares or keeps what differs gives wrong results here, and is no matter of belief.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.mapping import INSIDE, MeshPlan
from penstock.compiler.mesh.program import BYTES, MeshLoad
from penstock.compiler.mesh.traffic import Group, Traffic
from tests.mesh.tile_values import MeshArray, MeshCounters, MeshTensors, run_instance, take

MeshKey = tuple[int, ...]
MeshPlaces = list[MeshKey | None]


@dataclass
class _Shared:
    """What one group holds of one load: the tiles of one event, by what they depend on."""

    event: MeshKey = ()
    tiles: dict[MeshKey, MeshArray] = field(default_factory=dict[MeshKey, MeshArray])


@dataclass
class PlanExecution:
    plan: MeshPlan
    traffic: Traffic
    tensors: MeshTensors
    read: int = 0
    """Bytes that were read outside."""

    def run(self) -> MeshTensors:
        plan, cores = self.plan, self.traffic.machine.cores
        dims = plan.facts.program.grid
        groups = [
            {core: group for group in self.traffic.groups(load.share) for core in group.cores} for load in plan.loads
        ]
        held: dict[tuple[int, Group], _Shared] = {}
        at_load = {fact.load.result: i for i, fact in enumerate(plan.facts.loads)}
        for wave in range(plan.mapping.waves):
            places = [plan.mapping.instance(wave, core) for core in cores]
            loops = self._loops(wave)
            for core, place in enumerate(places):
                if place is None:
                    continue

                def fetch(
                    load: MeshLoad,
                    now: MeshCounters,
                    core: int = core,
                    places: MeshPlaces = places,
                    loops: MeshKey = loops,
                ) -> MeshArray:
                    at = at_load[load.result]
                    group = groups[at][core]
                    reader = next(places[c] for c in (group.leader, *group.cores) if places[c] is not None)
                    assert reader is not None
                    mine = {**now, **{dim.counter: p for dim, p in zip(dims, reader, strict=True)}}
                    return self._from(held.setdefault((at, group), _Shared()), at, mine, loops)

                counters = {dim.counter: p for dim, p in zip(dims, place, strict=True)}
                run_instance(plan.facts.program, self.tensors, counters, fetch)
        return self.tensors

    def _loops(self, wave: int) -> MeshKey:
        found: list[int] = []
        for trip in reversed(self.plan.mapping.trips):
            wave, at = divmod(wave, trip)
            found.append(at)
        return tuple(reversed(found))

    def _from(self, shared: _Shared, at: int, counters: MeshCounters, loops: MeshKey) -> MeshArray:
        fact, load = self.plan.facts.loads[at], self.plan.loads[at]
        access = fact.load.access
        event = loops if load.level == INSIDE else loops[: load.level]
        if event != shared.event:
            shared.event, shared.tiles = event, {}
        key = tuple(counters[k] for k in sorted(access.counters()))
        if key not in shared.tiles:
            self.read += access.elements * BYTES[self.plan.facts.program.tensors[access.tensor].dtype]
            shared.tiles[key] = take(self.tensors, fact.load, counters)
            most = self.plan.tiles(at) if load.level != INSIDE else self.plan.facts.phases[fact.phase].most
            if len(shared.tiles) > most:
                raise PenstockError(
                    code="mesh-plan", what=f"a plan keeps more than its {most} tiles", where=fact.load.where,
                    hint="this is a mistake of the planner; report it with the program",
                )  # fmt: skip
        return shared.tiles[key]


def execute(plan: MeshPlan, traffic: Traffic, tensors: MeshTensors) -> int:
    """Run a plan on flat tensors, in place; the bytes that it read outside."""
    run = PlanExecution(plan, traffic, tensors)
    run.run()
    return run.read
