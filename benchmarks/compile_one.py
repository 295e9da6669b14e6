"""One model from PyTorch to HLS C++ in a process of its own: seconds per stage and peak memory, as one line of JSON.

`python -m benchmarks.compile_one MODEL`. Weights are not loaded: parameters stream from external memory.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from pathlib import Path

STARTED = time.perf_counter()
warnings.simplefilter("ignore")

# ruff: noqa: E402 - how long the imports take is one of the figures
from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.pipeline import Lowered, emit, prepare
from penstock.compiler.pipeline.stages import itensor_passes, stream_passes
from penstock.compiler.reference import parse_reference
from penstock.compiler.transforms.passes import ModulePass

PLATFORM, PART, CLOCK_MHZ = "u55c", "xcu55c-fsvh2892-2L-e", 300.0


def peak_kib() -> int:
    """The most memory that this process held. What `getrusage` says is at least that of whoever started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


class Clock:
    """Which stage began when."""

    def __init__(self) -> None:
        self.marks: list[tuple[str, float]] = []

    def begin(self, stage: str) -> None:
        self.marks.append((stage, time.perf_counter()))

    def seconds(self) -> dict[str, float]:
        """By stage; the last one is still running."""
        found: dict[str, float] = {}
        for (stage, start), (_, end) in zip(self.marks, [*self.marks[1:], ("", time.perf_counter())], strict=True):
            found[stage] = found.get(stage, 0.0) + end - start
        return found


def compile_model(model: str, clock: Clock, folder: Path) -> Lowered:
    """Every step of `penstock compile` that makes something, with the default design: no search, no verification."""
    clock.begin("build")
    program = import_loaded(load_model(parse_reference(model), weights=False), clock.begin)
    clock.begin("simplify")
    program = prepare(program)
    clock.begin("design")
    design = default_design(read_graph(program.module), PLATFORM, CLOCK_MHZ, weights="stream")

    def apply(passes: tuple[tuple[str, ModulePass], ...]) -> None:
        nonlocal module
        for stage, one in passes:
            clock.begin(stage)
            module = one.apply(module)
        clock.begin("verify")
        module.verify()

    module = program.module
    apply(itensor_passes(design))
    itensor = module
    apply(stream_passes(design))
    clock.begin("emit")
    lowered = Lowered(program, design, itensor, module, program)
    emit(lowered, folder, part=PART, clock_mhz=CLOCK_MHZ)
    return lowered


def main(model: str) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        compile_model("zoo:mlp", Clock(), Path(folder) / "warm-up")  # PyTorch imports much of itself on first use
        warm_up, clock, out = time.perf_counter() - STARTED, Clock(), Path(folder) / "model"
        busy = time.process_time()
        lowered = compile_model(model, clock, out)
        seconds, busy = clock.seconds(), time.process_time() - busy
        figures = {
            "warm_up_s": warm_up,
            "seconds": seconds,
            "cpu_s": busy,
            "operations": len(lowered.graph.nodes),
            "tasks": len(lowered.tasks),
            "weights": sum(value.size for value in lowered.program.params.values()),
            "cpp_lines": len((out / "hls" / "penstock_top.cpp").read_text().splitlines()),
            "rss_gb": peak_kib() / 2**20,
        }
    print(json.dumps(figures))


if __name__ == "__main__":
    main(sys.argv[1])
