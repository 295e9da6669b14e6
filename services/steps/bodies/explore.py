"""Explore: prepares the program, opens the study, and fans out into the trials that were asked for."""

from __future__ import annotations

from compiler.frontend.context import make_context
from compiler.pipeline.prepare import prepare
from compiler.platforms import load_platform
from compiler.program import Program
from dse.rungs import usable
from services.steps.bodies.import_model import PROGRAM
from services.steps.bodies.options import RunOptions
from services.steps.bodies.search import PREPARED, make_evaluator, open_study
from services.steps.context import StepContext
from services.steps.graph import trial_steps
from services.steps.registry import step_kind
from services.steps.result import Output, StepResult
from services.store import TREE_MEDIA_TYPE


@step_kind("explore")
def explore(context: StepContext) -> StepResult:
    options = RunOptions.read(context.options)
    platform = load_platform(options.platform)
    usable(options.evidence, platform, platform.check_clock(options.clock_mhz or platform.clock_mhz))
    context.progress(None, "preparing the program")
    program = prepare(Program.load(context.input_tree("import", PROGRAM), make_context()), options.quantize)
    folder = context.folder / "prepared"
    program.save(folder)
    evaluator = make_evaluator(program, options)
    context.check()
    open_study(context, evaluator)  # a repeated attempt opens the one that is there
    return StepResult(
        data={"study": context.run.id, "parameters": {k: list(v) for k, v in evaluator.space.choices.items()}},
        outputs={PREPARED: Output(folder, TREE_MEDIA_TYPE)},
        new_steps=trial_steps(options.trials, context.options),
    )
