"""The real step bodies, with trials that take a moment: so that a kill can meet one in the middle."""

from __future__ import annotations

import random
import time

import penstock.services.steps.bodies  # noqa: F401 - registers them
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.space.tiling import Params

_evaluate = Evaluator.evaluate


def _slowly(self: Evaluator, params: Params) -> Evaluation:
    time.sleep(random.uniform(0.2, 0.6))
    return _evaluate(self, params)


Evaluator.evaluate = _slowly
