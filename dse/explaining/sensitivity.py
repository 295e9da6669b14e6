"""Why a design is what it is: what sets its pace, what binds it, what one step of a parameter changes, what mattered.

All of it is modelled, as the search was; it says where to push, not what a tool would measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import RESOURCE_NAMES
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import BANDWIDTH_SHARE, DIES, OBJECTIVES, ROUTING
from penstock.dse.explaining.looks import MOST_NEIGHBOURS, Looks, larger_of, steps_from
from penstock.dse.search.fill import LANES, amount_of
from penstock.dse.space.tiling import Value

Floats = NDArray[np.float64]

ENOUGH_TRIALS = 12
"""Trials from which on it is said which parameters mattered."""

FULL = 0.85
"""A share of a limit from which on a resource is said to bind: steps of the space are seldom finer."""


@dataclass(frozen=True)
class ExplainedTrial:
    """A trial as far as its setting explains it."""

    params: Mapping[str, Value]
    figures: Mapping[str, float]


@dataclass(frozen=True)
class Neighbour:
    """The design with one parameter one step away. Changes are of the objective and of the largest share."""

    parameter: str
    value: Value
    other: Value
    latency: int | None
    objective: float | None
    """As a ratio to the chosen design's."""
    share: float | None
    binding: str
    feasible: bool
    same: bool
    """The step leads to the same design."""
    failure: str = ""


@dataclass(frozen=True)
class Importance:
    """How much of the differences among trials goes with one parameter, beyond those before it."""

    parameter: str
    share: float


@dataclass(frozen=True)
class Sensitivity:
    """One design explained."""

    objective: str
    sentences: tuple[str, ...]
    neighbours: tuple[Neighbour, ...]
    left_out: int
    """Steps that were not modelled, of a space with very many parameters."""
    importances: tuple[Importance, ...]
    trials: int
    evidence: Evidence = "modelled"


def explain(
    evaluator: Evaluator, chosen: Evaluation, tried: Sequence[ExplainedTrial], looks: Looks | None = None
) -> Sensitivity:
    """Why this one. The same input gives the same answer; a few dozen designs are modelled, here or by `looks`."""
    figure, looks = chosen.goal.figures[0], looks or Looks(evaluator)
    neighbours, left_out = _neighbours(looks, chosen, figure)
    importances = importances_of(tried, figure)
    sentences = [
        *_pace(chosen),
        *_binding(evaluator, chosen),
        *_dies(chosen),
        *_bandwidth(evaluator, chosen),
        *_half(looks, chosen, tried),
        _steps(neighbours, figure),
        _mattered(importances, figure, tried),
    ]
    return Sensitivity(figure, tuple(sentences), neighbours, left_out, importances, len(tried))


def _neighbours(looks: Looks, chosen: Evaluation, figure: str) -> tuple[tuple[Neighbour, ...], int]:
    """The last ones first, since a second process begins with the first ones."""
    steps = steps_from(looks.evaluator.space, chosen.params)
    found = [_neighbour(looks, chosen, name, other, figure) for name, other in reversed(steps[:MOST_NEIGHBOURS])]
    return tuple(reversed(found)), len(steps) - len(found)


def _neighbour(looks: Looks, chosen: Evaluation, name: str, other: Value, figure: str) -> Neighbour:
    value, one = chosen.params[name], looks.at({**chosen.params, name: other})
    if one.measures is None:
        return Neighbour(name, value, other, None, None, None, "", False, False, one.failure)
    ratio = one.measures[figure] / chosen.measures[figure] if chosen.measures[figure] else None
    same = one.design == looks.at(chosen.params).design
    return Neighbour(name, value, other, one.latency, ratio, one.share, one.binding, one.feasible, same)


def _pace(chosen: Evaluation) -> list[str]:
    figures = chosen.figures
    tasks = sorted(figures.tasks, key=lambda t: -t.latency)
    slowest = next(t for t in tasks if t.name == figures.bottleneck)
    found = [
        f"{slowest.name} sets the pace: {slowest.iterations:,} iterations keep it busy for {slowest.latency:,} of the "
        f"{figures.latency:,} cycles of a run ({slowest.ii_reason})."
    ]
    others = [t for t in tasks if t.name != slowest.name]
    if others and figures.interval > others[0].latency:
        gain = 1 - others[0].latency / figures.interval
        found.append(
            f"A faster {slowest.name} alone gains at most {gain:.0%} of the interval: then {others[0].name} sets the "
            f"pace with {others[0].latency:,} cycles."
        )  # fmt: skip
    elif others:
        found.append(f"{others[0].name} is as slow: the two would have to become faster together.")
    return found


