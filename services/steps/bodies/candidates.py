"""What came of a run's trials, as everything that looks at the best of them reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.compiler.errors import PenstockError
from penstock.db.schema.records import Step, Trial
from penstock.dse.evaluation.choosing import choosable, place_of, select_best
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.rungs import BEST, WIDER
from penstock.dse.search.study import Told
from penstock.profiling.protocol import ProfilingError, failure_kind
from penstock.services.step_kinds import TRIAL
from penstock.services.steps.context import StepContext

T = TypeVar("T")
POOL = 2 * WIDER * BEST
"""How many of the best trials are looked at again; which of them go on is decided by what is known of their error."""


@dataclass(frozen=True)
class TriedTrials:
    """The trials that have an answer, and the numbers of those that failed."""

    trials: tuple[Trial, ...]
    failed: tuple[int, ...]
    told: Mapping[int, Told]

    @staticmethod
    def read(context: StepContext, goal: Goal) -> TriedTrials:
        """All trials of the run, by what it wants."""
        trials: list[Trial] = []
        with context.database.begin() as tx:
            cursor: str | None = None
            while True:
                page = tx.trials.list(context.run.id, cursor=cursor, limit=500)
                trials += page.items
                cursor = page.next_cursor
                if cursor is None:
                    break
        failed = [int(step.payload["number"]) for step in steps_of(context, TRIAL, "failed")]
        return TriedTrials(tuple(trials), tuple(failed), {t.number: _told(t, goal) for t in trials})

    def everything(self) -> list[Told]:
        """Every trial that ended, by its number."""
        missing = [Told(number=n, state="fail", params={}, values=None, constraints={}) for n in self.failed]
        return sorted([*self.told.values(), *missing], key=lambda t: t.number)

    @property
    def evidence(self) -> Any:
        """The evidence that all trials share: figures of different evidence are not ranked together."""
        kinds = {trial.evidence for trial in self.trials}
        if len(kinds) > 1:
            raise ValueError(f"trials of different evidence cannot be ranked together: {', '.join(sorted(kinds))}")
        return next(iter(kinds), None)

    def best(self) -> list[Trial]:
        """The trials that are worth a closer look: what may be chosen, the best first, no design twice.

        Where nothing fits the platform, that is an error which says what the nearest miss is short of.
        """
        select_best(list(self.told.values()), where="explore")
        chosen = {told.number for told in choosable(list(self.told.values()))}
        order = sorted((t for t in self.trials if t.number in chosen), key=lambda t: place_of(self.told[t.number]))
        return first_of_each(order, lambda t: t.design)[:POOL]

    def evaluations(self, evaluator: Evaluator) -> dict[int, Evaluation]:
        """The best trials' designs, by their trials' numbers."""
        return {t.number: evaluator.assume(t.params) for t in self.best()}


def first_of_each(ordered: Iterable[T], content: Callable[[T], Any]) -> list[T]:
    """Of those with the same content the first one, in their order."""
    found: dict[str, T] = {}
    for one in ordered:
        found.setdefault(json.dumps(content(one), sort_keys=True), one)
    return list(found.values())


def steps_of(context: StepContext, kind: str, state: str) -> list[Step]:
    """All steps of the run of one kind that are in one state."""
    found: list[Step] = []
    cursor: str | None = None
    with context.database.begin() as tx:
        while True:
            page = tx.steps.list(context.run.id, kinds=[kind], states=[state], cursor=cursor, limit=500)
            found += page.items
            cursor = page.next_cursor
            if cursor is None:
                return found


def failure_of(step: Step) -> PenstockError:
    """Why a step failed, as it was recorded."""
    error = step.error or {}
    code = str(error.get("code") or "unknown")
    words = {name: str(error.get(name) or "") for name in ("what", "where", "limit", "hint")}
    kind = failure_kind(code)
    if kind is not None:
        return ProfilingError(kind, **words, log_tail=str(error.get("log_tail") or ""))
    return PenstockError(code=code, **words)


def _told(trial: Trial, goal: Goal) -> Told:
    """A trial of ours as the search's own record."""
    values, constraints = goal.values(trial.figures), goal.constraints(trial.figures)
    return Told(trial.number, "complete", dict(trial.params), values, constraints, figures=trial.figures)
