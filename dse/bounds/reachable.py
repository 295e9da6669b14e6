"""Limits that no design of a model can keep together, found before a search wastes its trials on them."""

from __future__ import annotations

from penstock.dse.bounds.bound import OPERATORS, GoalBounds
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import BANDWIDTH, LARGER, LIMITED, RELAX, Limit, contradiction, has
from penstock.dse.evaluation.traffic import least_traffic_bits

_TIMES = {"latency_cycles": False, "interval_cycles": False, "latency_us": True, "interval_us": True}
"""Which times may be limited, and whether in microseconds."""

_INTERVALS = ("interval_cycles", "interval_us")


def check_reachable(evaluator: Evaluator) -> None:
    """An error that names two demands which no design can meet together, if there are such."""
    bounds = GoalBounds(evaluator)
    for limit in (limit for limit in evaluator.goal.limits if limit.sense == "<="):
        if limit.name in _INTERVALS:
            _check_bandwidth(evaluator, limit)
        if limit.name in _TIMES:
            _check_time(bounds, limit)
        if limit.name == "energy_uj":
            _check_energy(bounds, limit)
        if limit.name == "power_w":
            _check_power(bounds, limit)
        if limit.name == "traffic_bytes":
            _check_traffic(bounds, limit)


def _check_time(bounds: GoalBounds, limit: Limit) -> None:
    """A time that is shorter than any design's."""
    evaluator, interval = bounds.evaluator, limit.name in _INTERVALS
    bound = bounds.interval() if interval else bounds.latency()
    cycles = evaluator.clock_mhz if _TIMES[limit.name] else 1.0
    least = bound.value / cycles
    if limit.value >= least:
        return
    # where too few operators suffice to exclude it, they say what to relax
    operators = bound.terms[OPERATORS]
    resources = bounds.binding(operators - 1, around=not interval) if limit.value < operators / cycles else ()
    cap = " with ".join(_cap_of(evaluator, resource) for resource in resources) or bound.reason
    own = not resources or any(_is_own(evaluator, resource) for resource in resources)
    why = f"with them {LIMITED[limit.name]} is at least {least:,.3g}"
    raise contradiction(limit.text, cap, why, hint=RELAX if own else LARGER)


def _check_energy(bounds: GoalBounds, limit: Limit) -> None:
    """The arithmetic takes its own, and the device leaks for as long as the soonest design runs."""
    evaluator = bounds.evaluator
    least = evaluator.arithmetic_uj
    what, why = "the model's own arithmetic", f"that takes {least:,.3g} µJ by itself"
    if limit.value >= least:
        least, cycles = bounds.energy().value, bounds.latency().value
        what = f"a run of at least {cycles:,.0f} cycles"
        why = f"with what {evaluator.platform.name} leaks meanwhile it takes {least:,.3g} µJ"
    if limit.value < least:
        raise contradiction(limit.text, what, why, hint="relax the limit, or quantise")


def _check_power(bounds: GoalBounds, limit: Limit) -> None:
    """What the device leaks; where a run may take so long and no longer, the arithmetic's energy by that time too."""
    evaluator = bounds.evaluator
    leaks = bounds.leaking_w
    if limit.value < leaks:
        what, hint = f"what {evaluator.platform.name} leaks", "relax the limit, or take a smaller platform"
        raise contradiction(limit.text, what, f"that is {leaks:,.3g} W", hint=hint)
    in_us = {"latency_us": 1.0, "latency_cycles": 1 / evaluator.clock_mhz}
    for other in evaluator.goal.limits:
        if other.sense == "<=" and other.name in in_us:
            least = leaks + evaluator.arithmetic_uj / (other.value * in_us[other.name])
            if limit.value < least:
                raise contradiction(limit.text, other.text, f"with them power_w is at least {least:,.3g}")


def _check_traffic(bounds: GoalBounds, limit: Limit) -> None:
    least = bounds.traffic().value
    if limit.value < least:
        why = f"they are {least:,.0f} bytes, each of which passes once"
        raise contradiction(limit.text, "the model's inputs and results", why, hint="relax the limit, or quantise")


def _check_bandwidth(evaluator: Evaluator, interval: Limit) -> None:
    """Inputs and results must pass between two inputs, at no more than the memory sustains or the user allows."""
    memory = evaluator.platform.fastest_memory
    if memory is None or evaluator.platform.has_array_arguments:
        return
    cap = _limit_of(evaluator, BANDWIDTH)
    gb_s = memory.sustained_gb_s * min(1.0, cap.bound if cap else 1.0)
    least_us = least_traffic_bits(evaluator.space.graph) / (8e3 * gb_s)
    least = least_us * (evaluator.clock_mhz if interval.name == "interval_cycles" else 1.0)
    if interval.value < least:
        why = f"with them {interval.name} is at least {least:,.3g}, for inputs and results alone"
        if cap is not None and cap.bound < 1:
            raise contradiction(interval.text, cap.text, why)
        raise contradiction(interval.text, has(evaluator.platform, BANDWIDTH), why, hint=LARGER)


def _limit_of(evaluator: Evaluator, resource: str) -> Limit | None:
    """The tightest cap that the user gave."""
    caps = [limit for limit in evaluator.goal.limits if limit.name == resource and limit.sense == "<="]
    return min(caps, key=lambda limit: limit.bound, default=None)


def _cap_of(evaluator: Evaluator, resource: str) -> str:
    """The cap in the words of whoever set it."""
    limit = _limit_of(evaluator, resource)
    return limit.text if limit is not None and _is_own(evaluator, resource) else has(evaluator.platform, resource)


def _is_own(evaluator: Evaluator, resource: str) -> bool:
    """Whether the user caps it, not the platform."""
    limit = _limit_of(evaluator, resource)
    return limit is not None and limit.bound < 1
