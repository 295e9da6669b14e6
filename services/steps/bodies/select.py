"""Select: closes the study and takes the best design of all trials, with the others as the report's evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import EVIDENCE, Evidence
from penstock.compiler.package.report_search import ProfileUse
from penstock.db.schema.records import Step
from penstock.dse.evaluation.choosing import pareto_front
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs import Measured, Ranked, in_order
from penstock.dse.rungs.vitis import VITIS_RUNGS, vitis_lacks
from penstock.services.bitstreams import measured_in_steps
from penstock.services.jobs.explanation import explained, in_words
from penstock.services.jobs.search import Choice, choose, search_section, take
from penstock.services.jobs.search_settings import SearchSettings
from penstock.services.run_options import RunOptions
from penstock.services.run_summary import RunSummary
from penstock.services.step_kinds import FIRST_TURN, MEASURE, SELECT
from penstock.services.steps.bodies.candidates import TriedTrials, failure_of, steps_of
from penstock.services.steps.bodies.chosen import SVG, design_outputs, figures_of
from penstock.services.steps.bodies.given import finish_design, given_of
from penstock.services.steps.bodies.measure import FALLBACK, MEASURED
from penstock.services.steps.bodies.search import evaluator_of, open_study
from penstock.services.steps.bodies.tools import bench_of, licences, tool_reports
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, RetryLaterError, StepResult

EXPLORATION, WHY = "exploration.json", "why.svg"


@step_kind(SELECT)
def select(context: StepContext) -> StepResult:
    given = given_of(context)
    if given is not None:
        return finish_design(context, str(given["design"]))
    options = RunOptions.stored(context.options)
    tried = TriedTrials.read(context, options.goal)
    evaluator = evaluator_of(context)
    counts = _close(context, evaluator)
    candidates = tried.evaluations(evaluator)
    context.check()
    with licences(context):
        choice = _choose(context, options, evaluator, candidates)
    everything = tried.everything()
    section = search_section(everything, choice, SearchSettings.of(dict(options), options.goal), tried.evidence)
    bench_of(context).progress("explaining the choice")
    section = explained(
        section, evaluator, candidates[choice.trial], everything, bench_of(context).history, _profiles(context)
    )  # fmt: skip
    on_front = len(pareto_front(list(tried.told.values())))
    fallback: dict[str, Any] = {"fallback": choice.fallback} if choice.fallback else {}
    summary = RunSummary(
        chosen_trial=choice.trial, **figures_of(choice.finished, choice.figures, candidates[choice.trial]),
        trials=len(everything), on_front=on_front, **in_words(section), **fallback,
    )  # fmt: skip
    picture = section.why.picture if section.why else ""
    return StepResult(
        data=summary.written() | {"study": counts},
        outputs={
            **design_outputs(choice.finished, choice.synthesis),
            EXPLORATION: Output(section.model_dump_json(indent=1).encode(), "application/json"),
            **({WHY: Output(picture.encode(), SVG)} if picture else {}),
            **tool_reports(context),
        },
        run_summary=summary,
    )


def _choose(
    context: StepContext, options: RunOptions, evaluator: Evaluator, candidates: Mapping[int, Evaluation]
) -> Choice:
    """By what the steps before this one measured, or measured here and now."""
    bench = bench_of(context)
    if not measured_in_steps(context.options):
        return choose(evaluator, candidates, options.evidence, bench=bench, progress=bench.progress)
    ranked = in_order(evaluator, list(_measured(context, evaluator, candidates).values()))
    found: list[Evidence] = [r.measured.evidence for r in ranked if r.measured is not None]
    evidence = found[0] if found else options.evidence
    if evidence in VITIS_RUNGS and (lacking := vitis_lacks(evaluator.platform)):
        what = f"the designs were measured on a machine with the tools, but here {lacking}"
        raise RetryLaterError("profile-tool-missing", what, context.settings.licence_seconds)
    fallback = "" if evidence == options.evidence else _fallback(context)
    return take(evaluator, candidates, ranked, evidence, bench, fallback)


def _fallback(context: StepContext) -> str:
    """Why the workers measured by weaker evidence than was asked for."""
    reasons = [str(step.result[FALLBACK]) for step in steps_of(context, MEASURE, "succeeded")]
    return next((why for why in reasons if why), "")


def _measured(context: StepContext, evaluator: Evaluator, candidates: Mapping[int, Evaluation]) -> dict[int, Ranked]:
    """What the steps found of each candidate. Where some workers had weaker evidence only, that is not compared."""
    found: dict[int, Ranked] = {}
    for step in _of_turn(context, steps_of(context, MEASURE, "succeeded")):
        number = int(step.payload["number"])
        found[number] = Ranked(evaluator.proven(candidates[number]), Measured.from_json(step.result[MEASURED]))
    for step in _of_turn(context, steps_of(context, MEASURE, "failed")):
        number, error = int(step.payload["number"]), failure_of(step)
        found[number] = Ranked(candidates[number], None, error.one_line(), error)
    strengths = [EVIDENCE.index(r.measured.evidence) for r in found.values() if r.measured is not None]
    for number, one in found.items():
        if one.measured is not None and EVIDENCE.index(one.measured.evidence) < max(strengths):
            why = f"the worker that measured it has no tools: {one.measured.evidence} is not compared with the others"
            found[number] = Ranked(one.candidate, None, why)
    return found


def _of_turn(context: StepContext, steps: Sequence[Step]) -> list[Step]:
    return [step for step in steps if step.payload.get("turn", FIRST_TURN) == context.turn]


def _profiles(context: StepContext) -> ProfileUse | None:
    """Where the run's measurements came from, all its steps together."""
    with context.database.begin() as tx:
        cited = tx.profiles.cited(context.run.id)
    if not cited:
        return None
    count = {how: cited[how].profiles if how in cited else 0 for how in ("miss", "hit", "wait")}
    saved = sum(one.seconds for how, one in cited.items() if how != "miss")
    return ProfileUse(measured=count["miss"], kept=count["hit"], waited=count["wait"], seconds_saved=round(saved, 3))


def _close(context: StepContext, evaluator: Evaluator) -> dict[str, int]:
    """End what dead workers left running. No trial step runs any more, so nobody holds a lease.

    Where somebody deleted the study, what its trials found is in our own tables all the same.
    """
    try:
        study = open_study(context, evaluator)
    except PenstockError as error:
        if error.code != "study-gone":
            raise
        return {}
    try:
        for number in study.orphans(leased=()):
            study.fail(number, retry=False)
        counts = study.counts()
        return {state: counts.get(state, 0) for state in ("complete", "fail")}
    finally:
        study.close()
