"""The real step bodies, with trials that take a moment: so that a kill can meet one in the middle."""

from __future__ import annotations

import random
import time
from typing import Any, cast

import penstock.services.steps.bodies  # noqa: F401 - registers them
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.search.study import Study
from penstock.dse.space.tiling import Params
from penstock.services.steps.bodies import trial
from penstock.services.steps.context import StepContext


class _Slow:
    """An evaluator that takes its time, between what the study was asked and what it is told."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._evaluator, name)

    def assume(self, params: Params) -> Evaluation:
        time.sleep(random.uniform(0.2, 0.6))
        return self._evaluator.assume(params)


_answer = trial._answer


def _slowly(context: StepContext, study: Study, evaluator: Evaluator) -> tuple[int, Evaluation]:
    return _answer(context, study, cast("Evaluator", _Slow(evaluator)))


trial._answer = _slowly
