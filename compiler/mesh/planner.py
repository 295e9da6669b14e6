"""The best plans of a tile program on a machine: all mappings, all ways to serve every load, the best few measured.

Programs are one kernel with different blocks. Its bound, arithmetic on all cores or each tensor moved once, ends the
walk where no plan with those blocks can be among the best any more.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.cost import bound_cycles, modelled_cycles
from penstock.compiler.mesh.facts import ProgramFacts, facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import LoadPlan, Mapping, MeshPlan, footprint, load_choices, mappings
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.simulate import MeshRun, simulate_plan
from penstock.compiler.mesh.traffic import Traffic

MOST_WAYS = 20_000
MeshAllowed = Callable[[ProgramFacts, Mapping, tuple[LoadPlan, ...]], bool]


@dataclass(frozen=True)
class Reuse:
    """What may be used again: other cores' tiles, earlier rounds' tiles; `allowed` narrows a space to a template."""

    spatial: bool = True
    temporal: bool = True
    allowed: MeshAllowed | None = None


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
    """The measured plans, the best first; how many were weighed, and what none is below."""

    measured: tuple[MeshMeasured, ...]
    weighed: int
    bound: float
    reason: str

    @property
    def best(self) -> MeshMeasured:
        return self.measured[0]

    @property
    def gap_pct(self) -> float:
        return 100 * (self.best.run.cycles / self.bound - 1)


@dataclass
class _Best:
    """The k least by the model."""

    most: int
    rows: list[tuple[float, int, MeshPlan]] = field(default_factory=list[tuple[float, int, MeshPlan]])
    weighed: int = 0

    def offer(self, cycles: float, plan: MeshPlan) -> None:
        self.weighed += 1
        row = (-cycles, -self.weighed, plan)
        if len(self.rows) < self.most:
            heapq.heappush(self.rows, row)
        elif cycles < -self.rows[0][0]:
            heapq.heapreplace(self.rows, row)

    @property
    def limit(self) -> float:
        return -self.rows[0][0] if len(self.rows) == self.most else math.inf


def plan_programs(programs: Iterable[TileProgram], machine: Machine, top: int, reuse: Reuse) -> Planned:
    traffic, best = Traffic(machine), _Best(top)
    rows: list[tuple[float, str, ProgramFacts]] = []
    for program in programs:
        _check_memory(program, machine)
        facts = facts_of(program, machine)
        bound, reason = bound_cycles(MeshPlan(facts, next(mappings(facts, machine)), ()), traffic)
        rows.append((bound, reason, facts))
    for bound, _, facts in sorted(rows, key=lambda row: row[0]):
        if bound > best.limit:
            break
        for plan in all_plans(facts, traffic, reuse):
            best.offer(modelled_cycles(plan, traffic), plan)
    if not best.rows:
        raise PenstockError(
            code="mesh-too-small", what="no plan fits", where=f"mesh {machine.name}",
            limit=f"a scratchpad has {machine.capacity:,} bytes for {machine.sharing} cores",
            hint="use smaller blocks, or let the kernel keep less",
        )  # fmt: skip
    found = [
        MeshMeasured(plan, -cycles, simulate_plan(plan, traffic)) for cycles, _, plan in sorted(best.rows, reverse=True)
    ]
    bound, reason, _ = min(rows, key=lambda row: row[0])
    return Planned(tuple(sorted(found, key=lambda row: row.run.cycles)), best.weighed, bound, reason)


def all_plans(facts: ProgramFacts, traffic: Traffic, reuse: Reuse) -> Iterator[MeshPlan]:
    """Every plan that fits its scratchpads."""
    machine = traffic.machine
    room = machine.capacity - facts.kept * machine.sharing
    for mapping in mappings(facts, machine):
        choices = [
            [(load, footprint(facts, mapping, fact, load, traffic)) for load in
             load_choices(facts, mapping, fact, traffic, reuse.spatial, reuse.temporal)]
            for fact in facts.loads
        ]  # fmt: skip
        choices = [[row for row in rows if row[1] <= room] for rows in choices]
        for rows in itertools.islice(itertools.product(*choices), MOST_WAYS):
            size = sum(row[1] for row in rows)
            loads = tuple(row[0] for row in rows)
            if size <= room and (reuse.allowed is None or reuse.allowed(facts, mapping, loads)):
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
