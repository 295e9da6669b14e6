"""How long a search goes on: how many trials suit a space, and what is near enough to the bound to end it."""

from __future__ import annotations

from penstock.dse.bounds.bound import LowerBound
from penstock.dse.space.fitted import BUILT, BURST, COMPACT, FAVOUR, PADDED, WALK
from penstock.dse.space.tiling import Choices
from penstock.dse.support.budgets import MOST_USUAL_TRIALS, QUICKLY_MODELLED

_FEWEST, _MOST, _OF_MANY = 8, 64, 4
_FOR_SOME_KERNELS, _FOR_MANY_KERNELS = 150_000_000, 5_000_000
"""Settings times the fourth power or the cube of kernels."""
_FOR_LANES, _A_SETTING, _A_KERNEL, _A_DSP = 44.0, 2e-3, 2e-3, 1.5e-6
"""Of few kernels: half a minute on two processors, at what a setting, its kernels and their lanes take to model."""
_OF_EACH_KERNEL = (WALK, FAVOUR, BUILT, BURST, COMPACT, PADDED)


def usual_trials(choices: Choices, first: int, kernels: int, *, descended: bool = False) -> int:
    """As many as there are settings to begin with, and two for each open parameter of the model as a whole.

    Parameters of single kernels do not count: the descent has been through them. Of models with many kernels only a few
    are added: each takes a second or two to model, and so do those that miss a limit before one is found. None is where
    the search has `descended` to the one best that is asked for.
    """
    if kernels > QUICKLY_MODELLED:
        return min(MOST_USUAL_TRIALS // 2, first + (0 if descended else _OF_MANY))
    single = tuple(f"{kind}." for kind in _OF_EACH_KERNEL)
    open_to = [name for name, values in choices.items() if len(values) > 1 and not name.startswith(single)]
    return min(MOST_USUAL_TRIALS // 2, first + max(_FEWEST, min(_MOST, 2 * len(open_to))))


def settings_of(kernels: int, dsps: int) -> int:
    """How many settings may be modelled before any is tried: of many kernels each takes longer, and has more moves.

    Of few kernels too, where there are DSPs for many lanes: more banks are placed and more designs tried until one
    fits. It is a count, so that what is found depends on no clock.
    """
    most = max(_FOR_SOME_KERNELS // kernels**4, _FOR_MANY_KERNELS // kernels**3)
    if kernels > QUICKLY_MODELLED:
        return most
    return min(most, int(_FOR_LANES / (_A_SETTING + _A_KERNEL * kernels + _A_DSP * dsps)))


def near_enough(bound: LowerBound, gap: float) -> float:
    """The largest figure that is at most so many percent above the bound."""
    return bound.value * (1 + gap / 100)
