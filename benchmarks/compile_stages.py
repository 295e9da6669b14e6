"""How long each stage of `penstock compile` takes for the digits MLP, in a fresh process as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.registry import WALL_CLOCK, Figures, Value
from penstock.compiler.errors import PenstockError

ROOT = Path(__file__).resolve().parents[1]
MODEL = "examples/digits_mlp.py:model"
TRIALS = 48
TIMEOUT_SECONDS = 900

# Runs in the child: the command's own functions, with their stages reported instead of shown.
CHILD = """
import json, sys, time
began = time.monotonic()
from pathlib import Path
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.cli.options import check_target, write_output
from penstock.services.cli.stages import Stages
from penstock.services.jobs.model import load_program
from penstock.services.jobs.package import build_package
from penstock.services.jobs.search import find_design
from penstock.services.jobs.search_settings import SearchSettings
model, trials, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
stages = Stages(quiet=True)
with stages.running():
    target = check_target({"platform": "u55c", "quantize": "w8a8", "evidence": "simulated"}, None, None)
    stages.begin("import the model")
    program = load_program(model, target.quantize)
    stages.begin("search")
    choice, exploration = find_design(program, target.platform, target.clock_mhz, target.quantize, trials,
                                      SearchSettings(), lambda done, most: None, stage=stages.begin)
    built = build_package(program, choice.finished.design, ToolRunner(), exploration, stages.begin)
    stages.begin("write the package")
    archive = write_output(built, out)
print(json.dumps({"stages": stages.seconds, "total": time.monotonic() - began, "passed": built.checked.passed,
                  "bytes": archive.stat().st_size}))
"""


def run() -> Figures:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        command = [sys.executable, "-c", CHILD, MODEL, str(TRIALS), f"{folder}/out"]
        answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    if answer.returncode != 0:
        last = answer.stderr.strip().splitlines()[-1:] or [f"exit code {answer.returncode}"]
        raise PenstockError(code="bench-failed", what=last[0], where=f"compile {MODEL}", hint="try penstock compile")
    found = json.loads(answer.stdout.splitlines()[-1])
    seconds: dict[str, float] = found["stages"]
    rows: list[Mapping[str, Value]] = [{"stage": stage, "seconds": round(value, 3)} for stage, value in seconds.items()]
    search = seconds["search"]
    return Figures(
        evidence=WALL_CLOCK,
        rows=rows,
        summary={
            "total_seconds": round(found["total"], 2),
            "trials_per_second": round(TRIALS / search, 1) if search else None,
            "package_bytes": found["bytes"],
            "verified": found["passed"],
        },
    )
