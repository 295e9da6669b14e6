"""How long a decoder block of real size takes from PyTorch to streams, stage by stage, with no weights loaded.

Each block compiles in a process of its own, so that its peak memory is its own. The clock starts when all is imported:
PyTorch imports much of itself at the first export, so a small MLP is imported before (`warm_up_s` has all of that).
The design is the default one. C++ is not written: its largest part would be the weights, which are not there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.registry import WALL_CLOCK, Figures, Value
from compiler.errors import PenstockError

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = ("gpt2", "llama", "qwen", "gemma")
MODES = {"prefill": "mode=prefill&seq=128", "decode": "mode=decode&seq=1&cache=512"}
TIMEOUT_SECONDS = 600

CHILD = """
import json, resource, sys, time, warnings
started = time.monotonic()
warnings.simplefilter("ignore")
from compiler.analysis.graph import read_graph
from compiler.design.default import default_design
from compiler.frontend.importer import import_loaded
from compiler.frontend.loader import load_model
from compiler.frontend.reference import parse_reference
from compiler.pipeline.prepare import prepare
from compiler.pipeline.stages import itensor_passes, last_stage, stream_passes
import_loaded(load_model(parse_reference("zoo:mlp"), weights=False))
warm_up = time.monotonic() - started
marks = []
begin = lambda stage: marks.append((stage, time.monotonic()))
begin("build")
program = import_loaded(load_model(parse_reference(sys.argv[1]), weights=False), begin)
begin("simplify")
program = prepare(program)
begin("tile")
graph = read_graph(program.module)
design = default_design(graph, "u55c", 300.0)
tiled = last_stage(program.module, itensor_passes(design))
begin("lower to streams")
streams = last_stage(tiled, stream_passes(design))
begin("end")
seconds = {stage: after - start for (stage, start), (_, after) in zip(marks, marks[1:])}
weights = sum(value.size for value in program.params.values())
print(json.dumps({"warm_up": warm_up, "seconds": seconds, "operations": len(graph.nodes), "weights": weights,
                  "tasks": sum(op.name == "stream.task" for op in streams.walk()),
                  "rss_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20}))
"""


def run() -> Figures:
    rows: list[Mapping[str, Value]] = []
    for family in FAMILIES:
        for mode, options in MODES.items():
            rows.append({"block": family, "mode": mode, **compile_block(f"zoo:{family}?size=real&{options}")})
    return Figures(
        evidence=WALL_CLOCK,
        rows=rows,
        summary={
            "max_total_s": max(float(row["total_s"] or 0) for row in rows),
            "max_rss_gb": max(float(row["rss_gb"] or 0) for row in rows),
        },
    )


def compile_block(model: str) -> dict[str, Value]:
    answer = subprocess.run(
        [sys.executable, "-c", CHILD, model],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if answer.returncode != 0:
        last = answer.stderr.strip().splitlines()[-1:] or [f"exit code {answer.returncode}"]
        raise PenstockError(code="bench-failed", what=last[0], where=f"compile {model}", hint="try penstock compile")
    found: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    stages = {f"{stage.replace(' ', '_')}_s": round(value, 3) for stage, value in found["seconds"].items()}
    return {
        **stages,
        "total_s": round(sum(found["seconds"].values()), 2),
        "warm_up_s": round(found["warm_up"], 2),
        "operations": found["operations"],
        "tasks": found["tasks"],
        "weights": found["weights"],
        "rss_gb": round(found["rss_gb"], 2),
    }
