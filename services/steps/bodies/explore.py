"""Explore: prepares the program, opens the study, and fans out into the trials that were asked for."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline.check_quantised import check_quantised
from penstock.compiler.pipeline.prepare import prepare
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.dse.bounds.reachable import check_reachable
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.least_room import check_room
from penstock.dse.rungs import usable
from penstock.dse.search.start import SearchPlan, plan
from penstock.services.jobs.space import described
from penstock.services.run_options import RunOptions
from penstock.services.run_summary import FigureOrigin, RunSummary
from penstock.services.step_kinds import EXPLORE, IMPORT, SPACE
from penstock.services.steps.bodies.given import given_of
from penstock.services.steps.bodies.import_model import PROGRAM
from penstock.services.steps.bodies.search import PREPARED, choices_of, make_evaluator, open_study
from penstock.services.steps.bodies.warm_start import KnownSetting, known_settings
from penstock.services.steps.context import StepContext
from penstock.services.steps.graph import trial_steps
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.store import TREE_MEDIA_TYPE


@step_kind(EXPLORE)
def explore(context: StepContext) -> StepResult:
    options = RunOptions.stored(context.options)
    platform = load_platform(options.platform)
    usable(options.evidence, platform, platform.clock_mhz)
    context.progress(None, "preparing the program")
    imported = Program.load(context.input_tree(IMPORT, PROGRAM), make_context())
    program = prepare(imported, options.quantize)
    if options.quantize is not None:
        check_quantised(imported, program, options.quantize)
    folder = context.folder / "prepared"
    program.save(folder)
    given = given_of(context)
    if given is not None:
        summary = RunSummary(design_of=str(given["run"]))
        return StepResult(summary.written(), {PREPARED: Output(folder, TREE_MEDIA_TYPE)}, run_summary=summary)
    evaluator = make_evaluator(program, options)
    check_reachable(evaluator)
    check_room(evaluator)
    known = known_settings(context, evaluator, context.store.put_tree(folder).sha256)
    context.check()
    context.progress(None, "fitting every kernel's walk to the limits")
    choices = choices_of(evaluator, options)
    planned = plan(evaluator, choices, options.sampler, options.trials, options.gap)
    context.check()
    size = _queue_first(context, evaluator, known, planned)
    trials = planned.trials + (len(known) if options.trials is None else 0)
    origins = [FigureOrigin(run=k.run, trial=k.trial) for k in known]
    found = RunSummary(
        modelled=planned.modelled, trials_planned=trials, warm_start=origins or None,
        bound=planned.bound.value, bound_reason=planned.bound.reason,
    )  # fmt: skip
    if planned.near_enough:
        found = found.model_copy(update={"stopped": f"the best is within {options.gap:g} % of the bound"})
    return StepResult(
        data={"study": context.run.id, SPACE: described(evaluator, choices, planned.bound).model_dump(mode="json")}
        | found.written(),
        outputs={PREPARED: Output(folder, TREE_MEDIA_TYPE)},
        new_steps=trial_steps(trials if size is None else min(trials, size), context.options),
        run_summary=found,
    )


def _queue_first(
    context: StepContext, evaluator: Evaluator, known: Sequence[KnownSetting], planned: SearchPlan
) -> int | None:
    """Make the study, with what is tried before it proposes anything; returns how many settings a grid has.

    A repeated attempt opens the study that is there.
    """
    first = [*((k.params, k.origin) for k in known), *((params, "") for params in planned.first)]
    study = open_study(context, evaluator, create=True, first=first)
    try:
        return study.size
    finally:
        study.close()
