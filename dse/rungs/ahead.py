"""What another process simulates meanwhile: of designs that are ranked, the one that comes next."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.kinds import simulated
from penstock.dse.rungs.rung import Bench, Elsewhere, Measured


@dataclass(frozen=True)
class AskedElsewhere:
    """What another process works out, while this one does what takes about as long."""

    other: Elsewhere
    number: int
    began: float

    @staticmethod
    def of(
        other: Elsewhere, evaluator: Evaluator, function: Callable[..., object], arguments: tuple[Any, ...],
        *, first: bool = False,
    ) -> AskedElsewhere | None:  # fmt: skip
        """None where it is not at work."""
        other.work_for(evaluator)
        numbers = other.call(function, [arguments], first=first)
        return AskedElsewhere(other, numbers[0], time.monotonic()) if numbers else None

    def answer(self) -> object:
        """None where there is none. It waits as long as this process was at work since: anew, it would take longer."""
        return self.other.awaited(self.number, time.monotonic() - self.began)


@dataclass(frozen=True)
class Simulated:
    """A design, seen to run through, and what its simulation says."""

    proven: Evaluation
    measured: Measured


class Ahead:
    """AskedElsewhere for one design at a time. What it has not said by then is found here: it changes no answer."""

    def __init__(self, evaluator: Evaluator, bench: Bench, evidence: Evidence) -> None:
        self._evaluator = evaluator
        self._other = bench.elsewhere if evidence == "simulated" else None
        self._candidate: Evaluation | None = None
        self._asked: AskedElsewhere | None = None

    def begin(self, candidate: Evaluation | None) -> None:
        """This one will probably be wanted next."""
        self._candidate, self._asked = candidate, None
        if self._other is not None and candidate is not None:
            self._asked = AskedElsewhere.of(self._other, self._evaluator, prove_and_simulate, (candidate,))

    def said(self, candidate: Evaluation) -> Simulated | None:
        """None where it is to be simulated here."""
        if self._asked is None or candidate is not self._candidate:
            return None
        found = self._asked.answer()
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
