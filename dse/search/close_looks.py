"""Settings of which it is asked what waits between their kernels: every second one is asked of the second process.

How far dies miss a design and what its FIFOs need takes as long as to model it. So the second process says that too,
of what is good enough for anybody to ask.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from typing import TypeVar

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.remembered import setting_key
from penstock.dse.evaluation.waiting import Held
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.second import Rank, SecondProcess
from penstock.dse.search.worth import State, foretell, key_of
from penstock.dse.space.tiling import Params

_FEW = 16
"""Settings that both share: of more, more would be worked out for nothing where one is better."""
_TIMES, _MOST_S = 1.5, 4.0
"""How many times the longest that was done here, and how many seconds at most: it began a little later, perhaps."""

Before = TypeVar("Before")
After = TypeVar("After")


@dataclass(frozen=True)
class CloseLook:
    """What is found if it is good enough, by how much dies miss it, and what waits in it if they do not."""

    found: Evaluation | None
    excess: float = inf
    held: Mapping[str, int] | None = None


def look_closely(
    evaluator: Evaluator, changes: Params, *, base: Params, below: Rank, most: float, held: Held
) -> CloseLook:
    """At a setting that is to be better than `below`; what waits, where dies are missed by no more than `most`."""
    found = foretell(evaluator, {**base, **changes}, below).found
    if found is None or not found.feasible:
        return CloseLook(found)
    excess = DiesHold(evaluator).excess(found)
    return CloseLook(found, excess, _held(evaluator, found, held) if excess <= most else None)


class _Patience:
    """How long to wait for what the second process is at: no longer than it takes here, and not after it was late."""

    def __init__(self) -> None:
        self._longest, self._times = 0.0, _TIMES

    def took(self, seconds: float) -> None:
        self._longest = min(max(self._longest, seconds), _MOST_S)

    @property
    def seconds(self) -> float:
        return self._longest * self._times

    def waited(self, in_time: bool) -> None:
        """Whether it came while it was waited for; or without, later."""
        self._times = _TIMES if in_time else 0.0


class CloseLooks:
    """Of one evaluator, its dies, and one way to count what waits."""

    def __init__(self, evaluator: Evaluator, dies: DiesHold, second: SecondProcess | None, held: Held) -> None:
        self._evaluator, self._dies, self._second, self._count = evaluator, dies, second, held
        self._asked: dict[Hashable, int] = {}
        self._first, self._began, self._patience = 0, 0.0, _Patience()
        self._held: dict[Hashable, Mapping[str, int]] = {}
        if second is not None:
            second.work_for(evaluator)

    def in_turn(
        self, ways: Iterable[tuple[Before, State, After]], base: Params, below: Rank, most: float
    ) -> Iterator[tuple[Before, State, After]]:
        """These ways with their states, of some of which the second process says soon what they come to.

        A few of them at a time, and every other one of these: mostly both are done with theirs at the same time.
        """
        left = iter(ways)
        while few := list(islice(left, _FEW if self._second is not None else 1)):
            self._foresee([state for _, state, _ in few[1::2]], base, below, most)
            yield from few

    def _foresee(self, states: Sequence[State], base: Params, below: Rank, most: float) -> None:
        if self._second is None:
            return
        states = [state for state in states if not base.keys() - state.keys()]
        look = partial(look_closely, base=dict(base), below=below, most=most, held=self._count)
        changes = [{name: value for name, value in state.items() if base.get(name) != value} for state in states]
        numbers = self._second.call(look, [(changed,) for changed in changes])
        self._first = numbers.start
        self._asked |= {(key_of(state), below): number for state, number in zip(states, numbers, strict=False)}

    def look(self, state: State, below: Rank) -> Evaluation | None:
        """None where it cannot be laid out, or is not better than `below`. Other bounds say nothing here."""
        now = time.monotonic()
        if self._began:
            self._patience.took(now - self._began)
        self._began = now
        said = self._said(self._asked.get((key_of(state), below)))
        if said is None:
            return foretell(self._evaluator, state, below).found
        if (found := said.found) is not None:
            self._evaluator.is_told(found)
            if said.excess < inf:
                self._dies.is_told(found, said.excess)
            if said.held is not None:
                self._held[setting_key(found.params)] = said.held
        return found

    def _said(self, number: int | None) -> CloseLook | None:
        """None where the second process was not asked, or is not at it by now: it works in the order of the numbers."""
        if self._second is None or number is None:
            return None
        said = self._second.answer(number)
        if said is None and (number == self._first or self._second.answer(number - 1) is not None):
            said = self._second.awaited(number, self._patience.seconds)
            self._patience.waited(said is not None)
        return said if isinstance(said, CloseLook) else None

    def held(self, one: Evaluation) -> Mapping[str, int]:
        """Bits that wait in each channel between kernels."""
        setting = setting_key(one.params)
        if setting not in self._held:
            self._held[setting] = _held(self._evaluator, one, self._count)
        return self._held[setting]


def _held(evaluator: Evaluator, one: Evaluation, held: Held) -> Mapping[str, int]:
    return held(evaluator, one, evaluator.assembler.network(one.design))
