"""Shortlist: the designs of the search that may turn out best, one step for each to be measured by the tools."""

from __future__ import annotations

from dse.rungs import shortlist as promoted
from services.steps.bodies.candidates import Tried
from services.steps.bodies.options import RunOptions
from services.steps.bodies.search import evaluator_of
from services.steps.bodies.tools import bench_of
from services.steps.context import StepContext
from services.steps.graph import measure_steps
from services.steps.registry import step_kind
from services.steps.result import StepResult


@step_kind("shortlist")
def shortlist(context: StepContext) -> StepResult:
    """Promoted from the model over the simulator, by what earlier designs showed of their errors."""
    options = RunOptions.read(context.options)
    evaluator = evaluator_of(context)
    candidates = Tried.read(context, options.goal).evaluations(evaluator)
    chosen = {id(one) for one in promoted(evaluator, list(candidates.values()), options.evidence, bench_of(context))}
    numbers = [number for number, one in candidates.items() if id(one) in chosen]
    return StepResult({"trials": numbers}, new_steps=measure_steps(numbers, context.turn))
