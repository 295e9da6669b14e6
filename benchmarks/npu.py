"""Products, attention and a gated layer on the description of AMD's NPU, beside what Dato published of the chip.

The published figures were measured on the chip, with its kernels and its starts; ours are simulated with multipliers
that are always busy while a core has its tiles (`compiler/mesh/data/ryzen-ai-npu.toml` says what is left out). So a
share here says what memory, streams and the plan leave of the peak, not what a compiled kernel reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path

from benchmarks.registry import Value
from penstock.compiler.mesh.description import load_machine, machine_of, module_of_toml
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import DEFAULT_TOP, Planned, Reuse, plan_programs
from penstock.compiler.mesh.shipped import FOLDER
from penstock.compiler.mesh.triton.blocks import programs_of
from penstock.compiler.mesh.triton.read import open_kernel
from penstock.compiler.tasks.source import ProgramText

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "meshes"
NAME, TILES = "ryzen-ai-npu", 4
PRODUCTS_A_CYCLE = {"int16": 64, "bfloat16": 128, "int8": 256}
PAPER_PCT = {"int16": 75.01, "bfloat16": 47.56, "int8": 61.58}
SIZES, LENGTHS, HEADS = (256, 512, 1024, 2048), (128, 512, 2048), 12
IN_TURN = ("scores", "softmax", "values")
SOFTMAX_BLOCK = 4096
"""Scores of whole rows that a core takes at once; more rows of 2,048 do not fit."""
GATED_LAYER = {"WIDE": 768, "HIDDEN": 3072}
PAPER_ATTENTION, PAPER_GATED, PAPER_SCALING = 2.81, 1.64, {2: 1.97, 4: 3.67}
"""Against kernels that are called one by one, on the chip; the first two at most."""
Options = dict[str, int | float | str]


def rows(only: str) -> list[Mapping[str, Value]]:
    found: list[Mapping[str, Value]] = []
    for kind in PRODUCTS_A_CYCLE:
        found += [_product(kind, size) for size in SIZES if only in _product_name(kind, size)]
    found += [_attention(length) for length in LENGTHS if only in _attention_name(length)]
    found += [_gated(length) for length in LENGTHS if only in _gated_name(length)]
    return found + (_scaling() if only in "npu scaling" else [])


def _product_name(kind: str, size: int) -> str:
    return f"npu gemm {kind} {size}^3"


def _attention_name(length: int) -> str:
    return f"npu attention {HEADS} x {length} tokens"


def _gated_name(length: int) -> str:
    return f"npu ffn 768 to 3072 on {length} tokens"


def _planned(file: str, kernel: str, options: Options, machine: Machine) -> Planned:
    path = EXAMPLES / f"{file}.py"
    programs = programs_of(open_kernel(ProgramText(path.name, path.read_text()), kernel), options)
    return plan_programs(programs, machine, DEFAULT_TOP, Reuse())


def _multiplied(kind: str, size: int, machine: Machine) -> Planned:
    if kind == "bfloat16":
        sizes: Options = dict.fromkeys("MNK", size)
        return _planned("gemm", "", sizes | dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), kind), machine)
    return _planned("linear_int8", "", {"ROWS": size, "INNER": size, "WIDE": size, "x": kind, "w": kind}, machine)


def _product(kind: str, size: int) -> dict[str, Value]:
    machine = load_machine(NAME)
    planned = _multiplied(kind, size, machine)
    peak = size**3 / (PRODUCTS_A_CYCLE[kind] * len(machine.cores))
    cycles = planned.best.run.cycles
    return {
        "name": _product_name(kind, size), "cycles": cycles, "bound": planned.bound,
        "utilisation_pct": round(100 * peak / cycles, 2), "paper_best_measured_pct": PAPER_PCT[kind],
    }  # fmt: skip


def _attention(length: int) -> dict[str, Value]:
    """Fused, and as three kernels one after the other, each with a plan of its own."""
    machine, sizes = load_machine(NAME), Options(HEADS=HEADS, LENGTH=length)
    kinds = dict.fromkeys(("Q", "K", "V", "Out"), "bfloat16")
    fused = _planned("flash_attention", "", {**sizes, **kinds}, machine).best.run.cycles
    rows: Options = {"BLOCK_M": SOFTMAX_BLOCK // length}
    options = {kernel: {**sizes, **(rows if kernel == "softmax" else {})} for kernel in IN_TURN}
    parts = [_planned("attention_in_turn", kernel, options[kernel], machine).best.run.cycles for kernel in IN_TURN]
    return {
        "name": _attention_name(length), "cycles": fused, "in_turn_cycles": sum(parts),
        "attention_speedup_in_turn": round(sum(parts) / fused, 3), "paper_speedup_measured": PAPER_ATTENTION,
    }  # fmt: skip


def _gated(length: int) -> dict[str, Value]:
    """Both projections of a gated layer in one kernel, and as two, of which the second reads what the first stored."""
    machine, sizes = load_machine(NAME), Options(ROWS=length, **GATED_LAYER)
    fused, *parts = (_planned("swiglu", kernel, sizes, machine).best.run.cycles for kernel in ("swiglu", "gate", "up"))
    peak = 2 * length * prod(GATED_LAYER.values()) / (PRODUCTS_A_CYCLE["bfloat16"] * len(machine.cores))
    return {
        "name": _gated_name(length), "cycles": fused, "in_turn_cycles": sum(parts),
        "ffn_utilisation_pct": round(100 * peak / fused, 2),
        "in_turn_utilisation_pct": round(100 * peak / sum(parts), 2),
        "ffn_speedup_in_turn": round(sum(parts) / fused, 3), "speedup_at_peak": round(sum(parts) / peak, 3),
        "paper_speedup_measured": PAPER_GATED,
    }  # fmt: skip


def part_of_it(tiles: int) -> Machine:
    """So many tiles of each column."""
    text = (FOLDER / f"{NAME}.toml").read_text()
    for old, new in (
        (f"y = {TILES}\n", f"y = {tiles}\n"),
        (f"(d0, (d1 + 1) mod {TILES})", f"(d0, (d1 + 1) mod {tiles})"),
    ):
        if text.count(old) != 1:
            raise AssertionError(f"{NAME}.toml has no single {old!r}")
        text = text.replace(old, new)
    return machine_of(module_of_toml(text, NAME))


def _scaling() -> list[Mapping[str, Value]]:
    """The largest product on one, two and four tiles of each column."""
    cycles = {n: _multiplied("bfloat16", max(SIZES), part_of_it(n)).best.run.cycles for n in (1, 2, 4)}
    return [
        {
            "name": f"npu scaling {n} x {TILES}", "cycles": cycles[n], "over_1x4": round(cycles[1] / cycles[n], 3),
            "paper_over_1x4_measured": PAPER_SCALING[n],
        }
        for n in PAPER_SCALING
    ]  # fmt: skip
