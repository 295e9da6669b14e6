"""The best plans of a tile program on a machine: all mappings, all ways to serve every load, the best few measured.

Programs are one kernel with different blocks. What the model says is never below the arithmetic of a mapping, nor below
what its busiest link carries. So mappings are taken by their arithmetic, ways load by load, and what is above the best
found so far need not be weighed. Where more than MOST_WAYS remain all the same, it is said how many were left out.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.errors import PenstockError
from penstock.compiler.jit import Ints
from penstock.compiler.mesh.cost import MappingCost, bound_cycles, dram_bytes
from penstock.compiler.mesh.facts import ProgramFacts, facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan, MeshPlan, footprint, load_choices, mappings
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.simulate import MeshRun, simulate_plan
from penstock.compiler.mesh.templates import MeshTemplate, templates_of
from penstock.compiler.mesh.traffic import Traffic

MOST_WAYS = 50_000
DEFAULT_TOP = 16
TEMPLATE_TOP = 5


@dataclass(frozen=True)
class Reuse:
    """What may be used again: other cores' tiles, earlier rounds' tiles; `template` narrows a space to one."""

    spatial: bool = True
    temporal: bool = True
    template: MeshTemplate | None = None


@dataclass(frozen=True)
class MeshMeasured:
    plan: MeshPlan
    modelled: float
    run: MeshRun

    @property
    def error_pct(self) -> float:
        return 100 * abs(self.modelled - self.run.cycles) / self.run.cycles


@dataclass(frozen=True)
class Planned:
    """The measured plans, the best first; how many were weighed, and what none is below.

    `passed` were not weighed, since none of them can be below those that are measured; `left_out` were too many to
    weigh, and none of them is below `left_out_bound` by the model.
    """

    measured: tuple[MeshMeasured, ...]
    weighed: int
    passed: int
    left_out: int
    left_out_bound: float | None
    bound: float
    reason: str

    @property
    def best(self) -> MeshMeasured:
        return self.measured[0]

    @property
    def gap_pct(self) -> float:
        return 100 * (self.best.run.cycles / self.bound - 1)


_Row = tuple[float, int, MeshPlan]


@dataclass
class _Best:
    """The least by the model, and what became of all others."""

    most: int
    rows: list[_Row] = field(default_factory=list[_Row])
    offered: int = 0
    weighed: int = 0
    passed: int = 0
    left_out: int = 0
    left_out_bound: float = math.inf

    def offer(self, cycles: float, plan: MeshPlan) -> None:
        self.offered += 1
        row = (-cycles, -self.offered, plan)
        if len(self.rows) < self.most:
            heapq.heappush(self.rows, row)
        elif cycles < self.limit:
            heapq.heapreplace(self.rows, row)

    @property
    def limit(self) -> float:
        return -self.rows[0][0] if len(self.rows) == self.most else math.inf


@dataclass(frozen=True)
class _Wanted:
    """The best of those plans of a space that `reuse` allows. What is wanted first is the whole space."""

    best: _Best
    reuse: Reuse

    def has(self, cost: MappingCost) -> list[Callable[[LoadPlan], bool]]:
        """By load: whether a way to serve it is one of these plans'."""
        facts, mapping, reuse = cost.facts, cost.mapping, self.reuse
        shares = None if reuse.template is None else reuse.template.shares(facts, mapping)
        if reuse.template is not None and shares is None:
            return [lambda load: False] * len(facts.loads)

        def allowed(at: int) -> Callable[[LoadPlan], bool]:
            return lambda load: (
                (reuse.spatial or not load.share)
                and (reuse.temporal or load.level in (INSIDE, len(mapping.order)))
                and (shares is None or load.share == shares[at])
            )

        return [allowed(at) for at in range(len(facts.loads))]


