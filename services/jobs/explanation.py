"""Adds to a search's section what it learned: why the chosen design, how far rungs differ, what tools were spared."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from penstock.compiler.package.decorating import Decorating
from penstock.compiler.package.record import LeftOut
from penstock.compiler.package.report import ExplorationReport
from penstock.compiler.package.report_search import (
    BoundInfo,
    ImportanceInfo,
    NeighbourInfo,
    ProfileUse,
    RungErrorInfo,
    WhyInfo,
)
from penstock.dse.bounds.bound import LowerBound, lower_bound
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.explaining.looks import Looks
from penstock.dse.explaining.picture import sensitivity_svg
from penstock.dse.explaining.sensitivity import ExplainedTrial, explain
from penstock.dse.rungs.error import Correction, RungError, errors_of
from penstock.dse.rungs.history import History, mix_of, model_of, of_known_rungs
from penstock.dse.rungs.promotion import promoted_from
from penstock.dse.search.explore import Tried
from penstock.dse.search.study import Told
from penstock.profiling.store import Counts
from penstock.web.text import beside_bound

EXPLAINING = "explaining the choice"
"""What its stage is called."""
RUNGS_DIFFER = "how far rungs differ"


def explained(
    section: ExplorationReport,
    evaluator: Evaluator,
    chosen: Evaluation,
    trials: Sequence[Told] | Sequence[Tried],
    history: History,
    profiles: ProfileUse | None,
    looks: Looks | None = None,
    bound: LowerBound | None = None,
) -> ExplorationReport:
    """`chosen` is the trial's design as the search had it; `looks` may know what is around it, `bound` that of the
    search: to find it again takes up to twenty seconds.

    What cannot be explained is noted; the design stands.
    """
    making = Decorating()
    why = making.make("why this design", lambda: _why(evaluator, chosen, trials, making, looks), None)
    if why is not None:
        passed = making.make("what was passed over", lambda: passed_over(section), ())
        why = why.model_copy(update={"sentences": (*why.sentences, *passed)})
    beside = making.make("the bound", lambda: bound_of(bound or lower_bound(evaluator), chosen), None)
    if why is not None and beside is not None:
        why = why.model_copy(update={"sentences": (*why.sentences, bound_in_words(beside))})
    update = {
        "why": why,
        "bound": beside,
        "rung_errors": making.make(RUNGS_DIFFER, lambda: _errors(evaluator, history, making), ()),
        "correction": making.make("the correction", lambda: _correction(section, evaluator, chosen, history), ""),
        "profiles": profiles,
        "left_out": tuple(making.left_out),
    }
    return section.model_copy(update=update)


def _errors(evaluator: Evaluator, history: History, making: Decorating) -> tuple[RungErrorInfo, ...]:
    kept, model = history.pairs(evaluator.platform.operators), model_of(evaluator)
    pairs, strange = of_known_rungs(kept)
    if strange:
        making.left_out.append(LeftOut(part=RUNGS_DIFFER, why=strange))
    return (
        *(_error(e, own=True) for e in errors_of(pairs, model)),
        *(_error(e, own=False) for e in errors_of(pairs)),
    )


def _correction(section: ExplorationReport, evaluator: Evaluator, chosen: Evaluation, history: History) -> str:
    stronger = section.chosen_by
    if stronger is None or stronger == "modelled":
        return ""
    pairs, model = history.pairs(evaluator.platform.operators), model_of(evaluator)
    weaker = promoted_from(stronger)
    found = Correction.between(pairs, weaker, stronger, model, mix_of(chosen))
    return f"{found.basis}: {weaker} cycles × {found.ratio:.3f}" if len(found.ratios) > 1 else found.basis


def bound_of(bound: LowerBound, chosen: Evaluation) -> BoundInfo:
    """What no design can be better than, beside what the chosen one is."""
    reached = chosen.values[0]
    gap = 100 * bound.gap(reached)
    return BoundInfo(
        figure=bound.figure, value=bound.value, reached=reached, gap_pct=round(gap, 2) if isfinite(gap) else None,
        reason=bound.reason_beside(reached), terms=dict(bound.terms),
    )  # fmt: skip


def bound_in_words(bound: BoundInfo) -> str:
    name = bound.figure.replace("_", " ")
    gap = "" if bound.gap_pct is None else f". This one is {beside_bound(bound.gap_pct)}"
    if not bound.value:
        return f"There is no bound: {bound.reason}."
    return f"No design of this space is below {bound.value:,.6g} {name} under these limits: {bound.reason}{gap}."


def in_words(section: ExplorationReport) -> dict[str, Any]:
    """What an explained section says, for a run's page: sentences, and how sure the figures are."""
    found: dict[str, Any] = {"why": list(section.why.sentences)} if section.why else {}
    if (bound := section.bound) is not None:
        found |= {"bound": bound.value, "bound_reason": bound.reason, "gap_pct": bound.gap_pct}
    if section.left_out:
        found["left_out"] = [f"{one.part}: {one.why}" for one in section.left_out]
    if own := [error.model_dump(mode="json") for error in section.rung_errors if error.this_model]:
        found["rung_errors"] = own
    if section.profiles:
        use = section.profiles
        waited = f", {use.waited} made by other workers meanwhile" if use.waited else ""
        found["measurements"] = f"{use.measured} by tools, {use.kept} known from before{waited}"
    return found


