"""Models that people have, each fp32 and W8A8, through `penstock compile` at its defaults, a process each.

Imported, compiled, C++ equal to the interpreter, PyTorch within tolerance, within the device by the reported
resources, seconds by the clock and of processor time, and where it failed: the stage that was at work, and the one line
that was said.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import resource
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.asked import is_asked_for
from benchmarks.kept_rows import keep_row, kept_rows
from benchmarks.model_corpus import onnx_exports
from benchmarks.model_corpus.listing import ONNX, CorpusModel, corpus
from benchmarks.registry import WALL_CLOCK, Figures, Value
from penstock.compiler.platforms import RESOURCE_NAMES

ROOT = Path(__file__).resolve().parents[1]
QUANTISATIONS: tuple[str | None, ...] = (None, "w8a8")
TIMEOUT_SECONDS = 900
_STAGE = re.compile(r"^\s*[\d.]+ s  (.+)$")
_IMPORT = "importing the model"


@dataclass(frozen=True)
class Outcome:
    """How one compilation ended."""

    seconds: float
    stage: str = ""
    line: str = ""
    report: Mapping[str, Any] | None = None
    cpu_seconds: float = 0.0


def run(only: str = "", limit: int | None = None, options: str = "", keep: Path | None = None) -> Figures:
    """`only` is a part of a model's name or group, or a pattern; `options` go to every `penstock compile`.

    Every row goes to the end of the file `keep` as soon as it is there, and a row that the file has under the same
    options is not run again: a run that was stopped goes on where it was.
    """
    models = [model for model in corpus() if _wanted(model, only)][:limit]
    kept = _kept(keep, options)
    rows: list[Mapping[str, Value]] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        for number, model in enumerate(models, start=1):
            for quantize in QUANTISATIONS:
                row = kept.get((model.name, quantize or "fp32"))
                if row is None:
                    row = _tried(model, quantize, Path(folder), options)
                    _say(row, f"{number} of {len(models)}")
                    keep_row(keep, {**row, "options": options})
                rows.append(row)
    return Figures(WALL_CLOCK, rows, _summary(rows))


def _kept(keep: Path | None, options: str) -> dict[tuple[str, str], Mapping[str, Value]]:
    """The rows of the file, by model and quantisation, which were found under these options."""
    return {(row["model"], row["quantize"]): row for row in kept_rows(keep) if row.pop("options") == options}


def _tried(model: CorpusModel, quantize: str | None, folder: Path, options: str) -> Mapping[str, Value]:
    if model.needs and importlib.util.find_spec(model.needs) is None:
        return _row(model, quantize, Outcome(0.0, line=f"{model.needs} is not installed"), there=False)
    try:
        reference = _reference(model, folder)
    except Exception as error:  # noqa: BLE001  (another project's exporter)
        return _row(model, quantize, Outcome(0.0, "export", f"{type(error).__name__}: {error}"))
    out = folder / "out" / model.name / (quantize or "fp32")
    return _row(model, quantize, compile_once(reference, quantize, out, tuple(shlex.split(options))))


def _say(row: Mapping[str, Value], place: str) -> None:
    said = f"failed in '{row['stage']}': {row['line']}" if row["line"] else "ok"
    print(f"{place}  {row['model']} {row['quantize']}  {row['seconds']:.1f} s  {said}", file=sys.stderr, flush=True)


def compile_once(reference: str, quantize: str | None, out: Path, options: tuple[str, ...] = ()) -> Outcome:
    """`penstock compile` as a user calls it. The last stage that it names is the one that failed."""
    command = [sys.executable, "-m", "penstock.services.cli.main", "compile", reference, "-o", str(out), "--json"]
    command += [*(["--quantize", quantize] if quantize else []), *options]
    began, before = time.monotonic(), _children_seconds()
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
    seconds, cpu = time.monotonic() - began, _children_seconds() - before
    report = json.loads(stdout) if stdout.startswith("{") else None
    if process.returncode == 0:
        return Outcome(seconds, report=report, cpu_seconds=cpu)
    lines = [line for line in stderr.splitlines() if line.startswith("penstock: ")] or stderr.splitlines()[-1:]
    line = lines[-1].removeprefix("penstock: ") if lines else f"exit code {process.returncode}"
    return Outcome(seconds, _last_stage(stderr), line, report, cpu)


def _children_seconds() -> float:
    """Processor time of all that this process started and waited for: on a shared machine the clock says less."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


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
        "cpu_s": round(outcome.cpu_seconds, 1),
        "stage": outcome.stage,
        "line": outcome.line,
    }


def _largest_share(report: Mapping[str, Any]) -> float | None:
    shares = [report["resources"][name]["share"] for name in RESOURCE_NAMES]
    known = [share for share in shares if share is not None]
    return round(max(known), 4) if known else None


def _summary(rows: list[Mapping[str, Value]]) -> Mapping[str, Value]:
    tried = [row for row in rows if row["installed"]]
    seconds = [float(row["seconds"] or 0) for row in tried]
    cpu = [float(row["cpu_s"] or 0) for row in tried]

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
        "median_cpu_s": round(statistics.median(cpu), 1) if cpu else None,
        "max_cpu_s": max(cpu, default=None),
    }


def _reference(model: CorpusModel, folder: Path) -> str:
    if not model.reference.startswith(ONNX):
        return model.reference
    name = model.reference.removeprefix(ONNX)
    dims = onnx_exports.DIMS.get(name, "")
    return f"{onnx_exports.write(name, folder)}{'?' if dims else ''}{dims}"


def _wanted(model: CorpusModel, only: str) -> bool:
    return any(is_asked_for(text, only) for text in (model.name, model.group))
