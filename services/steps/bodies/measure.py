"""Measure: what the tools say of one shortlisted design. One that fails costs itself only."""

from __future__ import annotations

import time

from penstock.dse.rungs import measure_all, usable
from penstock.services.run_options import RunOptions
from penstock.services.step_kinds import MEASURE
from penstock.services.steps.bodies.search import evaluator_of
from penstock.services.steps.bodies.tools import bench_of, licences, tool_reports
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import StepResult

MEASURED, FALLBACK = "measured", "fallback"


@step_kind(MEASURE)
def measure(context: StepContext) -> StepResult:
    """Where this worker's machine lacks the tools, a weaker rung is taken and the reason handed on."""
    started = time.monotonic()
    evaluator = evaluator_of(context)
    number = int(context.payload["number"])
    with context.database.begin() as tx:
        trial = tx.trials.by_number(context.run.id, number)
    assert trial is not None, f"the shortlist of {context.run.id} names trials that have an answer"
    evidence, why = usable(RunOptions.stored(context.options).evidence, evaluator.platform, evaluator.clock_mhz)
    context.progress(None, f"measuring trial {number}, {evidence}")
    with licences(context):
        bench = bench_of(context)
        [ranked] = measure_all(evaluator, [evaluator.evaluate(trial.params)], evidence, bench)
        if ranked.error is not None:
            raise ranked.error
    context.check()
    assert ranked.measured is not None
    seconds = round(time.monotonic() - started, 3)
    found = {"trial": number, MEASURED: ranked.measured.to_json(), FALLBACK: why, "seconds": seconds}
    return StepResult(found, tool_reports(context))
