"""The other end of a front: designs that take less, and that nothing beats in time and resources together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.choosing import pareto_front
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.hypervolume import most_first
from penstock.dse.evaluation.remembered import setting_key
from penstock.dse.search.samplers import within
from penstock.dse.search.worth import State, rank_of
from penstock.dse.space.fitted import BUILT, SHARE
from penstock.dse.space.tiling import Choices, Params
from penstock.dse.support.budgets import QUICKLY_MODELLED

_SMALLER = (70, 55, 40, 28, 20, 14, 10, 7, 5, 3, 2, 1)
"""Percent of the limits at which the best walks are tried too."""
_SMALL = 10
"""Percent of the limits up to which the simplest walks, around which there is least, may be smaller than the best."""
_SMALLER_OF_MANY = (40, 14, 5)
"""Of models of many kernels, whose designs take a second or two to model."""
_AROUND = 1200
"""Settings around a front that are looked at, times the kernels that each of them takes longer with."""
_MOST = 32
"""Of a front that are tried."""


def smaller(evaluator: Evaluator, best: State, choices: Choices) -> tuple[list[State], int]:
    """The best walks at smaller shares of the limits, after the fastest of all; and how many were modelled for it.

    Of few kernels with every kind of adder, and where little may be used on the simplest walks too, and then what is on
    the front with one parameter changed: the fastest is seldom built as the smallest, nor walks as it does. What adds
    most to the front comes first.
    """
    few = len(evaluator.space.graph.operations) <= QUICKLY_MODELLED
    shares = [share for share in (_SMALLER if few else _SMALLER_OF_MANY) if share in choices[SHARE]]
    plain = [{**best, SHARE: share} for share in shares if share < int(best[SHARE])]
    built = [name for name in best if name.startswith(f"{BUILT}.") and name in choices]
    kinds = dict.fromkeys(kind for name in built for kind in choices[name])
    if not few or len(evaluator.goal.objectives) == 1 or len(kinds) < 2:
        return plain, 0
    others = [{name: kind for name in built if kind in choices[name]} for kind in kinds]
    simple = within(evaluator.space.fitted_setting(), choices)
    settings = [
        {**way, **other, SHARE: share}
        for share in (int(best[SHARE]), *shares)
        for way in ([best, simple] if share <= _SMALL else [best])
        for other in ({}, *others)
    ]
    front, around = _widened(evaluator, pareto_front(_feasible(evaluator, settings)), choices)
    fastest = min([evaluator.assume(best), *front[:1]], key=rank_of)
    tried = [fastest, *most_first(front, fastest)[:_MOST]]
    return [dict(one.params) for one in tried], len(settings) + around


def _widened(evaluator: Evaluator, front: list[Evaluation], choices: Choices) -> tuple[list[Evaluation], int]:
    """A front with what is found around it: around what adds most to its fastest, which a descent went around, first,
    until all of it has been gone around, or so many settings have been looked at."""
    looked, gone_around = set[Hashable](), set[Hashable]()
    most = _AROUND // max(3, len(evaluator.space.graph.operations))
    while len(looked) < most:
        order = most_first(front, front[0]) if front else []
        middle = next((one for one in order if setting_key(one.params) not in gone_around), None)
        if middle is None:
            break
        gone_around.add(setting_key(middle.params))
        for state in _around(middle.params, choices):
            if len(looked) < most and (means := evaluator.means(state)) not in looked:
                looked.add(means)
                front = pareto_front([*front, *_feasible(evaluator, [state])])
    return front, len(looked)


def _around(params: Params, choices: Choices) -> Iterator[State]:
    """With another value of one parameter."""
    for name in params:
        for value in choices.get(name, ()):
            if value != params[name]:
                yield {**params, name: value}


def _feasible(evaluator: Evaluator, settings: list[State]) -> list[Evaluation]:
    found: list[Evaluation] = []
    for params in settings:
        try:
            found.append(evaluator.assume(params))
        except PenstockError:  # its trial would say why
            continue
    return [one for one in found if one.feasible]
