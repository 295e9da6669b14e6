"""As many lanes as the device holds: the largest setting of a kind whose modelled design keeps every limit."""

from __future__ import annotations

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import shortage
from penstock.dse.space.paced import OPERATOR_LUTS, PACED
from penstock.dse.space.tiling import Params, Value

LANES = "overall_unroll_size"


def fill(evaluator: Evaluator, params: Params) -> dict[str, Value] | None:
    """The same setting with the most lanes that fit, found by bisection; None where not even the fewest do.

    Where lanes are fitted to a pace it is the LUTs that operators may take.

    More lanes mostly take more of everything; where they do not, a larger setting that fits may be passed over, but
    what is found fits. Where tasks cannot be divided among the dies on the fewest lanes either, they need not be.
    """
    found = _filled(evaluator, params, divided=True)
    several = len(evaluator.platform.dies) > 1
    return _filled(evaluator, params, divided=False) if found is None and several else found


def _filled(evaluator: Evaluator, params: Params, *, divided: bool) -> dict[str, Value] | None:
    amount = amount_of(params)
    sizes = evaluator.space.choices[amount]
    low, high = 0, len(sizes)  # sizes below `low` fit, the one at `high` does not
    while low < high:
        middle = (low + high) // 2
        if fits(evaluator, {**params, amount: sizes[middle]}, divided=divided):
            low = middle + 1
        else:
            high = middle
    return {**params, amount: sizes[low - 1]} if low else None


def amount_of(params: Params) -> str:
    """The parameter that says how much of a device a design may take."""
    return OPERATOR_LUTS if params.get("allocation") == PACED else LANES


def fits(evaluator: Evaluator, params: Params, *, divided: bool = True) -> bool:
    """Whether the modelled design keeps every limit; unless it is to be `divided`, the chip's as a whole do."""
    try:
        found = evaluator.outlook(params)
        if found.feasible and evaluator.goal.limits:  # one may be on its time
            found = evaluator.assume(params)
        return found.feasible or (not divided and shortage(found.constraints)[1] <= 0)
    except PenstockError:  # so many lanes cannot even be scheduled, or laid out
        return False
