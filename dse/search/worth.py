"""What settings are worth to a search that changes them step by step: each is modelled once, up to so many.

A setting that is no better than the best one need not be known further than that. So much another process may say as
well as this one (`second.py`): what a setting comes to follows from the setting alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.fitting import part_of
from penstock.dse.evaluation.objectives import DIES, shortage
from penstock.dse.search.second import Foretold, Rank, SecondProcess
from penstock.dse.space.fitted import FITTED, SHARE, Allowance
from penstock.dse.space.tiling import Choices, Params, Value

State = dict[str, Value]
Key = tuple[Value, ...]
_GAIN = 0.999
"""Of the time between two inputs: what saves less is not looked at."""
_FED = 0.995
"""The same where only what operators wait for is changed. They wait for hardly anything, if they are as fast as this:
less than times are known to before they are simulated."""

_FASTER_WITH_LESS = 0.9
"""How many times as long what fits takes at best, where the first design has more operators than fit."""


ANY: Rank = (inf,)
"""What any setting is better than."""


@dataclass(frozen=True)
class PassedOver:
    """A setting that is no better than the best was when it was looked at."""

    params: Params
    rank: Rank
    timed: bool


def rank_of(one: Evaluation | PassedOver) -> Rank:
    """What fits comes first, then what misses the dies alone; then the objectives, then the smaller one."""
    if isinstance(one, PassedOver):
        return one.rank
    missed = shortage(one.constraints)[1]
    apart = 0.5 if missed <= 0 < one.constraints.get(DIES, 0.0) else 0.0
    return max(missed, 0.0) + apart, *one.values, max(one.shares.values())


def foretell(evaluator: Evaluator, params: Params, below: Rank, *, in_full: bool = False) -> Foretold:
    """How good a setting may be and, as far as that is better than `below`, how good it is at best and is.

    With `in_full`, all of what is timed, also where it is no better: a search says in the end what else it timed, and
    that is not to hang on which process looked at what.
    """
    by_first = _by_first_design(evaluator, params)
    if by_first is not None and by_first >= below:
        return Foretold(by_first, None, None)
    return foretell_fitted(evaluator, params, below, by_first, in_full=in_full)


def foretell_fitted(
    evaluator: Evaluator, params: Params, below: Rank, by_first: Rank | None = None, *, in_full: bool = False
) -> Foretold:
    """The same whatever its first design takes: what fits may have other walks of few lanes, and be much faster."""
    first = _modelled(_first_look(evaluator), params)
    if first is None:
        return Foretold(None, None, None)
    at_best = rank_of(first)
    if not first.timed and at_best < below:
        first = _modelled(evaluator.assume, params) if in_full else _timed_below(evaluator, params, below)
        if first is None:
            return Foretold(by_first, at_best, None)
    if not first.timed:
        return Foretold(by_first, rank_of(first), None)
    timed = rank_of(first)
    return Foretold(by_first, at_best, timed, first if in_full or timed < below else None)


class Worth:
    """The settings that were looked at, `most` of them. With a `second` process, some of them are by then."""

    def __init__(self, evaluator: Evaluator, choices: Choices, most: int, second: SecondProcess | None) -> None:
        self.most, self._evaluator, self._choices = most, evaluator, choices
        self._look, self._second = _first_look(evaluator), second
        self.seen: dict[Key, Evaluation | PassedOver | None] = {}
        self._left_out: set[Key] = set()
        if second is not None:
            second.work_for(evaluator)

    @property
    def may_go_on(self) -> bool:
        return len(self.seen) + len(self._left_out) < self.most

    def evaluate(self, state: State, best: Evaluation | None = None) -> Evaluation | None:
        """The design of a state; None if it cannot be laid out, or if enough were tried.

        One that is no better than `best` even if no FIFO is ever full need not be timed, and may be None too.
        """
        if not self._is_open(state):
            return None
        key = key_of(state)
        if key not in self.seen and self.may_go_on:
            if best is not None and self._gains_nothing(state, best):
                self._left_out.add(key)
                return None
            self._left_out.discard(key)
            self.seen[key] = self._looked_at(key, state, best)
        found = self.seen.get(key)
        whole = isinstance(found, Evaluation) and found.timed
        if found is not None and not whole and (best is None or rank_of(found) < rank_of(best)):
            found = self.seen[key] = _modelled(self._evaluator.assume, state)
        return found if isinstance(found, Evaluation) else None

    def foresee(
        self,
        now: Sequence[State],
        best: Evaluation | None = None,
        then: Iterable[Iterable[State]] = (),
        *,
        more: bool = False,
    ) -> None:
        """Have the second process look at the later half of what is evaluated `now`, and at what comes `then`.

        It begins at the end of each, this process at the beginning. If no move is better, all of it is needed. There
        may be `more` of them than settings that are left. Without a `best` one, all are evaluated in full.
        """
        second = self._second
        if second is None or not now or not (more or self.may_go_on) or not second.takes_more:
            return
        left, later = self._unknown(now, second, best), iter(then)
        share = left[(len(left) + 1) // 2 :][::-1]
        while len(share) < second.ENOUGH and (states := next(later, None)) is not None:
            share += self._unknown(states, second, best)[::-1]
        if best is None:
            second.look_at(share, now[0], ANY)
        else:
            second.look_at(share, best.params, rank_of(best))

    @property
    def timed(self) -> tuple[Evaluation, ...]:
        """All of which is known how fast they are, the best first."""
        return tuple(sorted((e for e in self.seen.values() if isinstance(e, Evaluation) and e.timed), key=rank_of))

    def best_seen(self) -> Evaluation | PassedOver:
        return min((one for one in self.seen.values() if one is not None), key=rank_of)

    def is_known_as(self, found: Evaluation) -> None:
        """What a closer look made of a setting."""
        self.seen[key_of(found.params)] = found

    def _gains_nothing(self, state: State, best: Evaluation) -> bool:
        """Whether operators alone take as long as the best does, where nothing but the time between inputs counts.

        Most moves of many kernels change lanes of what is not the slowest, and need not be modelled to say so.
        """
        if best.goal.objectives != ("throughput",) or not best.feasible:
            return False
        now, least = best.values[0], self._quickest(state)
        return least > now * _GAIN or (least > now * _FED and least >= self._quickest(best.params))

    def _quickest(self, params: Params) -> int:
        """Cycles between two inputs that operators take if they wait for nothing."""
        space = self._evaluator.space
        return space.fitting.quickest(space.settings(params), self._evaluator.may_use)

    def _unknown(
        self, states: Iterable[State], second: SecondProcess, best: Evaluation | None
    ) -> list[tuple[Key, State]]:
        keyed = {key_of(state): state for state in states if self._is_open(state)}
        unseen = [(key, state) for key, state in keyed.items() if key not in self.seen and second.said(key) is None]
        return [(key, state) for key, state in unseen if best is None or not self._gains_nothing(state, best)]

    def _is_open(self, state: Mapping[str, Value]) -> bool:
        return all(value in self._choices[name] for name, value in state.items())

    def _looked_at(self, key: Key, state: State, best: Evaluation | None) -> Evaluation | PassedOver | None:
        said = self._second.said(key) if self._second is not None else None
        if said is not None and said.found is not None:
            self._evaluator.is_told(said.found)
        if best is None:
            return _modelled(self._look, state) if said is None or said.found is None else said.found
        rank = rank_of(best)
        by_first = _by_first_design(self._evaluator, state) if said is None else said.by_first
        if by_first is not None and by_first >= rank:
            return PassedOver(state, by_first, timed=False)
        if said is not None and said.at_best is None and by_first is None:
            return None
        if said is not None and said.at_best is not None:
            if said.at_best >= rank and self._evaluator.goal.time_only_costs:
                return PassedOver(state, said.at_best, timed=False)
            if said.timed is not None and said.timed >= rank:
                return said.found
        return _modelled(self._look, state) if said is None or said.found is None else said.found


def first_design(evaluator: Evaluator, params: Params) -> Design:
    """What a setting with a walk for every kernel comes to if nothing is taken back of all that may be used."""
    whole = part_of(evaluator.may_use, int(evaluator.space.settings(params)[SHARE]))
    return evaluator.space.fitted(params, Allowance(whole))


def _by_first_design(evaluator: Evaluator, params: Params) -> Rank | None:
    """How good a setting may be if the first design that is made of it fitted: None where that says nothing.

    Most settings' first designs are far slower than the best that is known, although they have all operators that may
    be used. To find out what fits takes several times as long. What fits may be faster by some, with other lanes.
    """
    if not evaluator.goal.asks_for_time or params.get("allocation") != FITTED:
        return None
    first = _modelled(lambda one: evaluator.outlook_of(first_design(evaluator, one), one), params)
    return None if first is None else (0.0, first.values[0] * _FASTER_WITH_LESS, inf)


def _first_look(evaluator: Evaluator) -> Callable[[Params], Evaluation]:
    return evaluator.outlook if evaluator.goal.time_only_costs else evaluator.assume


def _timed_below(evaluator: Evaluator, params: Params, below: Rank) -> Evaluation | None:
    """A setting in full, or of what is seen to be no better than that as much as is known by then."""
    return _modelled(lambda one: evaluator.assume(one, lambda found: rank_of(found) < below), params)


def _modelled(model: Callable[[Params], Evaluation], params: Params) -> Evaluation | None:
    try:
        return model(params)
    except PenstockError:  # it cannot be laid out or scheduled
        return None


def key_of(state: Mapping[str, Value]) -> Key:
    return tuple(state[name] for name in sorted(state))
