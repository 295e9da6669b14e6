"""Triton kernels on meshes: our plans beside two fixed templates, traffic, the model beside the simulator, seconds.

The templates are the TL paper's: one dimension (each core loads its part of the smaller matrix, the other is broadcast
to all) and two (rows and columns), both without hoisting; their blocks are the best of five by our model, simulated.
140 GEMMs a mesh and the paper's irregular ones; `limit` takes so many, evenly. Two processes work side by side. The
published configurations under TileLoom's own model are not run.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.cost import dram_bytes
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.facts import ProgramFacts, facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import INSIDE, LoadPlan
from penstock.compiler.mesh.mapping import Mapping as Placement
from penstock.compiler.mesh.planner import DEFAULT_TOP, MeshAllowed, Planned, Reuse, all_plans, plan_programs
from penstock.compiler.mesh.program import TileProgram
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
EXHAUSTIVE = [(m, n, k) for k in (256, 1024) for m, n in ((256, 256), (256, 1024), (512, 512), (1024, 1024))]
PAPER_TFLOPS = {4096: 40.44, 5120: 41.61, 6144: 42.47}
PROCESSES = 2
TEMPLATE_TOP = 5
Row = dict[str, Value]


def run(only: str = "", limit: int = 0) -> Figures:
    shapes = SHAPES[:: max(1, len(SHAPES) // limit)][:limit] if limit else SHAPES
    jobs: list[tuple[str, str, tuple[int, ...]]] = [
        ("gemm", only, shape) for shape in [*shapes, *(IRREGULAR[::4] if limit else IRREGULAR)]
    ]
    every = EXHAUSTIVE[: limit or None]
    jobs += [("exhaustive", mesh, shape) for mesh in MESHES for shape in every if only in f"exhaustive {mesh}"]
    jobs += [("attention", "", ())] if only in "attention" else []
    jobs += [("wormhole", "", (size,)) for size in PAPER_TFLOPS if only in f"wormhole {size}"]
    with ProcessPoolExecutor(PROCESSES) as pool:
        rows: list[Mapping[str, Value]] = [row for found in pool.map(_job, jobs) for row in found]
    return Figures("simulated", rows, _summary(rows))


def _job(job: tuple[str, str, tuple[int, ...]]) -> list[Row]:
    kind, name, sizes = job
    if kind == "attention":
        return [_attention(_kernel("flash_attention"), load_machine("mesh-8x8"))]
    if kind == "wormhole":
        return [_wormhole(sizes[0])]
    m, n, k = sizes
    return _gemm((m, n, k), name) if kind == "gemm" else [_exhaustive(_kernel("gemm"), name, (m, n, k))]


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
        "median_plan_s": statistics.median(column("plan_s")) if column("plan_s") else None,
        "max_plan_s": max(column("plan_s"), default=None),
        "extended": sum(1 for row in rows if row.get("extended") is True),
        "left_out": sum(int(value) for value in column("left_out")),
        "published_above_best": None,
    }


def _kernel(name: str) -> KernelFile:
    path = EXAMPLES / f"{name}.py"
    return open_kernel(ProgramText(path.name, path.read_text()))


def _sizes(shape: tuple[int, int, int]) -> dict[str, int | float | str]:
    return dict(zip("MNK", shape, strict=True))


def _read(kernel: KernelFile, shape: tuple[int, int, int]) -> tuple[list[TileProgram], float]:
    began = time.process_time()
    programs = programs_of(kernel, _sizes(shape))
    return programs, time.process_time() - began


def _planned(name: str, programs: list[TileProgram], read_s: float, machine: Machine) -> tuple[Row, Planned]:
    """`plan_s` is CPU seconds, with the reading of the kernel for all of its blocks."""
    began = time.process_time()
    planned = plan_programs(programs, machine, DEFAULT_TOP, Reuse())
    best = planned.best
    seconds = read_s + time.process_time() - began
    row: Row = {
        "name": name, "plan_s": seconds, "cycles": best.run.cycles, "extended": best.run.extended,
        "modelled": best.modelled, "model_error_pct": best.error_pct, "bound": planned.bound,
        "gap_pct": planned.gap_pct, "weighed": planned.weighed, "left_out": planned.left_out,
    }  # fmt: skip
    return row, planned


def _gemm(shape: tuple[int, int, int], only: str) -> list[Row]:
    names = {mesh: f"gemm {mesh} {'x'.join(map(str, shape))}" for mesh in MESHES}
    if not any(only in name for name in names.values()):
        return []
    programs, read_s = _read(_kernel("gemm"), shape)
    smaller = "a_ptr" if shape[0] <= shape[1] else "b_ptr"
    rows: list[Row] = []
    for mesh, name in names.items():
        if only not in name:
            continue
        machine = load_machine(mesh)
        row, planned = _planned(name, programs, read_s, machine)
        for key, allowed in (("over_1d", _one_dim(smaller)), ("over_2d", _two_dims)):
            try:
                other = plan_programs(programs, machine, TEMPLATE_TOP, Reuse(temporal=False, allowed=allowed))
                row[key] = other.best.run.cycles / planned.best.run.cycles
            except PenstockError:
                row[key] = None  # the template has no plan here
        ours, traffic = planned.best.plan, Traffic(machine)
        alone = plan_programs([ours.facts.program], machine, DEFAULT_TOP, Reuse(spatial=False)).best
        row["traffic_saved_pct"] = 100 * (1 - dram_bytes(ours, traffic) / dram_bytes(alone.plan, traffic))
        rows.append(row)
    return rows


def _wormhole(size: int) -> Row:
    programs, read_s = _read(_kernel("gemm"), (size, size, size))
    row, planned = _planned(f"wormhole {size}", programs, read_s, load_machine("wormhole"))
    return {**row, "tflops": 2 * size**3 / planned.best.run.cycles / 1e3, "paper_tflops": PAPER_TFLOPS[size]}


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


def _exhaustive(kernel: KernelFile, mesh: str, shape: tuple[int, int, int]) -> Row:
    """Every plan with blocks of 64 simulated: whether the five best by the model have the best of all."""
    machine = load_machine(mesh)
    blocks = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64}
    program = programs_of(kernel, {**_sizes(shape), **blocks})[0]
    best = plan_programs([program], machine, 5, Reuse()).best.run.cycles
    traffic = Traffic(machine)
    every = [simulate_plan(plan, traffic).cycles for plan in all_plans(facts_of(program, machine), traffic, Reuse())]
    name = f"exhaustive {mesh} {'x'.join(map(str, shape))}"
    return {"name": name, "plans": len(every), "top5_holds_best": best <= min(every) * 1.0001}


def _attention(kernel: KernelFile, machine: Machine) -> Row:
    programs = programs_of(kernel, {"HEADS": 32, "LENGTH": 8192})
    ours = plan_programs(programs, machine, DEFAULT_TOP, Reuse()).best
    reloading = plan_programs(programs, machine, DEFAULT_TOP, Reuse(spatial=False, temporal=False)).best
    return {"name": "attention 8192 tokens, width 2048", "attention_speedup": reloading.run.cycles / ours.run.cycles}
