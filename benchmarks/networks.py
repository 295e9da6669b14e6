"""The simulator against RTL co-simulation: cycles of real designs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.csynth_networks import figures_beside
from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.profiling.networks.procnet import ProcNet, read_procnet
from penstock.profiling.networks.simulated import simulate_network

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "tests" / "data" / "process-networks"


def run(data: Path | None = None) -> Figures:
    folder = find_data(data)
    rows = [_row(path) for path in sorted(folder.glob("*.json"))]
    return Figures("simulated", rows, summarise(rows) | figures_beside(folder))


def find_data(data: Path | None = None) -> Path:
    """The folder asked for, PENSTOCK_DATA's, the data beside the repository, or the small sample of the tests."""
    if data is None and "PENSTOCK_DATA" in os.environ:
        data = Path(os.environ["PENSTOCK_DATA"])
    if data is not None:
        folders = [data / "process-networks", data]
    else:
        beside = [parent / part / "process-networks" for parent in ROOT.parents for part in ("data", "shared/data")]
        folders = [*beside, SAMPLE]
    found = next((folder for folder in folders if any(folder.glob("*.json"))), None)
    if found is None:
        raise PenstockError(
            code="no-data", what="there are no process networks", where=str(data),
            limit="*.json, or *.json in a folder process-networks", hint="name the folder that holds them",
        )  # fmt: skip
    return found


def _row(path: Path) -> Mapping[str, Value]:
    try:
        return compare(read_procnet(path))
    except PenstockError as error:
        return {"network": path.stem, "simulated_cycles": None, "error_pct": None, "refused": error.one_line()}


def compare(design: ProcNet) -> Mapping[str, Value]:
    """One row: what is simulated, what RTL said, and the error, or the deadlock's cycle."""
    begun = time.perf_counter()
    found = simulate_network(design)
    stuck = found.result.deadlock
    return {
        "network": design.name,
        "simulated_cycles": found.cycles,
        "rtl_cycles": design.rtl_cycles,
        "csynth_cycles": design.csynth_cycles,
        "error_pct": found.error_pct,
        "deadlock": str(stuck) if stuck else None,
        "as_in_rtl": (stuck is not None) == design.expects_deadlock,
        "seconds": round(time.perf_counter() - begun, 3),
    }


def summarise(rows: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    rows = list(rows)
    errors = [float(e) for row in rows if isinstance(e := row["error_pct"], float)]
    verdicts = [row["as_in_rtl"] for row in rows if "as_in_rtl" in row]
    return {
        "n": len(rows),
        "n_with_error": len(errors),
        "median_error_pct": float(np.median(errors)) if errors else None,
        "p90_error_pct": float(np.percentile(errors, 90)) if errors else None,
        "max_error_pct": max(errors, default=None),
        "refused": sum("refused" in row for row in rows),
        "deadlocks": sum(row.get("deadlock") is not None for row in rows),
        "deadlock_verdicts_wrong": verdicts.count(False),
    }
