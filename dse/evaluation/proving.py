"""Only what may be chosen is seen to run through: a simulation takes seconds of a large model, and most trials lose."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.dse.evaluation.choosing import select_best
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation


def prove_best(evaluator: Evaluator, trials: Mapping[int, Evaluation]) -> dict[int, Evaluation]:
    """The trials by their numbers, the best of them seen to run through.

    One that does not is what it is with safe depths, and another may then be the best.
    """
    found = dict(trials)
    while (best := select_best(list(found.values()))).assumed:
        number = next(number for number, one in found.items() if one is best)
        found[number] = evaluator.proven(best)
    return found