def use_of(counts: Counts) -> ProfileUse | None:
    """What a local store was asked; None where it was not."""
    if not (counts.hits or counts.misses or counts.waits):
        return None
    return ProfileUse(
        measured=counts.misses, kept=counts.hits, waited=counts.waits, seconds_saved=round(counts.seconds_saved, 3)
    )


def passed_over(section: ExplorationReport) -> list[str]:
    """Faster trials that were looked at and not taken, in a sentence."""
    taken = next((trial.latency_cycles for trial in section.trials if trial.chosen), None)
    faster = [t for t in section.trials if t.note and t.latency_cycles is not None and t.latency_cycles < (taken or 0)]
    if not faster:
        return []
    first = min(faster, key=lambda t: (t.latency_cycles or 0, t.number))
    others = f", as were {len(faster) - 1} more" if len(faster) > 1 else ""
    return [
        f"Trial {first.number} would take {first.latency_cycles:,} cycles and was passed over{others}: {first.note}."
    ]


def _why(
    evaluator: Evaluator,
    chosen: Evaluation,
    trials: Sequence[Told] | Sequence[Tried],
    making: Decorating,
    looks: Looks | None,
) -> WhyInfo:
    found = explain(evaluator, chosen, [point for trial in trials if (point := _point(trial)) is not None], looks)
    return WhyInfo(
        evidence=found.evidence,
        objective=found.objective,
        sentences=found.sentences,
        neighbours=tuple(
            NeighbourInfo(
                parameter=n.parameter, value=n.value, other=n.other, latency_cycles=n.latency,
                objective_ratio=n.objective, resource_share=n.share, binding=n.binding, feasible=n.feasible,
                same_design=n.same, failure=n.failure,
            )
            for n in found.neighbours
        ),
        left_out=found.left_out,
        importances=tuple(ImportanceInfo(parameter=i.parameter, share=i.share) for i in found.importances),
        trials=found.trials,
        picture=making.make("the picture of why", lambda: sensitivity_svg(found), ""),
    )  # fmt: skip


def _point(trial: Told | Tried) -> ExplainedTrial | None:
    """A trial that has figures."""
    if isinstance(trial, Tried):
        return ExplainedTrial(trial.evaluation.params, trial.evaluation.measures)
    return ExplainedTrial(trial.params, trial.figures) if trial.figures else None


def _error(error: RungError, *, own: bool) -> RungErrorInfo:
    return RungErrorInfo(
        weaker=error.weaker, stronger=error.stronger, family=error.family, this_model=own, designs=error.designs,
        median_ratio=error.median_ratio, typical=error.typical, worst=error.worst, believed=error.believed,
        sentence=error.sentence,
    )  # fmt: skip