@dataclass(frozen=True)
class _Space:
    """All plans of one mapping that fit the scratchpads one load at a time; which of them are wanted, by load."""

    cost: MappingCost
    choices: list[list[LoadPlan]]
    footprints: list[list[int]]
    room: int
    wanted: Sequence[_Wanted]
    members: list[NDArray[np.bool_]]

    @property
    def size(self) -> int:
        return math.prod(len(rows) for rows in self.choices)

    @property
    def limit(self) -> float:
        """What a plan must not be above: that of those who want any of this mapping's."""
        found = [one.best.limit for k, one in enumerate(self.wanted) if all(rows[k].any() for rows in self.members)]
        return max(found, default=-math.inf)

    def weigh(self, bound: float) -> None:
        if not self.size:
            return  # a load, or what an instance keeps, does not fit at all
        picks, belongs = self._ways(bound)
        facts, mapping = self.cost.facts, self.cost.mapping
        if not len(picks):
            return
        cycles = self.cost.cycles(self.choices, picks)
        for one, mine in zip(self.wanted, belongs, strict=True):
            own = np.flatnonzero(mine)
            for at in own[np.argsort(cycles[own], kind="stable")[: one.best.most]]:
                if cycles[at] < one.best.limit:
                    one.best.offer(float(cycles[at]), MeshPlan(facts, mapping, self._loads(picks[at])))
        self.wanted[0].best.weighed += len(picks)

    def _loads(self, picks: Ints) -> tuple[LoadPlan, ...]:
        return tuple(rows[int(at)] for rows, at in zip(self.choices, picks.flat, strict=True))

    def _ways(self, bound: float) -> tuple[Ints, NDArray[np.bool_]]:
        """All ways to serve the loads together, less those that cannot be among the best; whose they are."""
        whole, limits = self.wanted[0].best, np.array([one.best.limit for one in self.wanted])
        picks, used = np.zeros((1, 0), np.int64), np.zeros(1, np.int64)
        belongs = np.ones((len(self.wanted), 1), bool)
        carried: list[NDArray[np.float64]] = [np.zeros((1, kind.loads.shape[1])) for kind in self.cost.kinds]
        left = self.size
        for at, rows in enumerate(self.choices):
            left //= len(rows)
            old, new = (part.ravel() for part in np.indices((len(picks), len(rows))))
            used = used[old] + np.array(self.footprints[at])[new]
            fits = used <= self.room
            old, new, used = old[fits], new[fits], used[fits]
            each = [np.stack(by_kind) for by_kind in zip(*(self.cost.carried(at, row) for row in rows), strict=True)]
            carried = [there[old] + more[new] for there, more in zip(carried, each, strict=True)]
            picks = np.concatenate([picks[old], new[:, None]], axis=1)
            belongs = belongs[:, old] & self.members[at][:, new]
            least = np.maximum(self.cost.least(carried), bound)
            kept = np.flatnonzero((belongs & (least <= limits[:, None])).any(axis=0))
            whole.passed += (len(least) - len(kept)) * left
            if len(kept) > MOST_WAYS:
                # what is wanted apart from all others is never left out for them
                apart = belongs[1:, kept].any(axis=0)
                order = kept[np.lexsort((least[kept], ~apart))]
                kept, rest = order[:MOST_WAYS], order[MOST_WAYS:]
                whole.left_out += len(rest) * left
                whole.left_out_bound = min(whole.left_out_bound, float(least[rest].min()))
            picks, used, belongs = picks[kept], used[kept], belongs[:, kept]
            carried = [there[kept] for there in carried]
        return picks, belongs


