"""Cores whose lengths each call says: at every length the values and the cycles of the design of that length."""

from __future__ import annotations

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.lengths import Length
from penstock.compiler.program import Program
from tests.compiler.designs import Dense
from tests.rtl.length_batch import LengthCore, check, dense, product

TWO = (Dense(6, transposed=True, skip=False), Dense(4, transposed=False, skip=False))


def design(kernels: dict[str, KernelDesign], groups: dict[str, int] | None = None) -> Design:
    return Design("ecp5-85k", 100.0, kernels, groups=groups or {}, port_bits=64)


def by_rows(program: Program, rows: int = 1, lanes: int = 1, columns: int = 2) -> dict[str, KernelDesign]:
    """Tiles of so many rows, `lanes` of them at once, and so many columns at once."""
    found: dict[str, KernelDesign] = {}
    for op in read_graph(program.module).operations:
        tile = (rows, *op.trips[1:])
        unroll = (lanes, columns, *(1 for _ in op.trips[2:]))
        found[op.layer] = KernelDesign(tile, unroll, tuple(range(len(tile))))
    return found


def test_every_length_in_one_core() -> None:
    """Of steps of one and of four, floats and integers, lanes along the length, kernels in turn, two lengths."""
    cores: list[LengthCore] = []
    for kind in ("int8", "float32"):
        program = dense(kind, Length("rows", 1, 5))
        cores.append(LengthCore(program, design(by_rows(program)), kind))
    fours = dense("int8", Length("rows", 4, 12, 4), TWO)
    cores.append(LengthCore(fours, design(by_rows(fours, 4, 2)), "steps of four, two rows at once"))
    cores.append(LengthCore(fours, design(by_rows(fours, 2, 1)), "steps of four in tiles of two"))
    program = dense("int8", Length("rows", 1, 4), TWO)
    turns = {op.layer: number // 2 for number, op in enumerate(read_graph(program.module).operations)}
    cores.append(LengthCore(program, design(by_rows(program), turns), "kernels in turn"))
    two = product(Length("rows", 1, 3), Length("deep", 2, 6, 2))
    kernel = KernelDesign((1, 3, 2), (1, 3, 1), (0, 2, 1))
    cores.append(LengthCore(two, design({"gemm": kernel}), "two lengths, one of them summed over"))
    check(cores)
