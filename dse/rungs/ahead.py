"""What another process simulates meanwhile: of designs that are ranked, the one that comes next."""

from __future__ import annotations

import time
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.kinds import simulated
from penstock.dse.rungs.rung import Bench, Measured


@dataclass(frozen=True)
class Simulated:
    """A design, seen to run through, and what its simulation says."""

    proven: Evaluation
    measured: Measured


class Ahead:
    """Asked for one design at a time. What it has not said by then is found here: it changes no answer."""

    def __init__(self, evaluator: Evaluator, bench: Bench, evidence: Evidence) -> None:
        self._other = bench.elsewhere if evidence == "simulated" else None
        self._asked: Evaluation | None = None
        self._number, self._began = 0, 0.0
        if self._other is not None:
            self._other.work_for(evaluator)

    def begin(self, candidate: Evaluation | None) -> None:
        """This one will probably be wanted next."""
        self._asked, self._began = None, time.monotonic()
        if self._other is not None and candidate is not None:
            for number in self._other.call(prove_and_simulate, [(candidate,)]):
                self._asked, self._number = candidate, number

    def said(self, candidate: Evaluation) -> Simulated | None:
        """None where it is to be simulated here.

        It waits as long as the simulation beside it took: anew, this one would take longer.
        """
        if self._other is None or candidate is not self._asked:
            return None
        found = self._other.awaited(self._number, time.monotonic() - self._began)
        return found if isinstance(found, Simulated) else None


def prove_and_simulate(evaluator: Evaluator, candidate: Evaluation) -> Simulated | None:
    """None where that fails: whoever asked says why."""
    if candidate.assumed:
        evaluator.is_told(candidate)
    try:
        proven = evaluator.proven(candidate)
        return Simulated(proven, simulated(evaluator, proven, Bench()))
    except PenstockError:
        return None
