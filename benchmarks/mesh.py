"""Triton kernels on meshes: our plans beside two fixed templates, traffic, the model beside the simulator, seconds.

The templates are the TL paper's: one dimension (each core loads its part of the smaller matrix, the other is broadcast
to all) and two (rows and columns), both without hoisting. `over_1d` and `over_2d` let them choose their blocks as our
plans do (the best of five by our model, simulated); with `fixed_blocks` a rule of the library gives them, as in the
paper. `most_over_…` is what none of our plans could exceed, by the bound below all of them. 140 GEMMs a mesh and the
paper's irregular ones;
`limit` takes so many, evenly. Two processes work side by side.
Of the memory's traffic, `sharing_saved_pct` is what sharing saves of a plan itself, beside the same with each core
fetching all that it reads; `traffic_saved_pct` what our plan saves beside the fastest plan of the same blocks that
shares nothing, with order and hoists of its own choice; `traffic_saved_free_blocks_pct` the same with blocks of its own
choice too. The paper turns its sharing off and says 70 %, not whether blocks stay.
`published_above_best` counts published shapes where, by TileLoom's own costs, a plan of the space is below the one that
is found as the best by the model: every plan of one block is weighed there.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.cost import dram_bytes, modelled_cycles
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.facts import facts_of
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.planner import DEFAULT_TOP, TEMPLATE_TOP, Planned, Reuse, all_plans, plan_programs
from penstock.compiler.mesh.program import TileProgram
from penstock.compiler.mesh.simulate import simulate_plan
from penstock.compiler.mesh.templates import ROWS_AND_COLUMNS, MeshTemplate
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh.triton.blocks import BLOCKS, programs_of
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
PUBLISHED = (256, 2048, 16384)
ATTENTION_TILES = {"BLOCK_M": 32, "BLOCK_N": 32}
"""One tile of queries by one of keys: what a library takes that is told nothing."""
PAPER_TFLOPS = {4096: 40.44, 5120: 41.61, 6144: 42.47}
PROCESSES = 2
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
    published = list(itertools.product(PUBLISHED, repeat=3))[:: 9 if limit else 1]
    jobs += [("published", "", shape) for shape in published if only in "published"]
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
    if kind == "published":
        return [_published((m, n, k))]
    return _gemm((m, n, k), name) if kind == "gemm" else [_exhaustive(_kernel("gemm"), name, (m, n, k))]


def _summary(rows: list[Mapping[str, Value]]) -> dict[str, Value]:
    def column(key: str) -> list[float]:
        return [float(value) for row in rows if isinstance(value := row.get(key), int | float)]

    both = [
        value for key in ("over_1d", "over_2d", "over_1d_fixed_blocks", "over_2d_fixed_blocks") for value in column(key)
    ]
    above = column("best_above_least")
    whole = [
        float(value) for row in rows
        if "mesh-8x8" in str(row["name"]) and isinstance(value := row.get("traffic_saved_pct"), int | float)
    ]  # fmt: skip
    errors, held = column("model_error_pct"), column("top5_holds_best")
    saved, attention = column("traffic_saved_pct"), column("attention_speedup")
    return {
        "over_1d_geomean": _geomean(column("over_1d")),
        "over_2d_geomean": _geomean(column("over_2d")),
        "over_1d_fixed_blocks_geomean": _geomean(column("over_1d_fixed_blocks")),
        "over_2d_fixed_blocks_geomean": _geomean(column("over_2d_fixed_blocks")),
        **{
            f"most_over_{key}_geomean": _geomean(_most(rows, f"over_{key}"))
            for key in ("1d_fixed_blocks", "2d_fixed_blocks")
        },
        "worst_over_template": min(both, default=None),
        "sharing_saved_pct": statistics.fmean(column("sharing_saved_pct")) if saved else None,
        "traffic_saved_pct": statistics.fmean(saved) if saved else None,
        "traffic_saved_free_blocks_pct": statistics.fmean(column("traffic_saved_free_blocks_pct")) if saved else None,
        "traffic_saved_8x8_pct": statistics.fmean(whole) if whole else None,
        "attention_speedup": attention[0] if attention else None,
        "attention_fixed_blocks_speedup": max(column("attention_fixed_blocks_speedup"), default=None),
        "model_median_error_pct": statistics.median(errors) if errors else None,
        "model_worst_error_pct": max(errors, default=None),
        "top5_holds_best_pct": 100 * statistics.fmean(held) if held else None,
        "median_plan_s": statistics.median(column("plan_s")) if column("plan_s") else None,
        "max_plan_s": max(column("plan_s"), default=None),
        "extended": sum(1 for row in rows if row.get("extended") is True),
        "left_out": sum(int(value) for value in column("left_out")),
        "published": len(above),
        "published_above_best": sum(value > 1 + 1e-9 for value in above) if above else None,
        "median_gap_pct": statistics.median(column("gap_pct")) if column("gap_pct") else None,
    }


def _most(rows: list[Mapping[str, Value]], key: str) -> list[float]:
    """How much faster than a template a plan could be that takes no longer than the bound."""
    found: list[float] = []
    for row in rows:
        ahead, cycles, bound = (row.get(name) for name in (key, "cycles", "bound"))
        if isinstance(ahead, int | float) and isinstance(cycles, int | float) and isinstance(bound, int | float):
            found.append(float(ahead) * cycles / bound)
    return found


def _geomean(values: list[float]) -> float | None:
    return statistics.geometric_mean(values) if values else None


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
    smaller = 0 if shape[0] <= shape[1] else 1
    rows: list[Row] = []
    for mesh, name in names.items():
        if only not in name:
            continue
        machine = load_machine(mesh)
        row, planned = _planned(name, programs, read_s, machine)
        for key, template in (("over_1d", MeshTemplate(smaller)), ("over_2d", ROWS_AND_COLUMNS)):
            fixed = _fixed_blocks(programs, shape, machine, both=template is ROWS_AND_COLUMNS)
            for end, kept in (("", programs), ("_fixed_blocks", fixed)):
                row[key + end] = None  # where the template has no plan
                with suppress(PenstockError):
                    other = plan_programs(kept, machine, TEMPLATE_TOP, Reuse(temporal=False, template=template))
                    row[key + end] = round(other.best.run.cycles / planned.best.run.cycles, 9)
        ours, traffic = planned.best.plan, Traffic(machine)
        alone, freely = (
            plan_programs(kept, machine, DEFAULT_TOP, Reuse(spatial=False)).best.plan
            for kept in ([ours.facts.program], programs)
        )
        unshared = replace(ours, loads=tuple(replace(load, share=()) for load in ours.loads))
        row["sharing_saved_pct"] = 100 * (1 - dram_bytes(ours, traffic) / dram_bytes(unshared, traffic))
        row["traffic_saved_pct"] = 100 * (1 - dram_bytes(ours, traffic) / dram_bytes(alone, traffic))
        row["traffic_saved_free_blocks_pct"] = 100 * (1 - dram_bytes(ours, traffic) / dram_bytes(freely, traffic))
        rows.append(row)
    return rows


def _fixed_blocks(
    programs: list[TileProgram], shape: tuple[int, int, int], machine: Machine, both: bool
) -> list[TileProgram]:
    """The blocks of a library: a core's share of the result, at most 256, and two tiles of 32 along K."""
    m, n, _ = shape
    rows, columns = (1, *machine.extents)[-2:]
    if not both:
        rows, columns = (rows * columns, 1) if m <= n else (1, rows * columns)
    sizes = {"BLOCK_SIZE_M": m // rows, "BLOCK_SIZE_N": n // columns, "BLOCK_SIZE_K": 64}
    blocks = {name: max(size for size in BLOCKS if size <= max(wanted, BLOCKS[0])) for name, wanted in sizes.items()}
    return [program for program in programs if all(program.blocks[name] == size for name, size in blocks.items())]


def _wormhole(size: int) -> Row:
    programs, read_s = _read(_kernel("gemm"), (size, size, size))
    row, planned = _planned(f"wormhole {size}", programs, read_s, load_machine("wormhole"))
    return {**row, "tflops": 2 * size**3 / planned.best.run.cycles / 1e3, "paper_tflops": PAPER_TFLOPS[size]}


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


def _published(shape: tuple[int, int, int]) -> Row:
    """Every plan of blocks of 128 weighed with TileLoom's costs, beside the best that the planner finds by them."""
    machine = load_machine("wormhole")
    blocks = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
    program = programs_of(_kernel("gemm"), {**_sizes(shape), **blocks})[0]
    found = min(row.modelled for row in plan_programs([program], machine, 1, Reuse()).measured)
    traffic = Traffic(machine)
    every = [modelled_cycles(plan, traffic) for plan in all_plans(facts_of(program, machine), traffic, Reuse())]
    name = f"published {'x'.join(map(str, shape))}"
    return {"name": name, "plans": len(every), "modelled": found, "best_above_least": found / min(every)}


def _attention(kernel: KernelFile, machine: Machine) -> Row:
    programs = programs_of(kernel, {"HEADS": 32, "LENGTH": 8192})
    ours = plan_programs(programs, machine, DEFAULT_TOP, Reuse()).best
    reloading = plan_programs(programs, machine, DEFAULT_TOP, Reuse(spatial=False, temporal=False)).best
    tiles = [program for program in programs if set(ATTENTION_TILES.items()) <= set(program.blocks.items())]
    by_rule = plan_programs(tiles, machine, DEFAULT_TOP, Reuse(spatial=False, temporal=False)).best
    traffic = Traffic(machine)
    return {
        "name": "attention 8192 tokens, width 2048", "cycles": ours.run.cycles,
        "attention_speedup": round(reloading.run.cycles / ours.run.cycles, 9),
        "attention_fixed_blocks_speedup": round(by_rule.run.cycles / ours.run.cycles, 9),
        "attention_traffic_saved_pct": 100 * (1 - dram_bytes(ours.plan, traffic) / dram_bytes(by_rule.plan, traffic)),
    }  # fmt: skip
