"""What settings and designs came to lately, by what that follows from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, TypeVar, cast

from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.space.tiling import Params

E = TypeVar("E", Evaluation, "Evaluation | None")
_MOST = 1024


class Remembered:
    """The latest thousand of them."""

    def __init__(self) -> None:
        self._found = OrderedDict[Hashable, Evaluation | None]()
        self._told = OrderedDict[Hashable, Evaluation]()

    def find(self, key: Hashable, params: Params, model: Callable[[], E]) -> E:
        """What has this key, modelled if nobody asked for it lately, as the evaluation of these parameters."""
        found: OrderedDict[Hashable, E] = cast(Any, self._found)
        if key not in found:
            found[key] = model()
            if len(found) > _MOST:
                found.popitem(last=False)
        one = found[key]
        return one if one is None else replace(one, params=dict(params))

    def tell(self, found: Evaluation) -> None:
        """Another process modelled a setting, in full."""
        self._told[setting_key(found.params)] = found
        if len(self._told) > _MOST:
            self._told.popitem(last=False)

    def told(self, params: Params) -> Evaluation | None:
        found = self._told.get(setting_key(params))
        return None if found is None else replace(found, params=dict(params))


def setting_key(params: Params) -> Hashable:
    """The same for the same parameters, in whatever order."""
    return tuple(sorted(params.items()))