def _binding(evaluator: Evaluator, chosen: Evaluation) -> list[str]:
    """Which resource is nearest to what may be used of it, by the platform or by whoever asked."""
    used = chosen.figures.resources.share_of(evaluator.may_use)
    shares = sorted(used.items(), key=lambda item: (-item[1], item[0]))
    (first, most), (second, next_most) = shares[0], shares[1]
    rest = f"next is {second} with {next_most:.0%}"
    if most > 1:
        return [f"It does not fit: {first} is at {most:.0%} of what a design may use; {rest}."]
    if most >= FULL:
        return [f"{first} binds: {most:.0%} of {_most_of(evaluator, first)} is taken; {rest}."]
    if (limit := _tightest(chosen)) is not None:
        return [f"{limit} binds: it is all but reached. The fullest resource is {first} with {most:.0%}; {rest}."]
    found = [f"No resource binds: the fullest is {first} with {most:.0%} of {_most_of(evaluator, first)}; {rest}."]
    lanes = evaluator.space.choices.get(LANES, (None,))[-1]
    if lanes is not None and amount_of(chosen.params) == LANES and chosen.params.get(LANES) == lanes:
        why = f"the limit on lanes ({lanes})" if evaluator.options.max_lanes is not None else f"its most, {lanes}"
        found.append(f"It has as many lanes as the space offers: {why}.")
    return found


def _most_of(evaluator: Evaluator, name: str) -> str:
    """What may be used of a resource, and who says so where it is not the platform."""
    for limit in evaluator.goal.limits:
        if limit.name == name and limit.sense == "<=" and limit.bound < 1:
            return f"what {limit.text} leaves"
    return "what a design may use"


def _tightest(chosen: Evaluation) -> str | None:
    """The user's own limit on time, energy, traffic or bandwidth that a design is nearest to, if it is near."""
    near = [
        (-violation, limit.text)
        for limit in chosen.goal.limits if limit.name not in RESOURCE_NAMES
        for violation in [limit.violation(chosen.measures)] if 0 >= violation >= FULL - 1
    ]  # fmt: skip
    return min(near)[1] if near else None


def _dies(chosen: Evaluation) -> list[str]:
    """What follows where its tasks cannot stand on the dies, each on one."""
    if (chosen.fullest_die or 0) <= 1:
        return []
    return ["Its tasks cannot be divided among the dies, each on one: where they stand is left to the tools."]


def _bandwidth(evaluator: Evaluator, chosen: Evaluation) -> list[str]:
    """How much of external memory it takes, and whether that sets its pace."""
    memory, share = evaluator.platform.fastest_memory, chosen.measures.get(BANDWIDTH_SHARE)
    if memory is None or share is None:
        return []
    most = f"the {memory.sustained_gb_s:,.4g} GB/s that {memory.name} sustains"
    if share >= FULL:
        return [f"External memory binds: {share:.0%} of {most} is taken."]
    slowest = next(task for task in chosen.figures.tasks if task.name == chosen.figures.bottleneck)
    if slowest.waits_for_memory:
        ports = f"its port, one of {memory.ports}," if memory.ports > 1 else "its share of the port"
        return [
            f"External memory sets the pace: {slowest.name} waits for {ports} while the design as a "
            f"whole takes {share:.1%} of {most}."
        ]
    return [f"External memory does not bind: {share:.1%} of {most} is taken."]


def _half(looks: Looks, chosen: Evaluation, tried: Sequence[ExplainedTrial]) -> list[str]:
    """What half the latency would cost: the cheapest of the trials and of the same design with more of the device."""
    goal = chosen.figures.latency / 2
    known = [dict(point.figures) for point in tried]
    fastest = chosen.figures.latency
    for params in larger_of(looks.evaluator.space, chosen.params):
        more = looks.at(params)
        if more.measures is None:  # more lanes than anything could hold, or other: fewer were tried before
            break
        known.append(dict(more.measures))
        if more.latency <= goal:
            break
    fastest = min([fastest, *(figures["latency_cycles"] for figures in known)])
    halved = [figures for figures in known if figures["latency_cycles"] <= goal]
    if not halved:
        return [
            f"Nothing that was modelled takes half the cycles ({goal:,.0f}); the fastest of all takes {fastest:,.0f}."
        ]
    scale = _scale(looks.evaluator)
    cheapest = min(
        halved, key=lambda figures: (max(figures[f"{n}_share"] * scale[n] for n in scale), figures["latency_cycles"])
    )
    shares = {name: cheapest[f"{name}_share"] * scale[name] for name in RESOURCE_NAMES}
    name = max(sorted(shares), key=lambda one: shares[one])
    share = shares[name]
    taken = chosen.shares.get(name, 0.0) * scale[name]
    factor = share / taken if taken else None
    needs = f"{factor:.1f} times the {name}" if factor is not None and factor > 1 else f"{share:.0%} of {name}"
    end = f"{share:.0%} of what may be used" if share > 1 else f"{share:.0%}, which fits"
    return [f"Half the cycles would take {needs} ({end})."]


