"""The public search with its defaults under budgets of DSPs: cycles, the bound, the gap between them, seconds.

Each case is searched from nothing, by one seed, as `penstock explore --limit dsp<=N` does it on the bare device of the
published tables: no design that was found before is known to it. What earlier searches reached is beside (`kept`).
As there, a second process looks at settings ahead where there is a processor for it. `seconds` are by the clock,
`cpu_s` of this process alone.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks import workloads
from benchmarks.asked import is_asked_for
from benchmarks.kept_rows import keep_row, kept_rows
from benchmarks.kernel_designs import PLATFORM, WORKLOADS, earlier_best, evaluator_of, limited
from benchmarks.registry import Figures, Value
from benchmarks.workloads import Loaded
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.importer import import_loaded
from penstock.compiler.frontend.loader import LoadedModel
from penstock.compiler.pipeline import prepare
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.explore import explore
from penstock.dse.search.second import SecondProcess, second_process
from penstock.dse.space.tiling import TilingOptions
from penstock.dse.support.budgets import QUICKLY_MODELLED

BUDGETS = (100, 320, 1000, 3000, 9000)

Row = Mapping[str, Value]

OTHERS: Mapping[str, Callable[[], Loaded]] = {
    "bicg-one-array": workloads.bicg_of_one_array,
    "mlp-one-row": partial(workloads.feed_forward, 1, 64, 256),
    "mlp-primes": partial(workloads.feed_forward, 17, 97, 53),
    "mlp-powers": partial(workloads.feed_forward, 64, 128, 512),
    "mlp-many-rows": partial(workloads.feed_forward, 512, 64, 61),
    "autoencoder-one-row": partial(workloads.autoencoder, 1, (128, 64, 16)),
    "autoencoder-primes": partial(workloads.autoencoder, 128, (61, 31, 7)),
    "residual-one-row": partial(workloads.residual_mlp, 1, 256, 128, 64, 10),
    "attention-small": partial(workloads.self_attention, 16, 32, 2),
    "attention-prime-tokens": partial(workloads.self_attention, 61, 64, 4),
    "attention-wide": partial(workloads.self_attention, 128, 64, 8),
    "product-primes": partial(workloads.gemm, 127, 131, 113),
    "product-powers": partial(workloads.gemm, 128, 128, 128),
    "two-products-powers": partial(workloads.two_mm, 64, 128, 32, 64),
    "three-products-primes": partial(workloads.three_mm, 31, 37, 41, 43, 47),
}
"""Of batches from 1 to 512, and of dims that are primes and powers of two."""


@dataclass(frozen=True)
class ExploreCase:
    name: str
    dsp: int

    @property
    def label(self) -> str:
        return f"{self.name}/{self.dsp}"

    def evaluator(self) -> Evaluator:
        return limited(evaluator_of(self.name) if self.name in WORKLOADS else _other(self.name), self.dsp)


def cases() -> list[ExploreCase]:
    return [ExploreCase(name, dsp) for name in (*WORKLOADS, *OTHERS) for dsp in BUDGETS]


def run(only: str = "", limit: int | None = None, keep: Path | None = None) -> Figures:
    """`only` is a part of a case's name, as `gemm/320`, or a pattern.

    Rows go to the end of the file `keep` when they are there, and those that it has are not searched again.
    """
    known: dict[ExploreCase, Row] = {ExploreCase(row["case"], row["dsp_allowed"]): row for row in kept_rows(keep)}
    rows: list[Row] = []
    wanted = [case for case in cases() if is_asked_for(case.label, only)][:limit]
    with second_process(wanted=any(case not in known for case in wanted)) as second:
        for case in wanted:
            row = known.get(case)
            if row is None:
                row = _row(case, second)
                keep_row(keep, row)
            rows.append(row)
    gaps = [float(str(row["gap_pct"])) for row in rows if row["gap_pct"] is not None]
    trials = sum(int(str(row["trials"])) for row in rows)
    summary: dict[str, Value] = {
        "cases": len(rows),
        "median_gap_pct": round(median(gaps), 2) if gaps else None,
        "worst_gap_pct": max(gaps, default=None),
        "max_s": max((float(str(row["seconds"])) for row in rows), default=None),
        "max_s_to_a_dozen_kernels": max(
            (float(str(row["seconds"])) for row in rows if int(str(row.get("kernels", 0))) <= QUICKLY_MODELLED),
            default=None,
        ),
        "max_cpu_s": max((float(str(row["cpu_s"])) for row in rows), default=None),
        "infeasible_trials_pct": round(100 * sum(int(str(row["infeasible"])) for row in rows) / max(trials, 1), 1),
        "worse_than_kept": sum(row["kept_cycles"] is not None and _worse(row) for row in rows),
        "proven_impossible": sum(row["cycles"] is None for row in rows),
    }
    return Figures("modelled", rows, summary)


def _worse(row: Row) -> bool:
    cycles, kept = row["cycles"], row["kept_cycles"]
    return cycles is None or int(str(cycles)) > int(str(kept))


def _row(case: ExploreCase, second: SecondProcess | None) -> Row:
    evaluator = case.evaluator()
    began, worked = time.perf_counter(), time.process_time()
    kernels = len(evaluator.space.graph.operations)
    row: dict[str, Value] = {"case": case.name, "dsp_allowed": case.dsp, "kernels": kernels}
    try:
        found = explore(evaluator, second=second)
    except PenstockError as error:
        if error.code != "nothing-fits":
            raise
        row |= dict.fromkeys(("cycles", "dsp", "lut", "bound", "gap_pct"))
        row |= {"bound_reason": error.limit, "trials": 0, "infeasible": 0, "modelled": 0, "stopped_early": True}
    else:
        best = found.best.evaluation
        used = best.figures.resources
        row |= {
            "cycles": best.figures.latency,
            "dsp": used.dsp,
            "lut": used.lut,
            "bound": found.bound.value,
            "gap_pct": round(100 * found.bound.gap(best.values[0]), 2),
            "bound_reason": found.bound.reason_beside(best.values[0]),
            "trials": len(found.tried),
            "infeasible": sum(not one.evaluation.feasible for one in found.tried),
            "modelled": found.modelled,
            "stopped_early": found.stopped_early,
        }
    row |= {"seconds": round(time.perf_counter() - began, 1), "cpu_s": round(time.process_time() - worked, 1)}
    row |= {"kept_cycles": earlier_best(case.name, case.dsp)}
    print(f"explore: {case.label}: {row['cycles']} cycles, bound {row['bound']}", file=sys.stderr, flush=True)
    return row


def _other(name: str) -> Evaluator:
    module, inputs = OTHERS[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, about its internals
        program = prepare(import_loaded(LoadedModel(name, f"workloads.py:{name}", module, inputs)))
    return Evaluator.create(program, PLATFORM, options=TilingOptions(weights="rom"))
