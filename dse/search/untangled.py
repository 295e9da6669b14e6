"""Kernels beside the converters that hold most walk otherwise, and all around them in step.

A converter holds all that one kernel makes before the next one begins, if their slowest dims differ: both run one after
the other then, and whole tensors wait on the chip. In attention such a dim is shared by five kernels or more, of little
work each, and no one alone can be turned. A descent through many kernels comes to those of the most work, and no
further. What converters hold follows from walks alone and is looked at without timing anything.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import converters_of, held_between
from penstock.dse.search.ways import followed, kernels_beside
from penstock.dse.search.worth import State, first_design
from penstock.dse.space.fitted import WALK, cap_of
from penstock.dse.space.tiling import Choices, Params

_LARGEST, _LEAST, _MUCH = 4, 1 / 32, 0.2
"""Converters that are looked at, what part of what all of them hold the last one holds, and what part of all that waits
they hold together where a look is worth its time."""
_MOST = 8
"""Settings that are timed, those whose converters hold the fewest bits."""


def untangled(evaluator: Evaluator, choices: Choices, best: Evaluation) -> list[State]:
    """Settings in which converters hold less than in the best one, those that hold the fewest bits first."""
    turned = {tuple(state.values()): state for state in _turned(evaluator, choices, best)}
    now = _held(evaluator, best.params) if turned else None
    found: dict[int, State] = {}
    for state in turned.values():
        held = _held(evaluator, state)
        if held is not None and (now is None or held < now):
            found.setdefault(held, state)
    return [found[held] for held in sorted(found)[:_MOST]]


def _turned(evaluator: Evaluator, choices: Choices, best: Evaluation) -> Iterator[State]:
    network = evaluator.assembler.network(best.design)
    held = converters_of(network)
    if sum(held.values()) < _MUCH * held_between(evaluator, best):
        return
    largest = sorted(held, key=lambda name: -held[name])[:_LARGEST]
    most = [name for name in largest if held[name] >= sum(held.values()) * _LEAST]
    for layer in dict.fromkeys(layer for name in most for layer in kernels_beside(evaluator, name, network)):
        name = f"{WALK}.{layer}"
        if name not in choices or layer in evaluator.space.spatial:
            continue
        for value in choices[name]:
            if cap_of(value) != cap_of(best.params[name]):
                continue
            state = followed(evaluator.space, evaluator.space.graph.by_layer[layer], {**best.params, name: value})
            if all(value in choices[name] for name, value in state.items()):
                yield state


def _held(evaluator: Evaluator, params: Params) -> int | None:
    """Bits of the converters of the first design of a setting."""
    try:
        network = evaluator.assembler.network(first_design(evaluator, params))
    except PenstockError:  # it cannot be laid out
        return None
    return sum(converters_of(network).values())