def _scale(evaluator: Evaluator) -> dict[str, float]:
    """From a share of what the platform leaves to a design to one of what may be used."""
    most, allowed = evaluator.platform.limits.as_dict(), evaluator.may_use.as_dict()
    return {name: most[name] / allowed[name] if allowed[name] else 1.0 for name in RESOURCE_NAMES}


def _steps(neighbours: Sequence[Neighbour], figure: str) -> str:
    word = _name_of(figure)
    better = [n for n in neighbours if n.objective is not None and n.objective < 1 and not n.same]
    fitting = [n for n in better if n.feasible]
    if fitting:
        best = min(fitting, key=lambda n: (n.objective or 0, n.parameter))
        gain = 1 - (best.objective or 1)
        return f"One step away there is better: {_step(best)} takes {gain:.1%} less {word} and still fits."
    if better:
        best = min(better, key=lambda n: (n.share or 0, n.objective or 0, n.parameter))
        gain, share = 1 - (best.objective or 1), best.share or 0
        needs = f"needs {share:.0%} of the {best.binding} that may be used"
        needs = "its tasks cannot be divided among the dies" if best.binding == DIES else needs
        needs = "a pipeline or a token of it is too large to be routed" if best.binding == ROUTING else needs
        return (
            f"No single step is better and fits; the nearest, {_step(best)}, would take {gain:.1%} less {word} and "
            f"{needs}."
        )
    return f"No single step of a parameter takes less {word}."


def _step(one: Neighbour) -> str:
    return f"{one.parameter} {one.value} → {one.other}"


def _mattered(importances: Sequence[Importance], figure: str, tried: Sequence[ExplainedTrial]) -> str:
    if len(tried) < (needed := needed_trials(tried)):
        count = "1 trial is" if len(tried) == 1 else f"{len(tried)} trials are"
        return f"{count} too few to say which parameters mattered ({needed} are needed)."
    word = _name_of(figure)
    strong = [one for one in importances if one.share >= 0.01][:3]
    if not strong:
        return f"No parameter alone explains the differences in {word} among {len(tried)} trials."
    listed = ", then ".join(f"{one.parameter} ({one.share:.0%})" for one in strong)
    return f"What explains the differences in {word} among {len(tried)} trials: {listed}."


def _name_of(figure: str) -> str:
    return next((o.name for o in OBJECTIVES.values() if o.figure == figure), figure)


def importances_of(tried: Sequence[ExplainedTrial], figure: str) -> tuple[Importance, ...]:
    """The share of the variance of a figure's logarithm that each parameter's values explain, the largest first.

    Each explains what those before it left over, so that parameters which were changed together do not count twice.
    Shares are corrected for what as many groups explain by chance; they are of the trials that were made, which a
    sampler does not draw evenly. What remains is due to several parameters together.
    """
    points = [point for point in tried if point.figures.get(figure, 0) > 0]
    left = sorted({name for point in points for name in point.params})
    if len(points) < needed_trials(points):
        return ()
    rest = np.array([log(point.figures[figure]) for point in points])
    rest -= rest.mean()
    total = float((rest**2).sum())
    found: list[Importance] = []
    while left:
        shares = {name: _share(points, rest, total, name) for name in left}
        name = max(left, key=lambda one: shares[one])  # of equals the first by name
        found.append(Importance(name, shares[name]))
        left.remove(name)
        if shares[name] > 0:
            rest = rest - _means(points, rest, name)
    return tuple(found)


def needed_trials(tried: Sequence[ExplainedTrial]) -> int:
    """Trials from which on it can be said which parameters mattered: two for each one that was changed."""
    values: dict[str, set[str]] = {}
    for point in tried:
        for name, value in point.params.items():
            values.setdefault(name, set()).add(repr(value))
    return max(ENOUGH_TRIALS, 2 * sum(len(kinds) > 1 for kinds in values.values()))


def _means(points: Sequence[ExplainedTrial], values: Floats, name: str) -> Floats:
    """For each point the mean over all points with the same value of a parameter."""
    kinds, place = np.unique([repr(point.params.get(name)) for point in points], return_inverse=True)
    sums = np.bincount(place, weights=values, minlength=len(kinds))
    return (sums / np.bincount(place, minlength=len(kinds)))[place]


def _share(points: Sequence[ExplainedTrial], values: Floats, total: float, name: str) -> float:
    count, kinds = len(points), len({repr(point.params.get(name)) for point in points})
    if total <= 1e-12 or kinds < 2 or kinds >= count:
        return 0.0
    means = _means(points, values, name)
    within = float(((values - means) ** 2).sum())
    by_chance = within / (count - kinds) * (kinds - 1)
    return max(0.0, float((values**2).sum()) - within - by_chance) / total
