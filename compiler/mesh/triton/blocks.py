"""A kernel with every block that may be chosen, and the best plans among all of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import Planned, Reuse, plan_programs
from penstock.compiler.mesh.program import MeshLoop, MeshStatement, MeshStore, TileProgram
from penstock.compiler.mesh.triton.read import KernelFile, read_kernel

BLOCKS = (16, 32, 64, 128, 256)
LARGER = (512, 1024, 2048, 4096, 8192)
"""Tried where all of the usual ones store a part of the result alone: a row may have to fit into one block."""
_WHOLE = 0.75
"""Of a result that has been stored, some may lie between its rows."""
MOST_CHOICES = 8192
KernelValues = Mapping[str, int | float | str]


def given_value(text: str) -> int | float | str:
    """What `NAME=VALUE` gives: a number, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def plan_kernel(
    file: KernelFile, given: KernelValues, machine: Machine, top: int = 5, reuse: Reuse | None = None
) -> Planned:
    """Plans of a kernel; its blocks that nothing gives are explored."""
    return plan_programs(programs_of(file, given), machine, top, reuse or Reuse())


def programs_of(file: KernelFile, given: KernelValues, sizes: Sequence[int] = BLOCKS) -> list[TileProgram]:
    """The kernel with all blocks that can be read and leave nothing of the result out; the first error, if none can."""
    names = [name for name in file.blocks if name not in given]
    found = _read(file, given, names, sizes)
    if names and max(map(stored_share, found)) < _WHOLE:
        with suppress(PenstockError):
            found += _read(file, given, names, LARGER)
    least = _WHOLE * max(map(stored_share, found))
    return [program for program in found if stored_share(program) >= least]


def stored_share(program: TileProgram) -> float:
    """How much of its results a kernel stores at most: of the tensor of which it is the smallest part."""
    counts = dict.fromkeys(program.written, 0)
    _count(program.body, program.instances, program, counts)
    return min((min(1.0, count / program.tensors[name].elements) for name, count in counts.items()), default=1.0)


def _count(body: Sequence[MeshStatement], times: int, program: TileProgram, counts: dict[str, int]) -> None:
    for statement in body:
        if isinstance(statement, MeshStore):
            counts[statement.access.tensor] += times * statement.access.elements
        elif isinstance(statement, MeshLoop):
            _count(statement.body, times * max(0, statement.extent.extremes(program.trips)[1]), program, counts)


def _read(file: KernelFile, given: KernelValues, names: Sequence[str], sizes: Sequence[int]) -> list[TileProgram]:
    if len(sizes) ** len(names) > MOST_CHOICES:
        raise file.text.error(
            file.kernel, f"{len(names)} blocks are left open: {', '.join(names[:8])}", f"write --set {names[0]}=...",
            f"{MOST_CHOICES:,} choices",
        )  # fmt: skip
    found: list[TileProgram] = []
    first: PenstockError | None = None
    for blocks in itertools.product(sizes, repeat=len(names)):
        try:
            found.append(read_kernel(file, {**given, **dict(zip(names, blocks, strict=True))}))
        except PenstockError as error:
            first = first or error
    if not found:
        assert first is not None
        raise first
    return found
