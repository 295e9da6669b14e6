"""From a fitted setting to a design that keeps to the limits, with everything that stands around its operators.

What operators take is known before anything is modelled, what FIFOs, converters and control take is not. So operators
are left less, again and again, until the whole design is within what it may use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.routing import RoutingUse
from penstock.dse.space.fitted import Allowance
from penstock.profiling.model import DesignFigures


class Judged(Protocol):
    """A design with its figures, whether it keeps every limit, and what is to be small."""

    @property
    def figures(self) -> DesignFigures: ...
    @property
    def feasible(self) -> bool: ...
    @property
    def values(self) -> tuple[float, ...]: ...
    @property
    def fullest_die(self) -> float | None: ...
    @property
    def routing(self) -> RoutingUse | None: ...


J = TypeVar("J", bound=Judged)

_TRIES = 6
_A_LITTLE_LESS, _FAR_LESS = 0.99, 0.8
_IN_MEMORIES, _AT_MOST = 0.03, 0.25
"""Of all LUTs, what building memories of something else may save; at most, where memories take far more of them."""
_FEW_CHANNELS = 16
"""Designs with so few are soon built otherwise: all that memories take may be saved, of others half."""
_MEMORIES = ("bram18", "uram")
_HALF_FULL = 2
"""Small or odd memories leave as much of a block empty as they fill: built otherwise, they may take half the bits."""
_LEAST_LANES = 1 / 64
_BISECTIONS = 4
_FAR_SLOWER, _OF_DSPS = 2.0, (0.85, 0.7, 0.55, 0.4)
"""How many times slower what fits must be for other numbers of DSPs to be tried, and parts of all that are."""
_PARTS = (0.7, 0.45, 0.3, 0.15)


def may_fit_otherwise(figures: DesignFigures, limits: Resources, of_kernels: Callable[[], int] = lambda: 0) -> bool:
    """Whether a design lacks memories, or LUTs that memories may do without, and may not with these built otherwise.

    `of_kernels` says how many LUTs kernels' own memories take: weights that are kept in them, most of all.
    """
    used = figures.resources
    over = used.share_of(limits)
    few = len(figures.channels) <= _FEW_CHANNELS
    part = 1.0 if few else 0.5
    if over["dsp"] > 1 or over["ff"] > 1 or over["lut"] > 1 + _AT_MOST or max(over.values()) <= 1:
        return False
    if over["lut"] > 1 + _IN_MEMORIES:
        in_memories = sum(channel.resources.lut for channel in figures.channels) + of_kernels()
        if over["lut"] > 1 + in_memories * part / max(1, limits.lut):
            return False
    return used.memory_bits <= limits.memory_bits * _HALF_FULL


def fitted(model: Callable[[Allowance], J], limits: Resources, share: int, *, mixed: bool, spills: bool = False) -> J:
    """The fastest of a setting's designs that keeps to a share of the limits, or the last one that was tried.

    `model` evaluates the design for which operators are allowed so much. Where operators may be `mixed`, and only LUTs
    are short, as many as there are DSPs for are built of these before lanes have to go. Where it `spills`,
    products for which no DSP is left may be of LUTs.
    """
    wanted = part_of(limits, share)
    allowance = Allowance(wanted)
    found, steps = model(allowance), 1
    first, in_vain = found, False
    if spills and _keeps(other := model(replace(allowance, spilled=True)), wanted):
        return min(found, other, key=lambda one: one.values) if _keeps(found, wanted) else other
    for _ in range(_TRIES - 1):
        over = found.figures.resources.share_of(wanted)
        if found.feasible and all(one <= 1 for one in over.values()):
            return found
        if _lacks_memories(found, wanted):
            return _with_fewer_lanes(model, allowance, found, wanted)
        changing = mixed and max(over, key=lambda name: over[name]) == "lut" and over["lut"] > 1
        lowered = _lowered(allowance, found, wanted, over, steps, changing=changing, in_vain=in_vain)
        if lowered == allowance:
            return found  # nothing that fewer lanes would change
        if changing:
            other = model(replace(allowance, changed=lowered.whole.lut))
            if _keeps(other, wanted):
                return other
        before, above = found, allowance
        allowance, found = lowered, model(lowered)
        if (steps > 1 or allowance.whole.lut < above.whole.lut * _FAR_LESS) and _keeps(found, wanted):
            return _between(model, allowance, above, found, before, wanted)
        in_vain = found.routing is not None and found.routing.share > 1 and found.routing == before.routing
        # where operators take little of what they were allowed, it has to be lowered by far before they are fewer
        steps = 2 * steps if found.figures.resources == before.figures.resources else 1
    if steps > 1 and found.figures.resources == first.figures.resources:
        return _with_fewer_lanes(model, Allowance(wanted), found, wanted)  # it is DSPs that lanes are made of
    if _are_shortest(found.figures.resources.share_of(wanted)):  # LUTs were until now
        return _with_fewer_lanes(model, allowance, found, wanted)
    return found


def part_of(limits: Resources, share: int) -> Resources:
    """What operators may take where so many percent of the limits are to be used."""
    return replace(limits, lut=limits.lut * share // 100, dsp=limits.dsp * share // 100)


def _lacks_memories(found: Judged, wanted: Resources) -> bool:
    """Whether memories are what is shortest, and would be with less of all else, however they were built."""
    used = found.figures.resources
    over = used.share_of(wanted)
    if not _are_shortest(over):
        return False
    others = max(share for name, share in over.items() if name not in _MEMORIES)
    return others <= 1 or used.memory_bits > wanted.memory_bits * _HALF_FULL


def _are_shortest(over: Mapping[str, float]) -> bool:
    """Whether memories are too few, by more than all else is."""
    return max(over.values()) > 1 and max(over, key=lambda name: over[name]) in _MEMORIES


def _between(
    model: Callable[[Allowance], J], fits: Allowance, above: Allowance, found: J, before: J, wanted: Resources
) -> J:
    """The most that operators may be allowed, between what fits and what does not: of all that fit, the best.

    More lanes may take longer, where weights come through fewer, wider words. What stands around them need not be less
    where lanes are: a window is cheaper whole than in parts. So where all that fits is far slower than what was
    `before`, a few numbers of DSPs are tried with all LUTs.
    """
    low, high = max(1, fits.whole.lut), above.whole.lut
    for _ in range(_BISECTIONS):
        middle = round((low * high) ** 0.5)
        other = model(replace(fits, whole=replace(fits.whole, lut=middle)))
        if _keeps(other, wanted):
            low, found = middle, min(other, found, key=lambda one: one.values)
        else:
            high = middle
    for part in _OF_DSPS if found.values[0] > _FAR_SLOWER * before.values[0] > 0 else ():
        other = model(replace(fits, whole=replace(wanted, dsp=int(wanted.dsp * part))))
        if _keeps(other, wanted):
            return min(other, found, key=lambda one: one.values)
    return found


def _keeps(found: Judged, wanted: Resources) -> bool:
    return found.feasible and all(one <= 1 for one in found.figures.resources.share_of(wanted).values())


def _with_fewer_lanes(model: Callable[[Allowance], J], allowance: Allowance, found: J, wanted: Resources) -> J:
    """Memories get fewer as lanes do, but by no rule: by bisection, where the fewest lanes fit at all.

    Where they do not, more lanes may: weights that are kept lie in wider words then, which fill the blocks better.
    """

    def at(part: float) -> J:
        whole = allowance.whole
        return model(replace(allowance, whole=replace(whole, lut=int(whole.lut * part), dsp=int(whole.dsp * part))))

    low, high = _LEAST_LANES, 1.0
    best = at(low)
    if not _keeps(best, wanted):
        fewest = best
        for part in _PARTS:
            best = at(part)
            if _keeps(best, wanted):
                low = part
                break
            high = part
        else:
            return min((fewest, found), key=lambda one: max(one.figures.resources.share_of(wanted).values()))
    for _ in range(_BISECTIONS):
        middle = (low * high) ** 0.5
        other = at(middle)
        if _keeps(other, wanted):
            low, best = middle, min(other, best, key=lambda one: one.values)
        else:
            high = middle
    return best


def _lowered(
    allowance: Allowance,
    found: Judged,
    wanted: Resources,
    over: Mapping[str, float],
    steps: int,
    *,
    changing: bool,
    in_vain: bool,
) -> Allowance:
    """Less for operators, by as much as the whole design is over.

    Where a kernel cannot be routed, and less for each was `in_vain` before, there is less for all. Mixed operators use
    up what LUTs they are allowed, so by as many fewer as there are too many.
    """
    used, whole = found.figures.resources, allowance.whole
    dsp = whole.dsp - max(0, used.dsp - wanted.dsp)
    excess = max(over["lut"], over["ff"])
    if changing:  # by as much; by a share of them, where what stands around them is more than they are
        fewer = max(whole.lut - (used.lut - wanted.lut), int(whole.lut / excess * _A_LITTLE_LESS))
        whole = replace(whole, lut=fewer, dsp=dsp)
    elif excess > 1:
        whole = replace(whole, lut=int(min(whole.lut, used.lut) / (excess / _A_LITTLE_LESS) ** steps), dsp=dsp)
    else:
        whole = replace(whole, dsp=dsp, lut=int(whole.lut * (_FAR_LESS if in_vain else 1)))
    one = allowance.one
    if found.routing is not None and found.routing.share > 1:
        one = _smaller(one or largest_kernel(found), found.routing.share)
    elif (found.fullest_die or 0.0) > 1:
        one = _smaller(one or largest_kernel(found), min(found.fullest_die or 0.0, 2.0))
    return Allowance(replace(whole, lut=max(whole.lut, 0), dsp=max(whole.dsp, 0)), one)


def _smaller(area: Resources, share: float) -> Resources:
    return replace(area, lut=int(area.lut / share * _A_LITTLE_LESS), dsp=int(area.dsp / share * _A_LITTLE_LESS))


def largest_kernel(found: Judged) -> Resources:
    """What no kernel of a design takes more of."""
    tasks = [task.resources for task in found.figures.tasks]
    return Resources(lut=max(area.lut for area in tasks), dsp=max(area.dsp for area in tasks))
