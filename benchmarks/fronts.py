"""The front of the public search with its defaults, beside what NSGA-II finds with four times as many trials.

NSGA-II is Optuna's, on the same space, and begins with nothing. Both fronts, of latency and resources, are measured by
their hypervolume from the same point: the worst of all trials of both that keep the limits, by logarithms.

A search models many settings before its first trial, so NSGA-II is also given as many trials as all of these together.
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

_Tried = Sequence[Evaluation | None]


def run(only: str = "") -> Figures:
    rows = [_row(name) for name in MODELS if only in name]
    shares = [float(str(row["hypervolume_pct_of_nsga2"])) for row in rows]
    long = [float(str(row["hypervolume_pct_of_as_many_settings"])) for row in rows]
    summary: dict[str, Value] = {
        "models": len(rows),
        "worst_hypervolume_pct_of_nsga2": min(shares, default=None),
        "worst_trials_pct_of_nsga2": max((float(str(row["trials_pct_of_nsga2"] or 100)) for row in rows), default=None),
        "worst_hypervolume_pct_of_as_many_settings": min(long, default=None),
        "worst_settings_pct_of_nsga2": max((float(str(row["settings_pct_of_nsga2"])) for row in rows), default=None),
    }
    return Figures("modelled", rows, summary)


def _row(name: str) -> Mapping[str, Value]:
    evaluator = ExploreCase(name, DSP).evaluator()
    print(f"fronts: {name}", file=sys.stderr, flush=True)
    found = explore(evaluator)
    ours = [one.evaluation for one in found.tried]
    looked_at = found.modelled + len(ours)
    long = _nsga2(evaluator, max(TIMES * len(ours), looked_at))
    theirs = long[: TIMES * len(ours)]
    reference = _worst(ours, theirs)
    wanted = _volume(theirs, reference)
    reached = next((n for n in count(1) if n > len(ours) or _volume(ours[:n], reference) >= ENOUGH * wanted), 0)
    return {
        "model": name,
        "dsp_allowed": DSP,
        "trials": len(ours),
        "settings_modelled": found.modelled,
        "nsga2_trials": len(theirs),
        "hypervolume_pct_of_nsga2": _share(ours, theirs),
        "trials_to_99_pct": reached if reached <= len(ours) else None,
        "trials_pct_of_nsga2": round(100 * reached / len(theirs), 2) if reached <= len(ours) else None,
        "settings_pct_of_nsga2": round(100 * (found.modelled + min(reached, len(ours))) / len(theirs), 1),
        "hypervolume_pct_of_as_many_settings": _share(ours, long[:looked_at]),
        "cycles": found.best.evaluation.figures.latency,
        "nsga2_cycles": min((one.figures.latency for one in _kept(theirs)), default=None),
    }


def _nsga2(evaluator: Evaluator, trials: int) -> list[Evaluation | None]:
    """What came of each trial, in their order: a longer run begins as a shorter one does."""
    space = evaluator.space
    study = Study.create_or_load(
        "fronts", space.choices, conditions=space.conditions, objectives=evaluator.goal.objectives, sampler="nsga2"
    )
    found: list[Evaluation | None] = []
    for _ in range(trials):
        asked = study.ask()
        try:
            evaluation = evaluator.assume(asked.params)
        except PenstockError:
            study.fail(asked.number, retry=False)
            found.append(None)
            continue
        study.tell(asked.number, evaluation.values, evaluation.constraints)
        found.append(evaluation)
    return found


def _share(ours: _Tried, theirs: _Tried) -> float:
    reference = _worst(ours, theirs)
    wanted = _volume(theirs, reference)
    return round(100 * _volume(ours, reference) / wanted, 1) if wanted else 100.0


def _worst(ours: _Tried, theirs: _Tried) -> Point:
    return tuple(max(column) + 1e-9 for column in zip(*map(_point, _kept([*ours, *theirs])), strict=True))


def _kept(tried: _Tried) -> list[Evaluation]:
    return [one for one in tried if one is not None and one.feasible]


def _point(evaluation: Evaluation) -> Point:
    return tuple(log(value) for value in evaluation.values)


def _volume(tried: _Tried, reference: Point) -> float:
    return hypervolume([_point(one) for one in _kept(tried)], reference)
