"""The benchmarks by name. Each is a module with `run() -> Figures`, imported only when it is asked for."""

from __future__ import annotations

import inspect
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

# What is timed here is this program on this machine; figures of an accelerator carry their own evidence.
WALL_CLOCK = "wall-clock"

Value = float | int | str | bool | None


@dataclass(frozen=True)
class Figures:
    """What a benchmark found: records, and the few figures that are asked for, by name."""

    evidence: str
    rows: list[Mapping[str, Value]]
    summary: Mapping[str, Value]


@dataclass(frozen=True)
class Benchmark:
    module: str
    summary: str


BENCHMARKS: dict[str, Benchmark] = {
    "blocks": Benchmark(
        "benchmarks.blocks", "decoder blocks in W8A8, searched and simulated: cycles beside bandwidth and arithmetic"
    ),
    "claims": Benchmark("benchmarks.claims", "steps claimed and finished a second, on an embedded Postgres"),
    "cnn": Benchmark(
        "benchmarks.cnn", "convolutional networks in W8A8 under published budgets of DSPs: frames a second, efficiency"
    ),
    "compile": Benchmark("benchmarks.compile_blocks", "seconds per stage, decoder blocks of real size to HLS C++"),
    "csynth": Benchmark(
        "benchmarks.csynth_networks", "csynth's latency against RTL, and the simulator's fed with csynth"
    ),
    "dashboard": Benchmark(
        "benchmarks.dashboard",
        "pages of 10,000 trials, 20 open tabs, from an event to the screen, a real design drawn: in Chromium",
    ),
    "dse": Benchmark(
        "benchmarks.dse", "designs modelled a second, two workers on one study, the search against optima"
    ),
    "explore": Benchmark(
        "benchmarks.explore", "the search with its defaults under five budgets: cycles, bound, gap, seconds"
    ),
    "fronts": Benchmark(
        "benchmarks.fronts", "the front of the search with its defaults, beside NSGA-II with four times the trials"
    ),
    "fifo": Benchmark("benchmarks.fifo", "FIFO sizing: bits and latency by every way, against the optimum where known"),
    "hida": Benchmark(
        "benchmarks.hida.bench",
        "ResNet-18 over parallel factors and tiles, lanes by work and by neighbours or not, LeNet: HIDA's ablations",
    ),
    "hls-in": Benchmark(
        "benchmarks.hls_in", "public HLS C++ from source alone: II, depth and area against csynth, cycles against RTL"
    ),
    "kernels": Benchmark(
        "benchmarks.kernels", "matrix kernels and layers in fp32 under three DSP budgets, beside published designs"
    ),
    "llm": Benchmark(
        "benchmarks.llm", "language models in W8A8 beside published ones: GPT-2-medium's texts, memory, cards, seconds"
    ),
    "mesh": Benchmark(
        "benchmarks.mesh", "Triton kernels planned onto meshes, beside fixed templates; the model beside the simulator"
    ),
    "models": Benchmark(
        "benchmarks.models", "models that people have through penstock compile: which compile, agree and fit"
    ),
    "polybench": Benchmark(
        "benchmarks.polybench_explore", "PolyBench as plain C, explored within HIDA's resources, beside published tools"
    ),
    "networks": Benchmark("benchmarks.networks", "simulated cycles of real designs against RTL"),
    "open-rtl": Benchmark(
        "benchmarks.open_rtl", "kernels measured a minute, a systolic array at its peak, area by yosys"
    ),
    "package": Benchmark("benchmarks.compile_stages", "seconds per stage from PyTorch to a package, digits MLP"),
    "partition": Benchmark("benchmarks.partition", "bits that cross between three dies: exact against greedy"),
    "profiles": Benchmark(
        "benchmarks.profiles", "kept profiles found a second; tool runs when several workers want the same kernels"
    ),
    "service": Benchmark(
        "benchmarks.service",
        "a private service: start, one run by steps, stop; submissions, steps, events and pages under load",
    ),
    "simulation": Benchmark("benchmarks.simulation", "seconds to simulate long chains and the GPT-2 block, by mode"),
    "tasks": Benchmark(
        "benchmarks.task_programs", "task programs equal to NumPy, and a systolic array's share of its peak"
    ),
}


def run(name: str, data: Path | None = None, **asked: str | int | Path) -> dict[str, Any]:
    """Run one benchmark, on the files of a folder if one is given; the object that `penstock bench` prints.

    `asked` is what it is to run, and how: see `takes`.
    """
    program = import_module(BENCHMARKS[name].module)
    figures: Figures = program.run(**asked) if data is None else program.run(data, **asked)
    return {
        "name": name,
        "machine": machine(),
        "evidence": figures.evidence,
        "rows": [dict(row) for row in figures.rows],
        "summary": dict(figures.summary),
    }


def takes(name: str) -> set[str]:
    """What a benchmark can be asked for: `only`, a part of its rows' names, `limit`, how many, `options` for what it
    runs, and `keep`, a file of rows that are there already."""
    return {"only", "limit", "options", "keep"} & set(
        inspect.signature(import_module(BENCHMARKS[name].module).run).parameters
    )


def machine() -> dict[str, Value]:
    """What the figures were taken on."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux: the name that Python knows must do
    return platform.processor() or platform.machine()


def _memory_gb() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None
