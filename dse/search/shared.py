"""Settings that are all wanted, one after the other: some of them are modelled by the second process meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.remembered import setting_key
from penstock.dse.search.second import Rank, SecondProcess
from penstock.dse.search.worth import ANY, State, foretell, key_of
from penstock.dse.space.tiling import Params, Value


def shared(
    evaluator: Evaluator, settings: Sequence[dict[str, Value]], second: SecondProcess | None
) -> Iterator[dict[str, Value]]:
    """Each in turn. What the second process, which begins at the end, says of it by then is known to the evaluator."""
    if second is None:
        yield from settings
        return
    second.work_for(evaluator)
    if second.takes_more:
        each = list({setting_key(params): params for params in settings}.items())
        second.look_at(each[: len(each) // 2 : -1], {}, ANY)
    for params in settings:
        said = second.said(setting_key(params))
        if said is not None and said.found is not None:
            evaluator.is_told(said.found)
        yield params


class SharedLooks:
    """Settings are modelled here and, every second one of them, by the second process meanwhile."""

    def __init__(self, evaluator: Evaluator, second: SecondProcess | None) -> None:
        self._evaluator, self._second = evaluator, second
        if second is not None:
            second.work_for(evaluator)

    def foresee(self, states: Sequence[State], base: Params, below: Rank) -> None:
        if self._second is not None and states and self._second.takes_more:
            self._second.look_at([((key_of(state), below), state) for state in states[1::2]], base, below)

    def look(self, state: State, below: Rank) -> Evaluation | None:
        """None where it cannot be laid out, or is not better than `below`. Other bounds say nothing here."""
        said = self._second.said((key_of(state), below)) if self._second is not None else None
        if said is None:
            return foretell(self._evaluator, state, below).found
        if said.found is not None:
            self._evaluator.is_told(said.found)
        return said.found
