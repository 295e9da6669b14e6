"""A setting of which it is asked as well whether the dies hold it, and what waits between its kernels then.

Both take as long as to model it. The second process says them too, of what is good enough for anybody to ask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import Held
from penstock.dse.search.dies import DiesHold
from penstock.dse.search.second import Rank
from penstock.dse.search.worth import foretell, foretell_fitted
from penstock.dse.space.tiling import Params


@dataclass(frozen=True)
class CloseLook:
    """What is found if it is good enough, by how much dies miss it, and what waits in it if they do not."""

    found: Evaluation | None
    excess: float = inf
    held: Mapping[str, int] | None = None


def look_closely(
    evaluator: Evaluator,
    params: Params,
    *,
    below: Rank,
    most: float,
    held: Held,
    dies: DiesHold | None = None,
    fitted: bool = False,
) -> CloseLook:
    """At a setting that is to be better than `below`; what waits, where dies are missed by no more than `most`.

    Where it is `fitted` it is not passed over for what its first design, which may take too much, comes to.
    """
    found = (foretell_fitted if fitted else foretell)(evaluator, params, below).found
    if found is None or not found.feasible:
        return CloseLook(found)
    excess = (dies or DiesHold(evaluator)).excess(found)
    return CloseLook(found, excess, held_in(evaluator, found, held) if excess <= most else None)


def held_in(evaluator: Evaluator, one: Evaluation, held: Held) -> Mapping[str, int]:
    """Bits that wait in each channel between kernels."""
    return held(evaluator, one, evaluator.assembler.network(one.design))
