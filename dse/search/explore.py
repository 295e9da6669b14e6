"""The local exploration loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.choosing import pareto_front, select_best
from penstock.dse.evaluation.evaluate import Evaluation, Evaluator
from penstock.dse.search.sampler_kinds import DEFAULT_SAMPLER
from penstock.dse.search.samplers import narrow
from penstock.dse.search.start import starting_settings
from penstock.dse.search.study import Study


@dataclass(frozen=True)
class Tried:
    """One trial of a local exploration."""

    number: int
    evaluation: Evaluation


@dataclass(frozen=True)
class Exploration:
    """The outcome: everything tried, the non-dominated feasible ones, the best."""

    tried: tuple[Tried, ...]
    front: tuple[Tried, ...]
    best: Tried


ExploreProgress = Callable[[Tried, int], None]
"""Called after every trial with it and the number asked for."""


def explore(
    evaluator: Evaluator,
    trials: int,
    *,
    seed: int = 0,
    sampler: str = DEFAULT_SAMPLER,
    fixed: Sequence[str] = (),
    progress: ExploreProgress | None = None,
) -> Exploration:
    """Try `trials` settings in this process. Equal seeds give equal explorations."""
    if trials < 1:
        raise PenstockError(
            code="bad-trials", what=f"{trials} trials were asked for", limit="at least 1", hint="ask for more"
        )
    space, goal = evaluator.space, evaluator.goal
    choices = narrow(space.choices, fixed)
    first = starting_settings(evaluator, choices)
    study = Study.create_or_load(
        "local", choices, conditions=space.conditions, objectives=goal.objectives, sampler=sampler, seed=seed,
        first=first, meaning=evaluator.means,
    )  # fmt: skip
    tried: list[Tried] = []
    for _ in range(trials if study.size is None else min(trials, study.size)):
        asked = study.ask()
        evaluation = evaluator.evaluate(asked.params)
        study.tell(asked.number, evaluation.values, evaluation.constraints)
        tried.append(Tried(asked.number, evaluation))
        if progress is not None:
            progress(tried[-1], trials)
    front = set(map(id, pareto_front([t.evaluation for t in tried])))
    best = select_best([t.evaluation for t in tried])
    return Exploration(
        tuple(tried),
        tuple(t for t in tried if id(t.evaluation) in front),
        next(t for t in tried if t.evaluation is best),
    )
