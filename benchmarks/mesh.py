"""Triton kernels on meshes: our plans beside two fixed templates, traffic, the model beside the simulator, seconds.

The templates are the TL paper's: one dimension (each core loads its part of the smaller matrix, the other is broadcast
to all) and two (rows and columns), both without hoisting; their blocks are chosen by our model as ours are. 140 GEMMs
a mesh; `limit` takes so many, evenly. The published configurations under TileLoom's own model are not run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.cost import dram_bytes
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.facts import ProgramFacts, facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan
from penstock.compiler.mesh.mapping import Mapping as Placement
from penstock.compiler.mesh.planner import MeshAllowed, Planned, Reuse, all_plans, plan_programs
from penstock.compiler.mesh.simulate import simulate_plan
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh.triton.blocks import programs_of
from penstock.compiler.mesh.triton.read import KernelFile, open_kernel
from penstock.compiler.tasks.source import ProgramText

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "meshes"
MESHES = ("mesh-1x8", "mesh-4x8", "mesh-8x8")
SIZES = (256, 1024, 4096, 16384)
PAIRS = [(m, n) for m in SIZES for n in SIZES] + [(512, 512), (2048, 2048), (8192, 8192), (2048, 8192)]
SHAPES = [(m, n, k) for k in (256, 512, 1024, 2048, 4096, 8192, 16384) for m, n in PAIRS]
WIDE = 32768
IRREGULAR = [(WIDE, WIDE, k) for k in (256, 512, 1024, 2048)] + [(WIDE, n, WIDE) for n in (256, 512, 1024, 2048)]
EXHAUSTIVE = (256, 512, 1024)
PAPER_TFLOPS = {4096: 40.44, 5120: 41.61, 6144: 42.47}
Row = dict[str, Value]


def run(only: str = "", limit: int = 0) -> Figures:
    gemm, attention = (_kernel(name) for name in ("gemm", "flash_attention"))
    rows: list[Mapping[str, Value]] = []
    for mesh in MESHES:
        machine = load_machine(mesh)
        shapes = SHAPES[:: max(1, len(SHAPES) // limit)][:limit] if limit else SHAPES
        for shape in [*shapes, *(IRREGULAR[::4] if limit else IRREGULAR)]:
            if only in (name := f"gemm {mesh} {'x'.join(map(str, shape))}"):
                rows.append(_gemm(name, gemm, machine, shape))
    rows += [_exhaustive(gemm, mesh, size) for mesh in MESHES for size in EXHAUSTIVE if only in f"exhaustive {mesh}"]
    if only in "attention":
        rows.append(_attention(attention, load_machine("mesh-8x8")))
    for size, paper in PAPER_TFLOPS.items():
        if only in (name := f"wormhole {size}"):
            row = _planned(name, gemm, load_machine("wormhole"), (size, size, size))[0]
            rows.append({**row, "tflops": 2 * size**3 / float(str(row["cycles"])) / 1e3, "paper_tflops": paper})
    return Figures("simulated", rows, _summary(rows))


def _summary(rows: list[Mapping[str, Value]]) -> dict[str, Value]:
    def column(key: str) -> list[float]:
        return [float(value) for row in rows if isinstance(value := row.get(key), int | float)]

    both = column("over_1d") + column("over_2d")
    errors, held = column("model_error_pct"), column("top5_holds_best")
    saved, attention = column("traffic_saved_pct"), column("attention_speedup")
    return {
        "over_1d_geomean": statistics.geometric_mean(column("over_1d")) if column("over_1d") else None,
        "over_2d_geomean": statistics.geometric_mean(column("over_2d")) if column("over_2d") else None,
        "worst_over_template": min(both, default=None),
        "traffic_saved_pct": statistics.fmean(saved) if saved else None,
        "attention_speedup": attention[0] if attention else None,
        "model_median_error_pct": statistics.median(errors) if errors else None,
        "model_worst_error_pct": max(errors, default=None),
        "top5_holds_best_pct": 100 * statistics.fmean(held) if held else None,
        "max_plan_s": max(column("plan_s"), default=None),
        "published_above_best": None,
    }


def _kernel(name: str) -> KernelFile:
    path = EXAMPLES / f"{name}.py"
    return open_kernel(ProgramText(path.name, path.read_text()))


def _sizes(shape: tuple[int, int, int]) -> dict[str, int | float | str]:
    return dict(zip("MNK", shape, strict=True))


def _planned(name: str, kernel: KernelFile, machine: Machine, shape: tuple[int, int, int]) -> tuple[Row, Planned]:
    began = time.process_time()
    planned = plan_programs(programs_of(kernel, _sizes(shape)), machine, 5, Reuse())
    best = planned.best
    seconds = time.process_time() - began
    row: Row = {
        "name": name, "plan_s": seconds, "cycles": best.run.cycles, "extended": best.run.extended,
        "modelled": best.modelled, "model_error_pct": best.error_pct, "bound": planned.bound,
        "gap_pct": planned.gap_pct,
    }  # fmt: skip
    return row, planned


def _gemm(name: str, kernel: KernelFile, machine: Machine, shape: tuple[int, int, int]) -> Row:
    row, planned = _planned(name, kernel, machine, shape)
    programs, traffic = programs_of(kernel, _sizes(shape)), Traffic(machine)
    smaller = "a_ptr" if shape[0] <= shape[1] else "b_ptr"
    for key, allowed in (("over_1d", _one_dim(smaller)), ("over_2d", _two_dims)):
        try:
            other = plan_programs(programs, machine, 5, Reuse(temporal=False, allowed=allowed))
            row[key] = other.best.run.cycles / planned.best.run.cycles
        except PenstockError:
            row[key] = None  # the template has no plan here
    alone = plan_programs([planned.best.plan.facts.program], machine, 5, Reuse(spatial=False)).best
    row["traffic_saved_pct"] = 100 * (1 - dram_bytes(planned.best.plan, traffic) / dram_bytes(alone.plan, traffic))
    return row


def _one_dim(smaller: str) -> MeshAllowed:
    def allowed(facts: ProgramFacts, mapping: Placement, loads: tuple[LoadPlan, ...]) -> bool:
        full = tuple(d for d, n in enumerate(mapping.cores) if n > 1)
        wanted = [() if fact.load.access.tensor == smaller else full for fact in facts.loads]
        return [load.share for load in loads] == wanted and all(
            load.level in (INSIDE, len(mapping.order)) for load in loads
        )

    return allowed


def _two_dims(facts: ProgramFacts, mapping: Placement, loads: tuple[LoadPlan, ...]) -> bool:
    shares = sorted(load.share for load in loads)
    return shares == ([(0,), (1,)] if min(mapping.cores) > 1 else [(), (1,)])


def _exhaustive(kernel: KernelFile, mesh: str, size: int) -> Row:
    machine = load_machine(mesh)
    blocks = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64}
    program = programs_of(kernel, {**_sizes((size, size, size)), **blocks})[0]
    best = plan_programs([program], machine, 5, Reuse()).best.run.cycles
    traffic = Traffic(machine)
    every = [simulate_plan(plan, traffic).cycles for plan in all_plans(facts_of(program, machine), traffic, Reuse())]
    return {"name": f"exhaustive {mesh} {size}", "plans": len(every), "top5_holds_best": best <= min(every) * 1.0001}


def _attention(kernel: KernelFile, machine: Machine) -> Row:
    programs = programs_of(kernel, {"HEADS": 32, "LENGTH": 8192})
    ours = plan_programs(programs, machine, 5, Reuse()).best
    reloading = plan_programs(programs, machine, 5, Reuse(spatial=False, temporal=False)).best
    return {"name": "attention 8192 tokens, width 2048", "attention_speedup": reloading.run.cycles / ours.run.cycles}
