"""What explore, trial and select share: the prepared program, its evaluator, and the study, kept warm.

A pool child does many trials of one run after another. Reading the program and opening the study anew for
each would cost more than the trial itself.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.compiler.frontend.context import make_context
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.search.sampler_kinds import sampler_kind
from penstock.dse.search.samplers import narrow
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Choices, Params
from penstock.services.jobs.search_settings import space_options
from penstock.services.run_options import RunOptions
from penstock.services.step_kinds import EXPLORE
from penstock.services.steps.context import StepContext

PREPARED = "prepared"
_KEPT = 4

T = TypeVar("T")
_evaluators: OrderedDict[str, Evaluator] = OrderedDict()
_studies: OrderedDict[str, Study] = OrderedDict()


def evaluator_of(context: StepContext) -> Evaluator:
    """The evaluator of the run's prepared program on its platform."""
    return evaluator_of_content(context, context.artifact(EXPLORE, PREPARED).sha256)


def evaluator_of_content(context: StepContext, prepared: str) -> Evaluator:
    """The same of a prepared program that is named by its content, as of another run."""
    options = RunOptions.stored(context.options)

    def make() -> Evaluator:
        folder = context.folder / PREPARED
        context.store.extract_tree(prepared, folder)
        return make_evaluator(Program.load(folder, make_context()), options)

    decided = (options.platform, options.quantize, space_options(dict(options)), options.goal)
    return _kept(_evaluators, f"{prepared} {decided}", make)


def prepared_program(context: StepContext) -> Program:
    """The program that designs are made of, as the explore step left it."""
    return Program.load(context.input_tree(EXPLORE, PREPARED), make_context())


def make_evaluator(program: Program, options: RunOptions) -> Evaluator:
    return Evaluator.create(
        program, options.platform, quantize=options.quantize, options=space_options(dict(options)), goal=options.goal
    )


def study_of(context: StepContext, evaluator: Evaluator) -> Study:
    """The run's study. Optuna's samplers in several processes differ by the first trial that each of them did."""
    return _kept(_studies, context.run.id, lambda: open_study(context, evaluator))


def choices_of(evaluator: Evaluator, options: RunOptions) -> Choices:
    """The space as far as the user has not fixed it."""
    return narrow(evaluator.space.choices, options.fix)


def open_study(
    context: StepContext, evaluator: Evaluator, *, create: bool = False, first: Sequence[tuple[Params, str]] = ()
) -> Study:
    """The run's study, or an error if it is gone: only the explore step makes one."""
    options = RunOptions.stored(context.options)
    return Study.create_or_load(
        context.run.id,
        choices_of(evaluator, options),
        conditions=evaluator.space.conditions,
        objectives=options.objectives,
        storage_url=context.database.study_url(),
        sampler=options.sampler,
        seed=options.seed,
        worker=0 if sampler_kind(options.sampler).proposes else int(context.payload.get("number", 0)),
        first=first,
        create=create,
        meaning=evaluator.means,
    )


def forget_study(context: StepContext) -> None:
    """After an error, open the study anew: its connection may be of a server that is gone."""
    _studies.pop(context.run.id, None)


def _kept(cache: OrderedDict[str, T], key: str, make: Callable[[], T]) -> T:
    if key not in cache:
        cache[key] = make()
        while len(cache) > _KEPT:
            cache.popitem(last=False)
    cache.move_to_end(key)
    return cache[key]
