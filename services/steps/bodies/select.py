"""Select: closes the study and takes the best design of all trials, with the others as the report's evidence."""

from __future__ import annotations

import json
from typing import Any

from db.records import Step, Trial
from dse.evaluate import Evaluation
from dse.explore import pareto_front, select_best
from dse.fifo import total_bits
from dse.memory import memory_svg
from dse.partition import partition_svg
from dse.rungs import BEST
from dse.study import Study, Told
from services.steps.bodies.options import RunOptions
from services.steps.bodies.search import evaluator_of, open_study
from services.steps.context import StepContext
from services.steps.flow.search import Choice, SearchSettings, choose, search_section
from services.steps.graph import TRIAL
from services.steps.registry import step_kind
from services.steps.result import Output, StepResult

DESIGN, EXPLORATION, DIES, MEMORIES = "design.json", "exploration.json", "dies.svg", "memories.svg"
_SVG = "image/svg+xml"


@step_kind("select")
def select(context: StepContext) -> StepResult:
    options = RunOptions.read(context.options)
    trials, failed = _trials(context)
    evaluator = evaluator_of(context)
    study = open_study(context, evaluator)
    counts = _close(study)
    told = {t.number: _told(t) for t in trials}
    searched_by = evidence_of(trials)
    select_best([_ranked(t, options.smallest) for t in told.values()], where="explore")  # says what none of them fits
    candidates = {t.number: evaluator.evaluate(t.params) for t in _best(trials, told, options.smallest)}
    context.check()
    choice = choose(
        evaluator, candidates, options.evidence, smallest=options.smallest,
        progress=lambda text: context.progress(None, text),
    )  # fmt: skip
    missing = [Told(number=n, state="fail", params={}, values=None, constraints={}) for n in failed]
    everything = sorted([*told.values(), *missing], key=lambda t: t.number)
    section = search_section(everything, choice, SearchSettings(options.sampler, options.seed), searched_by)
    summary = _summary(choice, candidates[choice.trial]) | {
        "trials": len(everything), "on_front": len(pareto_front(list(told.values()))),
    }  # fmt: skip
    placed = choice.finished.placement
    return StepResult(
        data=summary | {"study": counts},
        outputs={
            DESIGN: Output(_json(choice.finished.design.to_json()), "application/json"),
            EXPLORATION: Output(section.model_dump_json(indent=1).encode(), "application/json"),
            DIES: Output(partition_svg(placed.partition).encode(), _SVG),
            MEMORIES: Output(memory_svg(placed.allocation).encode(), _SVG),
        },
        run_summary=summary,
    )


def _summary(choice: Choice, candidate: Evaluation) -> dict[str, Any]:
    """The chosen design's figures with their evidence, as the run's page shows them."""
    clock = choice.finished.design.clock_mhz
    figures = choice.figures
    bits = {c.name: c.bits for c in candidate.figures.channels if c.kind == "stream"}
    return {
        "chosen_trial": choice.trial,
        "evidence": figures.evidence,
        "latency_cycles": figures.latency,
        "latency_us": figures.latency / clock,
        "initial_delay_cycles": figures.initial_delay,
        "interval_cycles": figures.interval,
        "modelled_latency_cycles": candidate.figures.latency,
        "fifo_bits": total_bits(choice.finished.design.fifo_depths, bits),
        "unsized_fifo_bits": total_bits(candidate.design.fifo_depths, bits),
        "resource_share": max(choice.finished.evaluation.shares.values()),
        "dies": len(set(choice.finished.design.dies.values())),
    }


def _best(trials: list[Trial], told: dict[int, Told], smallest: bool) -> list[Trial]:
    """The trials that are worth a closer look: feasible, the best first, no design twice."""
    feasible = [t for t in trials if told[t.number].feasible]
    order = sorted(feasible, key=lambda t: _ranked(told[t.number], smallest).values or ())
    distinct = {json.dumps(t.design, sort_keys=True): t for t in reversed(order)}
    return list(distinct.values())[::-1][:BEST]


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
