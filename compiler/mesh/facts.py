"""What a planner must know of a tile program on a machine: phases of an instance, their loads, stores and cycles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.machine import Machine, MeshUnit, refused
from penstock.compiler.mesh.program import (
    BYTES,
    MATRIX,
    MeshCompute,
    MeshLoad,
    MeshLoop,
    MeshStatement,
    MeshStore,
    TileProgram,
)
from penstock.compiler.tasks.affine import Affine

_FREE = ("full", "reshape", "trans", "cast", "mask", "index")
"""What addressing and formats do by the way."""


@dataclass(frozen=True)
class LoadFacts:
    """A load of phase `phase`; `depends` are the grid's dims it changes with, `rounds` whether the phase's loop too."""

    load: MeshLoad
    phase: int
    depends: frozenset[int]
    rounds: bool
    bytes: int


@dataclass(frozen=True)
class MeshPhase:
    """A loop of an instance, or what stands between two."""

    extent: Affine
    most: int
    cycles: float
    stored: int
    """Bytes a round."""


@dataclass(frozen=True)
class ProgramFacts:
    program: TileProgram
    phases: tuple[MeshPhase, ...]
    loads: tuple[LoadFacts, ...]
    kept: int
    """Bytes of what an instance computes and stores, in its scratchpad all the time."""


def facts_of(program: TileProgram, machine: Machine) -> ProgramFacts:
    groups = _phases(program.body)
    dims = {dim.counter: i for i, dim in enumerate(program.grid)}
    phases: list[MeshPhase] = []
    loads: list[LoadFacts] = []
    drained = 0.0
    for body, loop in groups:
        dots = {s.result for s in body if isinstance(s, MeshCompute) and s.kind == MATRIX}
        summed = _summed(body, loop, dots)
        cycles = drained + sum(_cycles(s, machine, program, dots, summed) for s in body if isinstance(s, MeshCompute))
        drained = sum(_start(s, machine, program) for s in body if isinstance(s, MeshCompute) and s.result in summed)
        stored = sum(_bytes(program, s) for s in body if isinstance(s, MeshStore))
        if not cycles and not stored and not any(isinstance(s, MeshLoad) for s in body):
            continue
        for statement in body:
            if isinstance(statement, MeshLoad):
                counters = statement.access.counters()
                depends = frozenset(dims[k] for k in counters if k in dims)
                inside = loop is not None and loop.counter in counters
                loads.append(LoadFacts(statement, len(phases), depends, inside, _bytes(program, statement)))
        extent = Affine(1) if loop is None else loop.extent
        phases.append(MeshPhase(extent, extent.extremes(program.trips)[1], cycles, stored))
    return ProgramFacts(program, tuple(phases), tuple(loads), _kept(program, groups))


def _phases(body: Sequence[MeshStatement]) -> list[tuple[list[MeshStatement], MeshLoop | None]]:
    found: list[tuple[list[MeshStatement], MeshLoop | None]] = [([], None)]
    for statement in body:
        if isinstance(statement, MeshLoop):
            inner = next((s for s in statement.body if isinstance(s, MeshLoop)), None)
            if inner is not None:
                raise PenstockError(
                    code="bad-tile-program", what="a loop within a loop is not planned", where=inner.where,
                    limit="one loop after the other within an instance", hint="make the outer one a dim of the grid",
                )  # fmt: skip
            found += [(list(statement.body), statement), ([], None)]
        else:
            found[-1][0].append(statement)
    return found


def _bytes(program: TileProgram, statement: MeshLoad | MeshStore) -> int:
    return statement.access.elements * BYTES[program.tensors[statement.access.tensor].dtype]


def _summed(body: Sequence[MeshStatement], loop: MeshLoop | None, dots: set[int]) -> set[int]:
    """Products that are added up round by round: what they cost to begin is paid once, at the end."""
    carried = set[int]() if loop is None else {row.inside for row in loop.carried}
    return {
        operand
        for s in body
        if isinstance(s, MeshCompute) and s.kind == "add" and carried & set(s.operands)
        for operand in dots & set(s.operands)
    }


def _mat(op: MeshCompute, machine: Machine, program: TileProgram) -> MeshUnit | None:
    """What multiplies these: a vector unit where no unit for matrices knows their numbers."""
    return machine.unit("mat", program.shapes[op.operands[0]][1])


def _start(op: MeshCompute, machine: Machine, program: TileProgram) -> float:
    mat = _mat(op, machine, program) if op.kind == MATRIX else None
    return 0.0 if mat is None else mat.start * math.prod(op.shape)


def _cycles(op: MeshCompute, machine: Machine, program: TileProgram, dots: set[int], summed: set[int]) -> float:
    """N / (U · r), and what an operation costs before it starts; a sum onto a product is part of the product."""
    if op.kind in _FREE or (op.kind == "add" and any(operand in dots for operand in op.operands)):
        return 0.0
    if op.kind == MATRIX:
        mat = _mat(op, machine, program)
        if mat is not None:
            sizes = (*op.shape, op.inner)
            tiles = math.prod(-(-size // step) for size, step in zip(sizes, mat.shape, strict=True))
            return tiles * mat.cycles / mat.count + (0.0 if op.result in summed else _start(op, machine, program))
    elements = max([math.prod(op.shape) * op.inner, *(math.prod(program.shapes[i][0]) for i in op.operands)])
    numbers = next((kind for kind in (program.shapes[i][1] for i in (op.result, *op.operands)) if kind != "bool"), "")
    unit = machine.unit("vec", numbers) or machine.unit("scalar", numbers)
    if unit is None:
        raise refused(machine.name, f"its cores cannot do {op.kind} on {numbers}", "", "add a vec or scalar unit")
    return -(-elements // math.prod(unit.shape)) * unit.cycles / unit.count + unit.start


def _kept(program: TileProgram, groups: Sequence[tuple[list[MeshStatement], MeshLoop | None]]) -> int:
    """Tiles that go round in loops, and those that are stored, twice: one is written back while the next is made."""
    carried = {row.inside for _, loop in groups if loop is not None for row in loop.carried}
    live = sum(math.prod(program.shapes[i][0]) * BYTES[program.shapes[i][1]] for i in carried)
    return live + 2 * max(sum(_bytes(program, s) for s in body if isinstance(s, MeshStore)) for body, _ in groups)
