"""Settings that are all wanted, one after the other: some of them are modelled by the second process meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TypeVar, cast

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.remembered import setting_key
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.worth import ANY, State
from penstock.dse.space.tiling import Params, Value

_FEW = 16
"""Settings that both share: of more, more would be worked out for nothing where one is better."""
_PATIENCE, _MOST_S = 1.5, 4.0
"""How many times the longest that was done here is waited for, and how many seconds of it count at most."""

Known = TypeVar("Known")
Seen = TypeVar("Seen")


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


def unlike(
    means: Callable[[Params], Hashable], ways: Iterable[tuple[State, Known]], looked: Collection[Hashable]
) -> Iterator[tuple[State, tuple[Known, Hashable]]]:
    """Those that mean something else than all that were `looked` at and before: few lanes are mostly some more."""
    before = set(looked)
    for state, known in ways:
        if (meaning := means(state)) not in before:
            before.add(meaning)
            yield state, (known, meaning)


def in_turn(
    evaluator: Evaluator,
    second: SecondProcess | None,
    ways: Iterable[tuple[State, Known]],
    base: Params,
    look: Callable[[Evaluator, State], Seen],
    here: Callable[[State], Seen],
) -> Iterator[tuple[Known, Seen]]:
    """What is seen in each way's state, by this process or, every other one, by the second; with what is known of it.

    A few of them at a time: mostly both are done with theirs at the same time, so what the second process is at by then
    is waited for, no longer than one took `here`, and not after it was late. States are as `base` but for some changes.
    """
    left, longest, patience = iter(ways), 0.0, _PATIENCE
    if second is not None:
        second.work_for(evaluator)
    while few := list(islice(left, _FEW if second is not None else 1)):
        asked = [n for n, (state, _) in enumerate(few) if n % 2 and not base.keys() - state.keys()]
        changed = [({k: v for k, v in few[n][0].items() if base.get(k) != v},) for n in asked]
        numbers = second.call(partial(_changed, look=look, base=dict(base)), changed) if second and asked else ()
        coming = dict(zip(asked, numbers, strict=False))
        is_next = True  # it works in the order of the numbers
        for n, (state, known) in enumerate(few):
            said = None
            if second is not None and n in coming:
                said = second.answer(coming[n])
                if said is None and is_next:
                    said = second.awaited(coming[n], longest * patience)
                    patience = 0.0 if said is None else _PATIENCE
                is_next = said is not None
            if said is None:
                began = time.monotonic()
                said = here(state)
                longest = min(max(longest, time.monotonic() - began), _MOST_S)
            yield known, cast(Seen, said)


def _changed(evaluator: Evaluator, changes: Params, *, look: Callable[[Evaluator, State], Seen], base: State) -> Seen:
    return look(evaluator, {**base, **changes})
