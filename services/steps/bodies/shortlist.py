"""Shortlist: the best designs of the search, one step for each to be measured by the tools."""

from __future__ import annotations

from services.steps.bodies.candidates import Tried
from services.steps.bodies.options import RunOptions
from services.steps.context import StepContext
from services.steps.graph import measure_steps
from services.steps.registry import step_kind
from services.steps.result import StepResult


@step_kind("shortlist")
def shortlist(context: StepContext) -> StepResult:
    options = RunOptions.read(context.options)
    numbers = [t.number for t in Tried.read(context, options.goal).best()]
    return StepResult({"trials": numbers}, new_steps=measure_steps(numbers))
