"""Where and when instances run, and how each load is served: one plan among all of a space."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.mesh.facts import LoadFacts, ProgramFacts
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.traffic import MeshShare, Traffic

INSIDE = -1


@dataclass(frozen=True)
class Mapping:
    """`spatial`: the grid's dim that each dim of the cores takes, or none; `order`: those dims, outermost first."""

    spatial: tuple[int | None, ...]
    order: tuple[int, ...]
    extents: tuple[int, ...]
    cores: tuple[int, ...]

    def width(self, dim: int) -> int:
        return math.prod(n for d, n in zip(self.spatial, self.cores, strict=True) if d == dim)

    def width_behind(self, d: int) -> int:
        """How far on in its dim of the grid a core is than its neighbour along a dim of the cores."""
        return math.prod(
            n for n, dim in list(zip(self.cores, self.spatial, strict=True))[d + 1 :] if dim == self.spatial[d]
        )

    @cached_property
    def trips(self) -> tuple[int, ...]:
        """How often each loop of `order` goes."""
        return tuple(-(-self.extents[dim] // self.width(dim)) for dim in self.order)

    @cached_property
    def waves(self) -> int:
        return math.prod(self.trips)

    def offset(self, dim: int, core: tuple[int, ...]) -> int:
        """A core's place among those that share a dim of the grid."""
        found = 0
        for at, n, d in zip(core, self.cores, self.spatial, strict=True):
            found = found * n + at if d == dim else found
        return found

    def works(self, core: tuple[int, ...]) -> bool:
        return all(at == 0 for at, d in zip(core, self.spatial, strict=True) if d is None)

    def kinds(self, facts: ProgramFacts) -> list[tuple[int, NDArray[np.bool_], list[float]]]:
        """Waves by which cores work, full ones first: how many, those cores, and the rounds of every phase on average.

        All turns of a loop but the last are full. A phase goes as many rounds as the core that has most of them.
        """
        found: list[tuple[int, NDArray[np.bool_], list[float]]] = []
        choices: list[list[tuple[int, range]]] = []
        for dim, trip in zip(self.order, self.trips, strict=True):
            width = self.width(dim)
            edge = self.extents[dim] % width != 0
            rows = [(width, range(trip - edge)), (self.extents[dim] % width, range(trip - edge, trip))]
            choices.append([row for row in rows if len(row[1])])
        for picked in itertools.product(*choices):
            widths = {dim: wide for dim, (wide, _) in zip(self.order, picked, strict=True)}
            active, offsets = _offsets(self.spatial, self.cores)
            for dim, wide in widths.items():
                active = active & (offsets[dim] < wide) if dim in offsets else active
            middle = {
                facts.program.grid[dim].counter: (turns.start + turns.stop - 1) / 2 * self.width(dim)
                for dim, (_, turns) in zip(self.order, picked, strict=True)
            }
            span = {facts.program.grid[dim].counter: wide - 1 for dim, wide in widths.items()}
            rounds = [
                max(phase.extent.const + sum(f * middle[k] + max(f, 0) * span[k] for k, f in phase.extent.terms), 0.0)
                for phase in facts.phases
            ]
            found.append((math.prod(len(turns) for _, turns in picked), active, rounds))
        return found

    def instance(self, wave: int, core: tuple[int, ...]) -> tuple[int, ...] | None:
        """Which instance a core runs; None if it has none."""
        if not self.works(core):
            return None
        found = [0] * len(self.extents)
        for dim, trip in zip(reversed(self.order), reversed(self.trips), strict=True):
            wave, at = divmod(wave, trip)
            found[dim] = at * self.width(dim) + self.offset(dim, core)
        return tuple(found) if all(f < e for f, e in zip(found, self.extents, strict=True)) else None


@lru_cache(maxsize=64)
def _offsets(
    spatial: tuple[int | None, ...], cores: tuple[int, ...]
) -> tuple[NDArray[np.bool_], dict[int, NDArray[np.int64]]]:
    """Which cores work, and their places along the dims of the grid that are spread."""
    places = np.indices(cores).reshape(len(cores), -1)
    works = np.ones(places.shape[1], bool)
    found: dict[int, NDArray[np.int64]] = {}
    for at, n, dim in zip(places, cores, spatial, strict=True):
        if dim is None:
            works &= at == 0
        else:
            found[dim] = found.get(dim, np.zeros_like(at)) * n + at
    return works, found


@dataclass(frozen=True)
class LoadPlan:
    """`level`: inside how many loops of the order the load stands; INSIDE: in every round of its phase."""

    share: MeshShare
    level: int
    buffers: int


@dataclass(frozen=True)
class MeshPlan:
    facts: ProgramFacts
    mapping: Mapping
    loads: tuple[LoadPlan, ...]

    def events(self, at: int) -> int:
        """How often a load's tiles are fetched anew, by each group."""
        return events_at(self.facts, self.mapping, self.facts.loads[at], self.loads[at].level)

    def tiles(self, at: int) -> int:
        """How many tiles are fetched at once."""
        return tiles_at(self.facts, self.mapping, self.facts.loads[at], self.loads[at].level)


def tiles_at(facts: ProgramFacts, mapping: Mapping, fact: LoadFacts, level: int) -> int:
    """Crossing a loop that a load depends on multiplies what must be kept."""
    if level == INSIDE:
        return 1
    crossed = zip(mapping.order[level:], mapping.trips[level:], strict=True)
    found = math.prod(trip for dim, trip in crossed if dim in fact.depends)
    return found * (facts.phases[fact.phase].most if fact.rounds else 1)


def events_at(facts: ProgramFacts, mapping: Mapping, fact: LoadFacts, level: int) -> int:
    if level == INSIDE:
        return mapping.waves * facts.phases[fact.phase].most
    return math.prod(mapping.trips[:level])


def waves_between(mapping: Mapping, level: int) -> int:
    """How many waves a tile that is fetched at a level is kept."""
    return math.prod(mapping.trips[level:])


def mappings(facts: ProgramFacts, machine: Machine) -> Iterator[Mapping]:
    """All that differ: a loop of one trip has no place in an order, equal widths of one dim have no order."""
    extents = tuple(dim.extent for dim in facts.program.grid)
    many = [i for i, extent in enumerate(extents) if extent > 1]
    choices: list[list[int | None]] = [list(many) or [None] for _ in machine.extents]
    seen: set[tuple[tuple[int | None, ...], tuple[int, ...]]] = set()
    for spatial in itertools.product(*choices):
        if len(set(spatial)) < min(len(many), 2) and len(many) > 1 and 1 not in machine.extents:
            dim = spatial[0]
            if dim is not None and extents[dim] < max(machine.extents):
                continue  # half of the cores would stand still, while another dim has work
        for order in itertools.permutations(range(len(extents))):
            made = Mapping(spatial, order, extents, machine.extents)
            going = tuple(dim for dim, trip in zip(order, made.trips, strict=True) if trip > 1)
            if (spatial, going) in seen:
                continue
            seen.add((spatial, going))
            still = tuple(dim for dim in order if dim not in going)
            yield Mapping(spatial, still + going, extents, machine.extents)


def load_choices(
    facts: ProgramFacts,
    mapping: Mapping,
    fact: LoadFacts,
    traffic: Traffic,
    spatial: bool = True,
    temporal: bool = True,
) -> list[LoadPlan]:
    """How a load may be served: along which dims it is shared, and before which loop it is fetched."""
    free = [
        d for d, dim in enumerate(mapping.spatial)
        if dim not in fact.depends and mapping.cores[d] > 1 and traffic.possible(d)
    ]  # fmt: skip
    shares: list[MeshShare] = [
        share for n in range(len(free) + 1) for share in itertools.combinations(free, n) if spatial or not share
    ]
    last = len(mapping.order)
    phase = facts.phases[fact.phase]
    levels = [INSIDE if phase.most > 1 and fact.rounds else last]
    if temporal:
        # hoisting pays where the outermost loop that is crossed is one that the load does not depend on
        levels += [
            at
            for at, (dim, trip) in enumerate(zip(mapping.order, mapping.trips, strict=True))
            if trip > 1 and dim not in fact.depends
        ]
    found: list[LoadPlan] = []
    for share, level in itertools.product(shares, levels):
        once = level != INSIDE and math.prod(mapping.trips[:level]) == 1
        found += [LoadPlan(share, level, n) for n in ((1,) if once else (2,) if level in (INSIDE, last) else (2, 1))]
    return found


def footprint(facts: ProgramFacts, mapping: Mapping, fact: LoadFacts, load: LoadPlan, traffic: Traffic) -> int:
    """Bytes of a scratchpad: cores that have one in common hold what they share once."""
    machine = traffic.machine
    shared = math.prod(machine.extents[d] for d in load.share if machine.shares_scratchpad[d])
    return tiles_at(facts, mapping, fact, load.level) * fact.bytes * load.buffers * machine.sharing // shared
