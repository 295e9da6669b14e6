"""Warm start: a search begins with the best settings that earlier runs of the same model on the same platform found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.db.database import Transaction
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
_NOT_OF_THE_SEARCH = ("evidence", "bitstream", "fifo_simulations", "fifo_slack", "warm_start")


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
        alike = {t.run_id for t in earlier if _asks_alike(tx, t.run_id, context)}
    others = [t for t in earlier if t.run_id not in alike]
    good = [t for t in others if _is_feasible(t, evaluator.goal) and _is_of(evaluator.space, choices, t.params)]
    good.sort(key=lambda t: (evaluator.goal.values(t.figures), json.dumps(dict(t.params), sort_keys=True)))
    best = first_of_each(good, lambda t: dict(t.params))[
        : max(1, min(MOST_SETTINGS, (options.trials or 2 * MOST_SETTINGS) // 2))
    ]
    return [KnownSetting(t.run_id, t.number, t.params) for t in best]


def _asks_alike(tx: Transaction, run_id: str, context: StepContext) -> bool:
    """Whether an earlier run searches as this one does: it finds the same anyway, and the answer stays the same."""
    run = tx.runs.get(run_id)
    return run is not None and _search_of(run.options) == _search_of(context.options)


def _search_of(options: Mapping[str, Any]) -> dict[str, Any]:
    wanted = RunOptions.stored(options).model_dump(mode="json")
    return {name: value for name, value in wanted.items() if name not in _NOT_OF_THE_SEARCH}


def _is_feasible(trial: EarlierTrial, goal: Goal) -> bool:
    """By the limits of now; a record of an older release may lack what they speak of."""
    return goal.needs <= set(trial.figures) and goal.feasible(trial.figures)


def _is_of(space: TilingSpace, choices: Choices, params: Mapping[str, Value]) -> bool:
    """Whether the space still has that setting: parameters come and go between releases."""
    needed = [name for name in choices if means_something(name, params, space.conditions)]
    return all(v in choices.get(n, ()) for n, v in params.items()) and set(needed) <= set(params)
