"""Warm start: a search begins with the best settings that earlier runs of the same model on the same platform found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.db.repositories.trials import EarlierTrial
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search.sampler_kinds import sampler_kind
from penstock.dse.search.samplers import means_something
from penstock.dse.space.tiling import Choices, TilingSpace, Value
from penstock.services.run_options import RunOptions
from penstock.services.steps.bodies.candidates import first_of_each
from penstock.services.steps.bodies.search import PREPARED, choices_of
from penstock.services.steps.context import StepContext

MOST_RUNS, MOST_SETTINGS = 8, 6


@dataclass(frozen=True)
class KnownSetting:
    """A setting that was good before, and the trial that found it."""

    run: str
    trial: int
    params: Mapping[str, Value]

    @property
    def origin(self) -> str:
        return f"{self.run} trial {self.trial}"


def known_settings(context: StepContext, evaluator: Evaluator, prepared: str) -> list[KnownSetting]:
    """The best of earlier runs by what this run wants, no setting twice; at most half of the trials asked for.

    `prepared` is the content of the prepared program: models that come to the same program are the same model.
    """
    options = RunOptions.stored(context.options)
    if not options.warm_start or sampler_kind(options.sampler).walks:
        return []
    choices = choices_of(evaluator, options)
    with context.database.begin() as tx:
        earlier = tx.trials.of_content(
            PREPARED, prepared, options.platform, besides=context.run.id,
            order=evaluator.goal.figures[0], runs=MOST_RUNS, each=4 * MOST_SETTINGS,
        )  # fmt: skip
    good = [t for t in earlier if _is_feasible(t, evaluator.goal) and _is_of(evaluator.space, choices, t.params)]
    good.sort(key=lambda t: evaluator.goal.values(t.figures))
    best = first_of_each(good, lambda t: dict(t.params))[: max(1, min(MOST_SETTINGS, options.trials // 2))]
    return [KnownSetting(t.run_id, t.number, t.params) for t in best]


def _is_feasible(trial: EarlierTrial, goal: Goal) -> bool:
    """By the limits of now; a record of an older release may lack what they speak of."""
    return goal.needs <= set(trial.figures) and goal.feasible(trial.figures)


def _is_of(space: TilingSpace, choices: Choices, params: Mapping[str, Value]) -> bool:
    """Whether the space still has that setting: parameters come and go between releases."""
    needed = [name for name in choices if means_something(name, params, space.conditions)]
    return all(v in choices.get(n, ()) for n, v in params.items()) and set(needed) <= set(params)
