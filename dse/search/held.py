"""Where the dies do not hold the best of a search by far: what is fastest of that which they hold.

The fastest design of a chip fills it, and has all its weights come through all banks. Between dies there are wires for
what the banks bring once, not for each tensor anew. What the dies hold has tensors in fewer banks, so that two kernels
share what memory brings, each with half of the lanes: all tensors in half of them, or each in as few as it takes words.
Both are seldom a step from the best, so they are searched for anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import islice

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.search.descent import descend
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.second import SecondProcess
from penstock.dse.space.external import FEW_BANKS, STRIPES
from penstock.dse.space.fitted import SHARE
from penstock.dse.space.tiling import Choices, Params

_SEARCHES = ((85, False), (85, True), (70, False))
"""Percent of all limits, and whether a search begins at the best that the chip as a whole would take: what the dies
nearly hold may become what they do with fewer lanes for some kernels, and mostly that of one of two starts does."""
_AS_FAST = 1.1
"""So many times what the chip as a whole would take is near enough that nothing else is searched for."""
_FAR = 1.6
"""By so much they may be where the search was for what the dies hold: two of three large tensors go elsewhere then."""
_MOST_DIVIDED, _MOST_HELD, _MOST_EASED = 16, 2, 2
"""Designs that are divided after each search, those that are kept if the dies hold them, and those that are made
smaller, of what would be faster."""


def held(
    evaluator: Evaluator, choices: Choices, best: Evaluation, dies: DiesHold, second: SecondProcess | None = None
) -> list[Evaluation]:
    """A few designs, the best first; none where no tensors come through banks, or the dies hold none that is tried."""
    if STRIPES not in best.params or STRIPES not in choices:
        return []
    most = int(best.params[STRIPES])
    half, kept = min(most, int(choices[STRIPES][-1]) // 2), list[Evaluation]()
    ways: tuple[Choices, ...] = ({STRIPES: (most,), FEW_BANKS: (True,)}, {STRIPES: (half,)})
    for way in (way for way in ways if all(value in choices.get(name, ()) for name, (value,) in way.items())):
        if kept and kept[0].values[0] <= best.values[0] * _AS_FAST:
            break
        kept += _with_less(evaluator, {**choices, **way}, best.params, dies, second)
        kept.sort(key=lambda one: one.values)
    return kept


def _with_less(
    evaluator: Evaluator, choices: Choices, best: Params, dies: DiesHold, second: SecondProcess | None
) -> list[Evaluation]:
    """What the dies hold of a search within less than all limits."""
    for share, from_best in _SEARCHES:
        if share not in choices.get(SHARE, ()):
            continue
        start = best if from_best else None
        found = descend(evaluator, {**choices, SHARE: (share,)}, second=second, start=start)
        if found is not None and (kept := _of(found.timed, evaluator, choices, dies)):
            return kept
    return []


def _of(timed: Iterable[Evaluation], evaluator: Evaluator, choices: Choices, dies: DiesHold) -> list[Evaluation]:
    """Of what was searched through those that the dies hold, or else with fewer lanes for some kernels."""
    kinds: dict[Hashable, Evaluation] = {}
    for one in timed:
        if one.feasible:
            kinds.setdefault(evaluator.meaning(one.design), one)
    first = list(kinds.values())[:_MOST_DIVIDED]
    found = list(islice((one for one in first if dies.excess(one) <= 0), _MOST_HELD))
    nearly = (one for one in first if not found or one.values < found[0].values)
    for one in islice((one for one in nearly if 0 < dies.excess(one) <= _FAR), _MOST_EASED):
        smaller = dies.eased(one, choices)
        if smaller is not None and (not found or smaller.values < found[0].values):
            return [smaller, *found]
    return found
