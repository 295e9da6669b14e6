"""The space of settings that proposals come from: which parameters mean something, what is fixed, all of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from penstock.compiler.errors import PenstockError, nearest
from penstock.dse.space.tiling import Choices, Conditions, Params, Value

LARGEST_GRID = 20_000
"""A space with more settings than this cannot be walked from end to end."""


def is_ordered(values: Sequence[Value]) -> bool:
    """Whether a parameter's choices are numbers, so that neighbours are alike."""
    return all(isinstance(v, int) and not isinstance(v, bool) for v in values)


def distribution(values: Sequence[Value]) -> BaseDistribution:
    """What Optuna samples: positions of ordered choices, the others themselves."""
    return IntDistribution(0, len(values) - 1) if is_ordered(values) else CategoricalDistribution(list(values))


def in_order(choices: Choices, conditions: Conditions) -> tuple[str, ...]:
    """Parameters such that each comes after those that decide whether it means anything."""
    placed: list[str] = []
    waiting = list(choices)
    while waiting:
        ready = [n for n in waiting if all(p in placed or p not in choices for p in conditions.get(n, {}))]
        if not ready:
            raise PenstockError(
                code="bad-conditions", what="parameters depend on each other in a circle", where=", ".join(waiting),
                hint="this is a defect in the space; please report it",
            )  # fmt: skip
        placed += ready
        waiting = [n for n in waiting if n not in ready]
    return tuple(placed)


def means_something(name: str, params: Params, conditions: Conditions) -> bool:
    """Whether a parameter has a meaning beside the values of the others."""
    return all(params.get(parent) in values for parent, values in conditions.get(name, {}).items())


def settings(choices: Choices, conditions: Mapping[str, Mapping[str, tuple[Value, ...]]]) -> Iterator[dict[str, Value]]:
    """Every distinct setting once: parameters that mean nothing are left out."""
    order = in_order(choices, conditions)

    def extend(position: int, params: dict[str, Value]) -> Iterator[dict[str, Value]]:
        if position == len(order):
            yield params
            return
        name = order[position]
        if not means_something(name, params, conditions):
            yield from extend(position + 1, params)
            return
        for value in choices[name]:
            yield from extend(position + 1, params | {name: value})

    return extend(0, {})


def narrow(choices: Choices, fixed: Sequence[str]) -> Choices:
    """The space with some parameters fixed to a value, each as `name=value`."""
    narrowed = dict(choices)
    for text in fixed:
        name, _, value = text.partition("=")
        if name not in choices:
            raise PenstockError(
                code="unknown-parameter", what=f"the space has no parameter {name[:60]!r}", where="fix",
                limit="parameters: " + ", ".join(choices), hint=nearest(name, choices, "take one"),
            )  # fmt: skip
        found = tuple(v for v in choices[name] if str(v).lower() == value.lower())
        if not found:
            raise PenstockError(
                code="bad-parameter", what=f"{name} cannot be {value[:60]!r}", where="fix",
                limit="choices: " + ", ".join(map(str, choices[name])), hint="take one of the choices",
            )  # fmt: skip
        narrowed[name] = found
    return narrowed


def within(params: Params, choices: Choices) -> dict[str, Value]:
    """A setting with what is fixed as it is fixed."""
    return {name: choices[name][0] if len(choices[name]) == 1 else value for name, value in params.items()}


def grid(choices: Choices, conditions: Conditions, seed: int) -> list[dict[str, Value]]:
    """All settings of a small space in an order of the seed's, so that a part of them is a fair sample."""
    found = list(islice(settings(choices, conditions), LARGEST_GRID + 1))
    if len(found) > LARGEST_GRID:
        raise PenstockError(
            code="grid-too-large", what="the space has too many settings to try them all", where="sampler",
            limit=f"at most {LARGEST_GRID:,}", hint="take tpe, nsga2 or random, or fix some parameters",
        )  # fmt: skip
    random.Random(seed).shuffle(found)
    return found
