"""Settings that are all wanted, one after the other: some of them are modelled by the second process meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.remembered import setting_key
from penstock.dse.search.second import SecondProcess
from penstock.dse.search.worth import ANY
from penstock.dse.space.tiling import Value


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
