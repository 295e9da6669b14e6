"""How much FIFO sizing may simulate: counted, not timed, so that the same design always gets the same depths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

WORK_EACH = 250_000
"""Events that one of the counted simulations stands for: long ones use up the budget sooner."""


@dataclass(frozen=True)
class Effort:
    """The most that a sizing may simulate, in runs and in events."""

    simulations: int
    work: int

    @staticmethod
    def of(simulations: int) -> Effort:
        return Effort(simulations, simulations * WORK_EACH)

    def part(self, share: float) -> Effort:
        return Effort(int(self.simulations * share), int(self.work * share))

    def without(self, simulations: int, work: int) -> Effort:
        return Effort(max(0, self.simulations - simulations), max(0, self.work - work))


SizingProgress = Callable[[str], None]
"""Called now and then with where the sizing stands, in a few words."""
