"""The search: designs modelled a second, what the study takes, two workers, kept profiles, and the known optimum."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from benchmarks import profiles
from benchmarks.dse_optimum import CASES, gap_row
from benchmarks.dse_speed import GPT2, MLP, scaling_rows, speed_row, study_row
from benchmarks.registry import WALL_CLOCK, Figures, Value

STUDY_TRIALS = 300
SHARED_TRIALS = {MLP.name: 300, GPT2.name: 120}
_PROGRESS_SECONDS = 10.0

AT_LEAST = {
    "modelled_per_s_mlp": 200.0,
    "modelled_per_s_gpt2": 5.0,
    "scaling_2_workers": 1.6,
    "scaling_2_workers_mlp": 1.6,
}
AT_MOST = {
    "worst_gap_to_optimum_pct": 1.0,
    "evaluations_share_pct": 2.0,
    "tool_runs_a_kernel": 1.0,
    "tool_runs_when_kept": 0.0,
}


def run() -> Figures:
    _say("designs modelled a second")
    speeds = {case.name: speed_row(case) for case in (MLP, GPT2)}
    _say("the study in memory")
    study = study_row(STUDY_TRIALS)
    _say("one and two workers")
    small, large = (scaling_rows(case, SHARED_TRIALS[case.name]) for case in (MLP, GPT2))
    _say("kept profiles")
    kept = profiles.run()
    optima: list[dict[str, Value]] = []
    for case in CASES:
        _say(f"every design of {case.model} on {case.platform}")
        optima.append(gap_row(case, _counter()))
    rows: list[Mapping[str, Value]] = [*speeds.values(), study, *small, *large]
    rows += [{"part": "profiles", **row} for row in kept.rows]
    rows += optima
    found: dict[str, Value] = {
        "modelled_per_s_mlp": speeds["mlp"]["modelled_per_s"],
        "modelled_per_s_gpt2": speeds["gpt2"]["modelled_per_s"],
        "scaling_2_workers": _scaling(large),
        "scaling_2_workers_mlp": _scaling(small),
        "worst_gap_to_optimum_pct": max(float(str(row["worst_gap_pct"])) for row in optima),
        "worst_gap_in_whole_space_pct": max(float(str(row["whole_space_gap_pct"])) for row in optima),
        "worst_gap_of_sampler_pct": max(float(str(row["sampler_gap_pct"])) for row in optima),
        "evaluations_share_pct": max(float(str(row["share_of_designs_pct"])) for row in optima),
        "study_share_pct": study["study_share_pct"],
        "study_share_pct_postgres": large[0]["study_share_pct"],
        "study_share_pct_postgres_mlp": small[0]["study_share_pct"],
        "tool_runs_a_kernel": kept.summary["tool_runs_a_kernel"],
        "tool_runs_when_kept": kept.summary["tool_runs_when_kept"],
    }
    goals = goal_rows(found)
    missed = [f"{row['figure']} {row['found']} ({row['goal']})" for row in goals if not row["met"]]
    summary = {**found, "goals": len(goals), "goals_met": len(goals) - len(missed), "goals_missed": ", ".join(missed)}
    return Figures(WALL_CLOCK, [*rows, *goals], summary)


def goal_rows(found: Mapping[str, Value]) -> list[dict[str, Value]]:
    """What is wanted of the figures, and whether this run, on this machine, reached it."""
    wanted = [(name, "at least", least) for name, least in AT_LEAST.items()]
    wanted += [(name, "at most", most) for name, most in AT_MOST.items()]
    rows: list[dict[str, Value]] = []
    for name, which, limit in wanted:
        figure = float(str(found[name]))
        met = figure >= limit if which == "at least" else figure <= limit
        rows.append({"part": "goal", "figure": name, "found": figure, "goal": f"{which} {limit:g}", "met": met})
    return rows


def _scaling(rows: list[dict[str, Value]]) -> float:
    """How many times the trials of one worker two of them do in the same time."""
    alone, both = (float(str(row["seconds"])) for row in rows)
    return round(alone / both, 2)


def _say(text: str) -> None:
    print(f"dse: {text}", file=sys.stderr, flush=True)


def _counter() -> Callable[[int], None]:
    """Says how far it is, now and then."""
    last = time.monotonic()

    def progress(done: int) -> None:
        nonlocal last
        if time.monotonic() - last > _PROGRESS_SECONDS:
            last = time.monotonic()
            _say(f"{done} settings")

    return progress
