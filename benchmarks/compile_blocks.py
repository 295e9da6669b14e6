"""How long a decoder block of real size takes from PyTorch to HLS C++, stage by stage, with no weights loaded.

Each block compiles in a process of its own, so that its peak memory is its own. The clock starts when all is imported:
PyTorch imports much of itself at the first export, so a small MLP is compiled before (`warm_up_s` has all of that).
The design is the default one, but parameters stream from external memory, and no file holds their numbers.
`cpu_s` is the processor's time for the same stages, which tells a slow compiler from a busy machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.registry import WALL_CLOCK, Figures, Value
from penstock.compiler.errors import PenstockError

ROOT = Path(__file__).resolve().parents[1]
FAMILIES = ("gpt2", "llama", "qwen", "gemma")
MODES = {"prefill": "mode=prefill&seq=128", "decode": "mode=decode&seq=1&cache=512"}
TIMEOUT_SECONDS = 600


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
        [sys.executable, "-m", "benchmarks.compile_one", model],
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
    seconds: dict[str, float] = found["seconds"]
    return {
        **{f"{stage.replace(' ', '_')}_s": round(value, 3) for stage, value in seconds.items()},
        "total_s": round(sum(seconds.values()), 2),
        "cpu_s": round(found["cpu_s"], 2),
        "warm_up_s": round(found["warm_up_s"], 2),
        **{name: found[name] for name in ("operations", "tasks", "weights", "cpp_lines")},
        "rss_gb": round(found["rss_gb"], 2),
    }
