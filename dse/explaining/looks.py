"""What the settings around a chosen design come to: looked at here, or ahead of time by a search's second process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.errors import reason_of
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import DIES, ROUTING
from penstock.dse.search.fill import amount_of
from penstock.dse.search.second import SecondProcess
from penstock.dse.space.tiling import Params, TilingSpace, Value

MOST_NEIGHBOURS = 48
"""Steps that are modelled at most: a large model has a parameter for each of its layers."""

_LARGER_AHEAD = 6
"""Larger designs that are looked at ahead: one of the first is mostly twice as fast."""


@dataclass(frozen=True)
class Looked:
    """What explaining needs of a setting's design; `failure` says why there is none."""

    design: str = ""
    """Its digest."""
    latency: int = 0
    measures: Mapping[str, float] | None = None
    share: float = 0.0
    """Of the limit that it is nearest to, or the furthest above."""
    binding: str = ""
    feasible: bool = False
    failure: str = ""


class Looks:
    """Looks at settings, each once. What a `second` process has said by then is not looked at again."""

    def __init__(self, evaluator: Evaluator, second: SecondProcess | None = None) -> None:
        self.evaluator = evaluator
        self._second = second
        self._ahead: dict[tuple[tuple[str, Value], ...], int] = {}
        self._known: dict[tuple[tuple[str, Value], ...], Looked] = {}

    def think_of(self, params: Params) -> None:
        """This one will probably be chosen: the second process looks around it meanwhile, and at nothing else."""
        if self._second is None or _key(params) in self._ahead:
            return
        self._second.work_for(self.evaluator)
        around = around_of(self.evaluator.space, params)
        numbers = self._second.call(look_at, [(one,) for one in around])
        self._ahead = dict(zip(map(_key, around), numbers, strict=False))

    def at(self, params: Params) -> Looked:
        key = _key(params)
        if key not in self._known:
            number = self._ahead.get(key)
            said = self._second.answer(number) if self._second is not None and number is not None else None
            self._known[key] = said if isinstance(said, Looked) else look_at(self.evaluator, params)
        return self._known[key]


def look_at(evaluator: Evaluator, params: Params) -> Looked:
    try:
        one = evaluator.assume(params)
    except Exception as error:  # noqa: BLE001 - a step that cannot be modelled is one step less to tell of
        return Looked(failure=reason_of(error))
    used = one.figures.resources.share_of(evaluator.may_use)
    binding = max(used, key=lambda resource: used[resource])
    share = used[binding]
    dies = one.fullest_die or 0.0
    if share <= 1 < dies:
        share, binding = dies, DIES
    elif share <= 1 and one.routing is not None and one.routing.share > 1:
        share, binding = one.routing.share, ROUTING
    return Looked(one.design.digest(), one.figures.latency, dict(one.measures), share, binding, one.feasible)


def steps_from(space: TilingSpace, params: Params) -> list[tuple[str, Value]]:
    """Numbers one step up and down, words every other one; only parameters that mean something here."""
    steps: list[tuple[str, Value]] = []
    for name, values in space.choices.items():
        value = params.get(name)
        needs = space.conditions.get(name, {})
        if value not in values or any(params.get(other) not in allowed for other, allowed in needs.items()):
            continue
        place = values.index(value)
        if isinstance(value, int) and not isinstance(value, bool):
            steps += [(name, values[i]) for i in (place - 1, place + 1) if 0 <= i < len(values)]
        else:
            steps += [(name, other) for other in values if other != value]
    return steps


def larger_of(space: TilingSpace, params: Params) -> list[dict[str, Value]]:
    """The same design with more of the device, step by step."""
    amount = amount_of(params)
    sizes: Sequence[Value] = space.choices.get(amount, ())
    now = params.get(amount)
    return [{**params, amount: size} for size in (sizes[sizes.index(now) + 1 :] if now in sizes else ())]


def around_of(space: TilingSpace, params: Params) -> list[dict[str, Value]]:
    """What explaining looks at, in the order in which it is looked at ahead: `Looks.at` begins at the other end."""
    steps = [{**params, name: other} for name, other in steps_from(space, params)[:MOST_NEIGHBOURS]]
    return [*larger_of(space, params)[:_LARGER_AHEAD], *steps]


def _key(params: Params) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(params.items()))
