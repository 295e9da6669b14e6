"""Models that people have, each fp32 and W8A8, through `penstock compile` at its defaults, a process each.

Imported, compiled, C++ equal to the interpreter, PyTorch within tolerance, within the device by the reported
resources, seconds, and where it failed: the stage that was at work, and the one line that was said.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from benchmarks.model_corpus import onnx_exports
from benchmarks.model_corpus.listing import ONNX, CorpusModel, corpus
from benchmarks.registry import WALL_CLOCK, Figures, Value

ROOT = Path(__file__).resolve().parents[1]
QUANTISATIONS: tuple[str | None, ...] = (None, "w8a8")
TIMEOUT_SECONDS = 900
_STAGE = re.compile(r"^\s*[\d.]+ s  (.+)$")
_RESOURCES = ("lut", "ff", "dsp", "bram18", "uram")
_IMPORT = "importing the model"


@dataclass(frozen=True)
class Outcome:
    """How one compilation ended."""

    seconds: float
    stage: str = ""
    line: str = ""
    report: Mapping[str, Any] | None = None


def run(only: str = "", limit: int | None = None, options: tuple[str, ...] = ()) -> Figures:
    """`only` is a part of a model's name or group, or a pattern; `options` go to every `penstock compile`."""
    models = [model for model in corpus() if _wanted(model, only)][:limit]
    rows: list[Mapping[str, Value]] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        for number, model in enumerate(models, start=1):
            rows += _rows(model, Path(folder), options, f"{number} of {len(models)}")
    return Figures(WALL_CLOCK, rows, _summary(rows))


def _rows(model: CorpusModel, folder: Path, options: tuple[str, ...], place: str) -> list[Mapping[str, Value]]:
    if model.needs and importlib.util.find_spec(model.needs) is None:
        return [
            _row(model, q, Outcome(0.0, line=f"{model.needs} is not installed"), there=False) for q in QUANTISATIONS
        ]
    try:
        reference = _reference(model, folder)
    except Exception as error:  # noqa: BLE001  (another project's exporter)
        return [_row(model, q, Outcome(0.0, "export", f"{type(error).__name__}: {error}")) for q in QUANTISATIONS]
    rows: list[Mapping[str, Value]] = []
    for quantize in QUANTISATIONS:
        outcome = compile_once(reference, quantize, folder / "out" / model.name / (quantize or "fp32"), options)
        rows.append(_row(model, quantize, outcome))
        said = f"failed in '{outcome.stage}': {outcome.line}" if outcome.line else "ok"
        print(
            f"{place}  {model.name} {quantize or 'fp32'}  {outcome.seconds:.1f} s  {said}",
            file=sys.stderr, flush=True,
        )  # fmt: skip
    return rows


def compile_once(reference: str, quantize: str | None, out: Path, options: tuple[str, ...] = ()) -> Outcome:
    """`penstock compile` as a user calls it. The last stage that it names is the one that failed."""
    command = [sys.executable, "-m", "penstock.services.cli.main", "compile", reference, "-o", str(out), "--json"]
    command += [*(["--quantize", quantize] if quantize else []), *options]
    began = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "COLUMNS": "1000"},
    )  # fmt: skip
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        _, stderr = process.communicate()
        return Outcome(time.monotonic() - began, _last_stage(stderr), f"not done after {TIMEOUT_SECONDS} s")
    seconds = time.monotonic() - began
    report = json.loads(stdout) if stdout.startswith("{") else None
    if process.returncode == 0:
        return Outcome(seconds, report=report)
    lines = [line for line in stderr.splitlines() if line.startswith("penstock: ")] or stderr.splitlines()[-1:]
    line = lines[-1].removeprefix("penstock: ") if lines else f"exit code {process.returncode}"
    return Outcome(seconds, _last_stage(stderr), line, report)


def _last_stage(stderr: str) -> str:
    found = [match[1] for line in stderr.splitlines() if (match := _STAGE.match(line))]
    return found[-1] if found else _IMPORT


def _row(model: CorpusModel, quantize: str | None, outcome: Outcome, *, there: bool = True) -> Mapping[str, Value]:
    report = outcome.report
    verify = report["verify"] if report else None
    share = _largest_share(report) if report else None
    checks = [verify["pytorch"]["ok"], *([verify["whole"]["ok"]] if verify["whole"] else [])] if verify else []
    return {
        "model": model.name,
        "group": model.group,
        "quantize": quantize or "fp32",
        "installed": there,
        "imported": (report is not None or outcome.stage not in ("export", _IMPORT)) if there else None,
        "compiled": report is not None if there else None,
        "csim_equal": verify["csim"]["equal"] if verify else None,
        "pytorch_ok": all(ok is not False for ok in checks) and any(checks) if verify else None,
        "largest_share": share,
        "fits": share <= 1 if share is not None else None,
        "cycles": report["timing"]["latency_cycles"] if report else None,
        "seconds": round(outcome.seconds, 1),
        "stage": outcome.stage,
        "line": outcome.line,
    }


def _largest_share(report: Mapping[str, Any]) -> float | None:
    shares = [report["resources"][name]["share"] for name in _RESOURCES]
    known = [share for share in shares if share is not None]
    return round(max(known), 4) if known else None


def _summary(rows: list[Mapping[str, Value]]) -> Mapping[str, Value]:
    tried = [row for row in rows if row["installed"]]
    seconds = [float(row["seconds"] or 0) for row in tried]

    def percent(count: int) -> float | None:
        return round(100 * count / len(tried), 1) if tried else None

    return {
        "models": len({row["model"] for row in tried}),
        "not_installed": len({row["model"] for row in rows if not row["installed"]}),
        "imported_pct": percent(sum(bool(row["imported"]) for row in tried)),
        "compiled_pct": percent(sum(bool(row["compiled"]) for row in tried)),
        "equal_pct": percent(sum(bool(row["csim_equal"] and row["pytorch_ok"]) for row in tried)),
        "fits_pct": percent(sum(bool(row["fits"]) for row in tried)),
        "median_s": round(statistics.median(seconds), 1) if seconds else None,
        "max_s": max(seconds, default=None),
    }


def _reference(model: CorpusModel, folder: Path) -> str:
    if not model.reference.startswith(ONNX):
        return model.reference
    name = model.reference.removeprefix(ONNX)
    dims = onnx_exports.DIMS.get(name, "")
    return f"{onnx_exports.write(name, folder)}{'?' if dims else ''}{dims}"


def _wanted(model: CorpusModel, only: str) -> bool:
    return any(only in text or fnmatch(text, only) for text in (model.name, model.group))
