"""From a setting to a better one, one parameter at a time: a search of paced designs starts from there."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.dse.evaluation.evaluate import Evaluation, Evaluator
from penstock.dse.search.fill import LANES, fill
from penstock.dse.search.samplers import means_something
from penstock.dse.space.paced import OPERATOR_LUTS
from penstock.dse.space.tiling import Params, Value

MOST_CHANGES = 40
"""A count and not a time: the same search everywhere."""
_KEPT = ("allocation", "fusion", LANES, "default_tile_size", OPERATOR_LUTS)


def climb(evaluator: Evaluator, params: Params, most: int = MOST_CHANGES) -> dict[str, Value]:
    """The best that is met by changing one parameter of a feasible setting after the other, and filling the device.

    What is better is kept, and the walk goes on from there until nothing helps or `most` changes were tried.
    """
    best = evaluator.evaluate(params)
    met, before = {evaluator.means(params)}, None
    while best is not before:
        before = best
        for name, value in _changes(evaluator, best.params):
            changed = {**best.params, name: value}
            meaning = evaluator.means(changed)
            if meaning in met:
                continue
            if len(met) > most:
                return dict(best.params)
            met.add(meaning)
            found = _filled(evaluator, changed)
            if found is not None and found.values < best.values:
                best = found
    return dict(best.params)


def _changes(evaluator: Evaluator, params: Params) -> Iterator[tuple[str, Value]]:
    """Other values of what means something here, but not of amounts: those are filled."""
    space = evaluator.space
    for name, values in space.choices.items():
        if name not in _KEPT and means_something(name, params, space.conditions):
            yield from ((name, value) for value in values if value != params.get(name))


def _filled(evaluator: Evaluator, params: Params) -> Evaluation | None:
    """With more for operators, or with less where that is what it takes to fit."""
    full = fill(evaluator, params)
    return None if full is None else evaluator.evaluate(full)
