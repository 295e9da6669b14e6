"""Select: closes the study and takes the best design of all trials, with the others as the report's evidence."""

from __future__ import annotations

import json
from typing import Any

from db.records import Step, Trial
from dse.explore import pareto_front, select_best
from dse.study import Study, Told
from services.steps.bodies.options import RunOptions
from services.steps.bodies.search import evaluator_of, open_study
from services.steps.context import StepContext
from services.steps.flow.search import SearchSettings, search_section
from services.steps.graph import TRIAL
from services.steps.registry import step_kind
from services.steps.result import Output, StepResult

DESIGN, EXPLORATION = "design.json", "exploration.json"


@step_kind("select")
def select(context: StepContext) -> StepResult:
    options = RunOptions.read(context.options)
    trials, failed = _trials(context)
    study = open_study(context, evaluator_of(context))
    counts = _close(study)
    told = {t.number: _told(t) for t in trials}
    smallest = options.objectives[0] == "resources"
    best = select_best([_ranked(t, smallest) for t in told.values()], where="explore")
    chosen = next(t for t in trials if t.number == best.number)
    missing = [Told(number=n, state="fail", params={}, values=None, constraints={}) for n in failed]
    everything = sorted([*told.values(), *missing], key=lambda t: t.number)
    settings = SearchSettings(options.sampler, options.seed)
    section = search_section(everything, chosen.number, settings, evidence_of(trials))
    summary = {
        "chosen_trial": chosen.number, "evidence": chosen.evidence, "trials": len(everything),
        "on_front": len(pareto_front(list(told.values()))),
    } | {name: chosen.figures[name] for name in ("latency_cycles", "latency_us", "resource_share")}  # fmt: skip
    return StepResult(
        data=summary | {"study": counts},
        outputs={
            DESIGN: Output(_json(chosen.design), "application/json"),
            EXPLORATION: Output(section.model_dump_json(indent=1).encode(), "application/json"),
        },
        run_summary=summary,
    )


def _trials(context: StepContext) -> tuple[list[Trial], list[int]]:
    """All trials that have an answer, and the numbers of those that failed."""
    trials: list[Trial] = []
    failed: list[Step] = []
    with context.database.begin() as tx:
        cursor: str | None = None
        while True:
            page = tx.trials.list(context.run.id, cursor=cursor, limit=500)
            trials += page.items
            cursor = page.next_cursor
            if cursor is None:
                break
        while True:
            steps = tx.steps.list(context.run.id, kinds=[TRIAL], states=["failed"], cursor=cursor, limit=500)
            failed += steps.items
            cursor = steps.next_cursor
            if cursor is None:
                break
    return trials, [int(step.payload["number"]) for step in failed]


def _close(study: Study) -> dict[str, int]:
    """End what dead workers left running. No trial step runs any more, so nobody holds a lease."""
    for number in study.orphans(leased=()):
        study.fail(number, retry=False)
    states = [t.state for t in study.trials()]
    return {state: states.count(state) for state in ("complete", "fail")}


def _told(trial: Trial) -> Told:
    """A trial of ours as the search's own record; shares of the limits less one are its constraints."""
    shares = {
        name.removesuffix("_share"): value - 1.0
        for name, value in trial.figures.items()
        if name.endswith("_share") and name != "resource_share"
    }
    values = (trial.figures["latency_cycles"], trial.figures["resource_share"])
    return Told(trial.number, "complete", dict(trial.params), values, shares)


def _ranked(told: Told, smallest: bool) -> Told:
    """For a user who wants the smallest design first, the objectives change places."""
    if not smallest or told.values is None:
        return told
    latency, share = told.values
    return Told(told.number, told.state, told.params, (share, latency), told.constraints)


def evidence_of(trials: list[Trial]) -> Any:
    """The evidence that all trials share: figures of different evidence are not ranked together."""
    kinds = {trial.evidence for trial in trials}
    if len(kinds) > 1:
        raise ValueError(f"trials of different evidence cannot be ranked together: {', '.join(sorted(kinds))}")
    return next(iter(kinds), None)


def _json(document: Any) -> bytes:
    return (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()
