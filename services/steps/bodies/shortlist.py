"""Shortlist: the designs of the search that may turn out best, one step for each to be measured by the tools."""

from __future__ import annotations

from penstock.dse.evaluation.choosing import setting_of
from penstock.dse.rungs import shortlist as promoted
from penstock.services.run_options import RunOptions
from penstock.services.step_kinds import SHORTLIST
from penstock.services.steps.bodies.candidates import TriedTrials
from penstock.services.steps.bodies.search import evaluator_of
from penstock.services.steps.bodies.tools import bench_of
from penstock.services.steps.context import StepContext
from penstock.services.steps.graph import measure_steps
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import StepResult


@step_kind(SHORTLIST)
def shortlist(context: StepContext) -> StepResult:
    """Promoted from the model over the simulator, by what earlier designs showed of their errors."""
    options = RunOptions.stored(context.options)
    evaluator = evaluator_of(context)
    candidates = TriedTrials.read(context, options.goal).evaluations(evaluator)
    chosen = {
        setting_of(one) for one in promoted(evaluator, list(candidates.values()), options.evidence, bench_of(context))
    }
    numbers = [number for number, one in candidates.items() if setting_of(one) in chosen]
    return StepResult({"trials": numbers}, new_steps=measure_steps(numbers, context.turn))
