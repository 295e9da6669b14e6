"""The front of the public search with its defaults, beside what NSGA-II finds with four times as many trials.

NSGA-II is Optuna's, on the same space, and begins with nothing. Both fronts, of latency and resources, are measured by
their hypervolume from the same point: the worst of all trials of both that keep the limits, by logarithms.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import count
from math import log

from benchmarks.explore import ExploreCase
from benchmarks.registry import Figures, Value
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.hypervolume import Point, hypervolume
from penstock.dse.search.explore import explore
from penstock.dse.search.study import Study

MODELS = ("mlp-one-row", "product-primes", "gesummv", "residual-one-row", "two-products-powers")
DSP = 1000
TIMES = 4
ENOUGH = 0.99


def run(only: str = "") -> Figures:
    rows = [_row(name) for name in MODELS if only in name]
    shares = [float(str(row["hypervolume_pct_of_nsga2"])) for row in rows]
    summary: dict[str, Value] = {
        "models": len(rows),
        "worst_hypervolume_pct_of_nsga2": min(shares, default=None),
        "worst_trials_pct_of_nsga2": max((float(str(row["trials_pct_of_nsga2"] or 100)) for row in rows), default=None),
        "worst_settings_pct_of_nsga2": max((float(str(row["settings_pct_of_nsga2"])) for row in rows), default=None),
    }
    return Figures("modelled", rows, summary)


def _row(name: str) -> Mapping[str, Value]:
    evaluator = ExploreCase(name, DSP).evaluator()
    print(f"fronts: {name}", file=sys.stderr, flush=True)
    found = explore(evaluator)
    ours = [one.evaluation for one in found.tried]
    theirs = _nsga2(evaluator, TIMES * len(ours))
    reference = tuple(
        max(column) + 1e-9 for column in zip(*(_point(one) for one in _kept([*ours, *theirs])), strict=True)
    )
    wanted = _volume(theirs, reference)
    reached = next((n for n in count(1) if n > len(ours) or _volume(ours[:n], reference) >= ENOUGH * wanted), 0)
    return {
        "model": name,
        "dsp_allowed": DSP,
        "trials": len(ours),
        "settings_modelled": found.modelled,
        "nsga2_trials": len(theirs),
        "hypervolume_pct_of_nsga2": round(100 * _volume(ours, reference) / wanted, 1) if wanted else 100.0,
        "trials_to_99_pct": reached if reached <= len(ours) else None,
        "trials_pct_of_nsga2": round(100 * reached / len(theirs), 2) if reached <= len(ours) else None,
        "settings_pct_of_nsga2": round(100 * (found.modelled + min(reached, len(ours))) / len(theirs), 1),
        "cycles": found.best.evaluation.figures.latency,
        "nsga2_cycles": min((one.figures.latency for one in _kept(theirs)), default=None),
    }


def _nsga2(evaluator: Evaluator, trials: int) -> list[Evaluation]:
    space = evaluator.space
    study = Study.create_or_load(
        "fronts", space.choices, conditions=space.conditions, objectives=evaluator.goal.objectives, sampler="nsga2"
    )
    found: list[Evaluation] = []
    for _ in range(trials):
        asked = study.ask()
        try:
            evaluation = evaluator.assume(asked.params)
        except PenstockError:
            study.fail(asked.number, retry=False)
            continue
        study.tell(asked.number, evaluation.values, evaluation.constraints)
        found.append(evaluation)
    return found


def _kept(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    return [one for one in evaluations if one.feasible]


def _point(evaluation: Evaluation) -> Point:
    return tuple(log(value) for value in evaluation.values)


def _volume(evaluations: Sequence[Evaluation], reference: Point) -> float:
    return hypervolume([_point(one) for one in _kept(evaluations)], reference)
