"""Trial: asks the study for a setting, evaluates it, tells what came out. Exactly one complete answer a step.

The study and our tables commit on their own, and a worker may die between any two lines. So:
- the study's trial number is noted on the step as soon as it is known; the next attempt finds it and, if the
  study has its answer, uses that; else it ends the orphan as failed and has its setting tried again;
- the answer is told while the step's row is held, when nobody can take the step away: of two attempts only
  the one that owns the step can tell.
"""

from __future__ import annotations

import time

from penstock.db.schema.records import TrialSummary
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.search.samplers import within
from penstock.dse.search.study import Study
from penstock.services.jobs.space import whole
from penstock.services.run_options import RunOptions
from penstock.services.step_kinds import TOLD, TRIAL
from penstock.services.steps.bodies.search import choices_of, evaluator_of, forget_study, study_of
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import StepResult, StepStoppedError
from penstock.services.steps.version import evaluation_version

_NUMBER = "study_trial"


@step_kind(TRIAL)
def trial(context: StepContext) -> StepResult:
    started = time.monotonic()
    evaluator = evaluator_of(context)
    try:
        study = study_of(context, evaluator)
        number, evaluation = _earlier_answer(context, study, evaluator) or _answer(context, study, evaluator)
        origin = study.trial(number).origin
    except BaseException:
        forget_study(context)
        raise
    summary = summarise(context.payload["number"], evaluation, time.monotonic() - started, origin)
    why = {"explanation": evaluation.explanation, "constraints": evaluation.constraints}
    return StepResult({_NUMBER: number, **why}, trial=summary)


def _earlier_answer(context: StepContext, study: Study, evaluator: Evaluator) -> tuple[int, Evaluation] | None:
    """What an earlier attempt told the study before it could finish the step; else its orphan is ended."""
    number = context.step.memo.get(_NUMBER)
    if number is None:
        return None
    with context.hold():
        study.fail(number, retry=True)  # changes nothing if it is finished
        told = study.trial(number)
    return (number, evaluator.assume(told.params)) if told.state == "complete" else None


def _answer(context: StepContext, study: Study, evaluator: Evaluator) -> tuple[int, Evaluation]:
    number, told = context.payload["number"], context.payload.get(TOLD)
    if told is None:
        asked = study.ask(number, evaluator.answer)
    else:
        choices = choices_of(evaluator, RunOptions.stored(context.options))
        asked = study.begin(number, within(whole(told, evaluator.space), choices))
    try:
        context.remember({_NUMBER: asked.number})
        context.check()
        evaluation = evaluator.assume(asked.params)
        context.check()
        with context.hold():
            counted = study.tell(asked.number, evaluation.values, evaluation.constraints)
    except StepStoppedError:
        study.fail(asked.number, retry=context.stop_reason != "cancelled")
        raise
    except Exception:
        study.fail(asked.number, retry=False)
        raise
    if not counted:
        raise RuntimeError(f"trial {asked.number} of the study was ended by someone else")
    return asked.number, evaluation


def summarise(number: int, evaluation: Evaluation, seconds: float, origin: str = "") -> TrialSummary:
    """What a trial found, as the tables keep it: enough to evaluate it again."""
    return TrialSummary(
        number=number,
        state="complete" if evaluation.feasible else "infeasible",
        params=dict(evaluation.params),
        figures=dict(evaluation.measures),
        evidence=evaluation.evidence,
        design=evaluation.design.to_json(),
        seconds=seconds,
        origin=origin,
        version=evaluation_version(),
    )