def plan_programs(programs: Iterable[TileProgram], machine: Machine, top: int, reuse: Reuse) -> Planned:
    traffic, best = Traffic(machine), _Best(top)
    rows: list[tuple[float, int, MappingCost]] = []
    bounds: list[tuple[float, str]] = []
    for program in programs:
        _check_memory(program, machine)
        facts = facts_of(program, machine)
        bounds.append(bound_cycles(facts, machine))
        for mapping in mappings(facts, machine):
            cost = MappingCost(facts, mapping, traffic, traffic.shares)
            rows.append((max(cost.arithmetic(), bounds[-1][0]), len(rows), cost))
    wanted = [_Wanted(best, reuse)]
    if reuse.temporal:
        # where the model is a little too careful, plain plans win that hoist nothing
        wanted.append(_Wanted(_Best(top), replace(reuse, temporal=False)))
    if reuse.temporal and reuse.spatial and reuse.template is None and rows:
        # what libraries do is among what is simulated, so that no plan is worse
        loads = len(rows[0][2].facts.loads)
        wanted += [_Wanted(_Best(TEMPLATE_TOP), Reuse(temporal=False, template=one)) for one in templates_of(loads)]
    for bound, _, cost in sorted(rows, key=lambda row: row[:2]):
        space = _space(cost, wanted)
        if bound > space.limit:
            best.passed += space.size
        else:
            space.weigh(bound)
    if not best.rows:
        raise PenstockError(
            code="mesh-too-small", what="no plan fits", where=f"mesh {machine.name}",
            limit=f"a scratchpad has {machine.capacity:,} bytes for {machine.sharing} cores",
            hint="use smaller blocks, or let the kernel keep less",
        )  # fmt: skip
    chosen = [row for one in wanted for row in one.best.rows]
    once = {(id(row[2].facts), row[2].mapping, row[2].loads): row for row in chosen}.values()
    found = [MeshMeasured(plan, -cycles, simulate_plan(plan, traffic)) for cycles, _, plan in once]
    bound, reason = min(bounds)
    found.sort(key=lambda row: (round(row.run.cycles, 3), dram_bytes(row.plan, traffic)))
    return Planned(
        tuple(found), best.weighed, best.passed, best.left_out, best.left_out_bound if best.left_out else None,
        bound, reason,
    )  # fmt: skip


def _space(cost: MappingCost, wanted: Sequence[_Wanted]) -> _Space:
    """What fits beside nothing else is all that may be combined."""
    facts, machine = cost.facts, cost.traffic.machine
    room = machine.capacity - facts.kept * machine.sharing
    whole = wanted[0].reuse
    allowed = [one.has(cost) for one in wanted]
    rows = [
        [
            (load, size)
            for load in load_choices(facts, cost.mapping, fact, cost.traffic, whole.spatial, whole.temporal)
            if allowed[0][at](load) and (size := footprint(facts, cost.mapping, fact, load, cost.traffic)) <= room
        ]
        for at, fact in enumerate(facts.loads)
    ]
    members = [np.array([[has[at](load) for load, _ in row] for has in allowed], bool) for at, row in enumerate(rows)]
    return _Space(
        cost, [[r[0] for r in row] for row in rows], [[r[1] for r in row] for row in rows], room, wanted, members
    )


def all_plans(facts: ProgramFacts, traffic: Traffic, reuse: Reuse) -> Iterator[MeshPlan]:
    """Every plan that fits its scratchpads."""
    for mapping in mappings(facts, traffic.machine):
        space = _space(MappingCost(facts, mapping, traffic, traffic.shares), [_Wanted(_Best(1), reuse)])
        for picks in itertools.product(*(range(len(rows)) for rows in space.choices)):
            loads = tuple(rows[at] for rows, at in zip(space.choices, picks, strict=True))
            if sum(rows[at] for rows, at in zip(space.footprints, picks, strict=True)) <= space.room:
                yield MeshPlan(facts, mapping, loads)


def _check_memory(program: TileProgram, machine: Machine) -> None:
    outside = machine.outside
    assert outside is not None
    room = outside.size * len(machine.channels)
    needed = sum(tensor.bytes for tensor in program.tensors.values())
    if needed > room:
        raise PenstockError(
            code="mesh-too-small", what=f"the tensors of {program.name} need {needed:,} bytes",
            where=f"mesh {machine.name}", limit=f"{outside.name} has {room:,}", hint="use smaller shapes",
        )  # fmt: skip
