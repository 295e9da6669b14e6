"""The local exploration loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from penstock.compiler.errors import PenstockError
from penstock.dse.bounds.bound import LowerBound
from penstock.dse.evaluation.choosing import pareto_front, select_best
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.proving import prove_best
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER
from penstock.dse.search.samplers import narrow
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.start import plan
from penstock.dse.search.study import Study
from penstock.dse.support.budgets import DEFAULT_GAP


@dataclass(frozen=True)
class Tried:
    """One trial of a local exploration."""

    number: int
    evaluation: Evaluation


@dataclass(frozen=True)
class Exploration:
    """The outcome: everything tried, the non-dominated feasible ones, the best, and what none can be better than."""

    tried: tuple[Tried, ...]
    front: tuple[Tried, ...]
    best: Tried
    bound: LowerBound
    modelled: int
    """Settings that were looked at before the first trial."""
    stopped_early: bool
    """Since the best was near enough to the bound."""


ExploreProgress = Callable[[Tried, int], None]
"""Called after every trial with it and the number asked for."""


def explore(
    evaluator: Evaluator,
    trials: int | None = None,
    *,
    seed: int = 0,
    sampler: str = DEFAULT_SAMPLER,
    fixed: Sequence[str] = (),
    gap: float = DEFAULT_GAP,
    progress: ExploreProgress | None = None,
    second: SecondProcess | None = None,
) -> Exploration:
    """Try `trials` settings from this process, or as many as suit the space. Equal seeds give equal explorations.

    It ends earlier where the best is at most `gap` percent above what no design can be below. With a `second` process
    it is quicker, and finds the same.
    """
    if trials is not None and trials < 1:
        raise PenstockError(
            code="bad-trials", what=f"{trials} trials were asked for", limit="at least 1", hint="ask for more"
        )
    space, goal = evaluator.space, evaluator.goal
    choices = narrow(space.choices, fixed)
    planned = plan(evaluator, choices, sampler, trials, gap, second)
    if second is not None:
        second.rest()  # one trial follows from the others
    study = Study.create_or_load(
        "local", choices, conditions=space.conditions, objectives=goal.objectives, sampler=sampler, seed=seed,
        first=planned.first, meaning=evaluator.means,
    )  # fmt: skip
    tried: list[Tried] = []
    best, early = inf, False
    for _ in range(planned.trials if study.size is None else min(planned.trials, study.size)):
        if best <= planned.enough and len(tried) >= len(planned.first):
            tried = _best_proven(evaluator, tried)
            best = select_best([t.evaluation for t in tried]).values[0]
            early = best <= planned.enough
            if early:
                break
        asked = study.ask(len(tried), evaluator.answer)
        evaluation = evaluator.assume(asked.params)
        study.tell(asked.number, evaluation.values, evaluation.constraints)
        tried.append(Tried(asked.number, evaluation))
        if evaluation.feasible:
            best = min(best, evaluation.values[0])
        if progress is not None:
            progress(tried[-1], planned.trials)
    tried = _best_proven(evaluator, tried)
    front = set(map(id, pareto_front([t.evaluation for t in tried])))
    chosen = select_best([t.evaluation for t in tried])
    return Exploration(
        tuple(tried),
        tuple(t for t in tried if id(t.evaluation) in front),
        next(t for t in tried if t.evaluation is chosen),
        planned.bound,
        planned.modelled,
        early or planned.near_enough,
    )


def _best_proven(evaluator: Evaluator, tried: Sequence[Tried]) -> list[Tried]:
    found = prove_best(evaluator, {one.number: one.evaluation for one in tried})
    return [Tried(number, evaluation) for number, evaluation in found.items()]
