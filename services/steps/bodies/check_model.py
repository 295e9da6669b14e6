"""Check: what is known of a model before any search, as `penstock check` says it."""

from __future__ import annotations

from penstock.compiler.frontend.context import make_context
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.services.jobs.verdict import judge
from penstock.services.run_options import RunOptions
from penstock.services.run_summary import RunSummary
from penstock.services.step_kinds import CHECK, IMPORT
from penstock.services.steps.bodies.import_model import PROGRAM
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import StepResult


@step_kind(CHECK)
def check_model(context: StepContext) -> StepResult:
    options = RunOptions.stored(context.options)
    platform = load_platform(options.platform)
    verdict = judge(
        context.model.source,
        lambda: Program.load(context.input_tree(IMPORT, PROGRAM), make_context()),
        platform,
        platform.clock_mhz,
        options.quantize,
        lambda text: context.progress(None, text),
    )
    found = verdict.model_dump(mode="json")
    return StepResult({"compiles": verdict.compiles}, run_summary=RunSummary(check=found))
