"""A run that was given its design: nothing is searched, the design is finished as it is and measured."""

from __future__ import annotations

import json
from typing import Any

from penstock.compiler.design import Design
from penstock.dse.rungs import RUNGS, usable
from penstock.services.jobs.search import finish_given
from penstock.services.run_options import RunOptions
from penstock.services.run_summary import RunSummary
from penstock.services.steps.bodies.chosen import design_outputs, figures_of
from penstock.services.steps.bodies.search import evaluator_of, prepared_program
from penstock.services.steps.bodies.tools import bench_of, licences, tool_reports
from penstock.services.steps.context import StepContext
from penstock.services.steps.graph import GIVEN
from penstock.services.steps.result import StepResult


def given_of(context: StepContext) -> dict[str, Any] | None:
    """Which design the run was given: whose, and its content. None where it searches."""
    return context.payload.get(GIVEN)


def finish_design(context: StepContext, content: str) -> StepResult:
    """What the record decides is kept, the rest found; measured by the evidence that the run asks for."""
    design = Design.from_json(json.loads(context.store.read_bytes(content)))
    evaluator, bench = evaluator_of(context), bench_of(context)
    platform = evaluator.platform
    evidence, fallback = usable(RunOptions.stored(context.options).evidence, platform, evaluator.clock_mhz)
    unsized = evaluator.evaluate_design(design)
    bench.progress("sizing FIFOs, placing")
    with licences(context):
        finished, synthesis = finish_given(prepared_program(context), platform, design, evidence, bench)
        measured = RUNGS[evidence](evaluator, finished.evaluation, bench)
    said: dict[str, Any] = {"fallback": fallback} if fallback else {}
    summary = RunSummary(**figures_of(finished, measured, unsized), why=[finished.evaluation.explanation], **said)
    return StepResult(
        data=summary.written(),
        outputs={**design_outputs(finished, synthesis), **tool_reports(context)},
        run_summary=summary,
    )
