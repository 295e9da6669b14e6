"""A kernel with every block that may be chosen, and the best plans among all of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import Planned, Reuse, plan_programs
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.triton.read import KernelFile, read_kernel

BLOCKS = (16, 32, 64, 128, 256)
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
    """The kernel with all blocks that can be read; the first error, if none can."""
    names = [name for name in file.blocks if name not in given]
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
