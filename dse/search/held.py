"""Where the dies do not hold the best of a search by far: what is fastest of that which they hold.

The fastest design of a chip fills it, and has all its weights come through all banks. Between dies there are wires for
what the banks bring once, not for each tensor anew. What the dies hold has tensors in half of the banks, so that two
kernels share what memory brings, each with half of the lanes: seldom a step from the best, so it is searched for anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.search.descent import descend
from penstock.dse.search.dies import DiesHold
from penstock.dse.space.external import STRIPES
from penstock.dse.space.fitted import SHARE
from penstock.dse.space.tiling import Choices

NEARLY = 0.6
"""By so much limits may be exceeded where a few kernels with fewer lanes may be enough."""
_SHARES = (85, 70)
_MOST_DIVIDED, _MOST_HELD, _MOST_EASED = 16, 2, 2
"""Designs that are divided after each search, until so many are held; and those that are made smaller where none is."""


def held(evaluator: Evaluator, choices: Choices, best: Evaluation, dies: DiesHold) -> list[Evaluation]:
    """A few designs, the best first; none where no tensors come through banks, or the dies hold none that is tried."""
    if STRIPES not in best.params or STRIPES not in choices:
        return []
    banks = min(int(best.params[STRIPES]), int(choices[STRIPES][-1]) // 2)
    for share in _SHARES:
        if banks not in choices[STRIPES] or share not in choices.get(SHARE, ()):
            continue
        found = descend(evaluator, {**choices, STRIPES: (banks,), SHARE: (share,)})
        if found is not None and (kept := _of(found.timed, evaluator, choices, dies)):
            return kept
    return []


def _of(timed: Iterable[Evaluation], evaluator: Evaluator, choices: Choices, dies: DiesHold) -> list[Evaluation]:
    """Of what was searched through those that the dies hold, or else with fewer lanes for some kernels."""
    kinds: dict[Hashable, Evaluation] = {}
    for one in timed:
        if one.feasible:
            kinds.setdefault(evaluator.meaning(one.design), one)
    first, found = list(kinds.values())[:_MOST_DIVIDED], list[Evaluation]()
    for one in first:
        if dies.excess(one) <= 0:
            found.append(one)
        if len(found) == _MOST_HELD:
            break
    if found:
        return found
    nearly = [one for one in first if dies.excess(one) <= NEARLY][:_MOST_EASED]
    return [smaller for one in nearly if (smaller := dies.eased(one, choices)) is not None]
