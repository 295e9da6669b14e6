"""Limits that no design of a model can keep together, found before a search wastes its trials on them.

A kernel of n products needs its multipliers for n cycles, however they are arranged: what a resource's cap leaves of
multipliers and adders bounds from below how long a run takes. The bound is of the model's reductions alone, with every
operator busy in every cycle, so what it calls impossible is. What goes in and out bounds the time between two inputs
from below, by the bandwidth that a cap leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.compiler.analysis.graph import Graph
from penstock.compiler.platforms import Resources
from penstock.compiler.schedule import Operator
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.objectives import BANDWIDTH, LARGER, LIMITED, RELAX, Limit, contradiction, has
from penstock.dse.space.fusion import tensor_bits

_TIMES = {"latency_cycles": False, "interval_cycles": False, "latency_us": True, "interval_us": True}
"""Which times may be limited, and whether in microseconds."""

_INTERVALS = ("interval_cycles", "interval_us")


@dataclass(frozen=True)
class Floor:
    """No run is shorter than so many cycles, because of the caps of these resources."""

    cycles: float
    resources: tuple[str, ...]


def check_reachable(evaluator: Evaluator) -> None:
    """An error that names two demands which no design can meet together, if there are such."""
    limits = evaluator.goal.limits
    found = floor(evaluator)
    for limit in limits:
        if limit.sense == "<=" and limit.name in _TIMES:
            clock = evaluator.clock_mhz if _TIMES[limit.name] else 1.0
            least = found.cycles / clock
            if limit.value < least:
                cap = " with ".join(_cap_of(evaluator, resource) for resource in found.resources)
                why = f"with them {LIMITED[limit.name]} is at least {least:,.3g}"
                own = any(_is_own(evaluator, resource) for resource in found.resources)
                raise contradiction(limit.text, cap, why, hint=RELAX if own else LARGER)
        if limit.sense == "<=" and limit.name in _INTERVALS:
            _check_bandwidth(evaluator, limit)
        if limit.sense == "<=" and limit.name == "energy_uj":
            least = evaluator.arithmetic_uj
            if limit.value < least:
                why = f"that takes {least:,.3g} µJ by itself"
                raise contradiction(limit.text, "the model's own arithmetic", why, hint="relax the limit, or quantise")


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


def least_traffic_bits(graph: Graph) -> int:
    """What every design moves in one run: results, and inputs that are read whole; weights may stay on the chip."""
    read = {value for op in graph.operations for value in op.inputs}
    inputs = [value for value in graph.arguments if value in read and not graph.is_param(value)]
    return sum(tensor_bits(value) for value in (*inputs, *graph.returned))


def floor(evaluator: Evaluator) -> Floor:
    """The fewest cycles that the model's reductions take under the caps of DSPs and LUTs."""
    caps = {name: max(_most(evaluator, name), 1e-9) for name in ("dsp", "lut")}
    cycles = dict.fromkeys(caps, 0.0)
    both = 0.0
    for work, ways in _operations(evaluator):
        for name in caps:
            cycles[name] += work * min(way.as_dict()[name] for way in ways) / caps[name]
        # of what one operation takes of both caps in any way of building it, one cap bears at least half
        both += work * min(sum(way.as_dict()[name] / caps[name] for name in caps) for way in ways) / 2
    resource = max(cycles, key=lambda name: cycles[name])
    return Floor(both, tuple(caps)) if both > cycles[resource] else Floor(cycles[resource], (resource,))


def _operations(evaluator: Evaluator) -> Iterator[tuple[int, list[Resources]]]:
    """Every operator of every reduction: how often it runs, and what each way of building it takes."""
    rows = evaluator.assembler.library.operators
    for op in evaluator.space.graph.operations:
        if not op.reductions:
            continue
        for inner in op.op.body.block.ops:
            names = {"arith.muli", "mac"} if inner.name == "arith.muli" else {inner.name}
            ways = [_least_area(row) for row in rows if names.intersection(row.ops)]
            if ways:
                yield op.work, ways


def _least_area(row: Operator) -> Resources:
    """On operands of one bit: no width is cheaper."""
    return row.area(1)


def _most(evaluator: Evaluator, resource: str) -> float:
    """How much of a resource a design may use, by the platform and by the user."""
    limit = _limit_of(evaluator, resource)
    return evaluator.platform.limits.as_dict()[resource] * min(1.0, limit.bound if limit else 1.0)


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
