"""What a pool child holds: the steps of one claim, and how many to claim next time.

Steps that take milliseconds are claimed and recorded several at once, since a transaction takes longer than they do.
What is held is seen by the heartbeat's thread too, which takes from it what a long step would keep waiting.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from penstock.db.lifecycle import StepOutcome
from penstock.db.repositories.queues import Portion
from penstock.db.schema.records import Step
from penstock.services.steps.context import StepContext

PORTION_SECONDS = 0.1
"""What the steps of one claim may take together: so long may another's step have to wait for its turn."""
PORTION_STEPS = 64
_RUNS_KNOWN = 100


class Claimed:
    """The steps of one claim, all of one run: those that wait, the one in hand, those done but not recorded."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.run_id = steps[0].run_id
        self.several = len(steps) > 1
        self.context: StepContext | None = None
        self._lock = threading.Lock()
        self._waiting = deque(steps)
        self._ended: list[tuple[Step, StepOutcome]] = []

    def next(self) -> Step | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def end(self, step: Step, outcome: StepOutcome) -> None:
        """The step is done, and will be recorded with others."""
        with self._lock:
            self._ended.append((step, outcome))
            self.context = None

    def take_ended(self) -> list[tuple[Step, StepOutcome]]:
        """What is to be recorded, for the one thread that asks."""
        with self._lock:
            ended, self._ended = self._ended, []
            return ended

    def take_waiting(self) -> tuple[Step, ...]:
        """What was not begun, for the one thread that asks: it will not be begun here."""
        with self._lock:
            waiting = tuple(self._waiting)
            self._waiting.clear()
            return waiting

    def leases(self) -> dict[str, int]:
        """The fence of each step that is held."""
        with self._lock:
            held = [*self._waiting, *(step for step, _ in self._ended)]
            if self.context is not None:
                held.append(self.context.step)
        return {step.id: step.fence for step in held}


class PortionSizes:
    """How long a run's steps of a kind took here lately, and so how many of them to take at once."""

    def __init__(self) -> None:
        self._portions: dict[str, Portion] = {}

    def of(self, run_id: str) -> Portion:
        return self._portions.get(run_id, Portion())

    def note(self, kind: str, run_id: str, steps: int, seconds: float) -> None:
        """At most twice as many as the last time: one quick step says little of the next."""
        last = self._portions.pop(run_id, Portion())
        most = min(2 * last.most if last.kind == kind else 2, PORTION_STEPS, int(PORTION_SECONDS * steps / seconds))
        while len(self._portions) >= _RUNS_KNOWN:
            del self._portions[next(iter(self._portions))]
        self._portions[run_id] = Portion(kind, max(1, most))
