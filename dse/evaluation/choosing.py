"""What is chosen from many trials: the Pareto front, the best, the nearest miss."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import le
from typing import Protocol, TypeVar

from penstock.compiler.errors import PenstockError
from penstock.dse.evaluation.objectives import after_miss, describe_miss, shortage


class Candidate(Protocol):
    """Whatever has a setting, objectives and constraints: an evaluation, or a trial that a study remembers."""

    @property
    def params(self) -> Mapping[str, int | str | bool]: ...
    @property
    def values(self) -> Sequence[float] | None: ...
    @property
    def constraints(self) -> dict[str, float]: ...
    @property
    def feasible(self) -> bool: ...


C = TypeVar("C", bound=Candidate)


def pareto_front(candidates: Sequence[C]) -> list[C]:
    """The candidates to choose from that no other one beats in every objective; of equals the first by its setting."""
    ranked = sorted(choosable(candidates), key=place_of)
    return [ranked[place] for place in unbeaten([_values(candidate) for candidate in ranked])]


def unbeaten(values: Sequence[tuple[float, ...]]) -> list[int]:
    """The places of those that no other one beats in every objective, the smallest first; of equals the first given."""
    front: list[int] = []
    for place in sorted(range(len(values)), key=values.__getitem__):
        mine = values[place]
        rivals = front if len(mine) > 2 else front[-1:]  # of two objectives the second falls along the front
        if not any(all(map(le, values[kept], mine)) for kept in rivals):
            front.append(place)
    return front


def select_best(candidates: Sequence[C], where: str = "exploration") -> C:
    """The best feasible one by the goal's objectives in order, then by its setting; an error names the nearest miss."""
    if eligible := choosable(candidates):
        return min(eligible, key=place_of)
    miss = nearest_miss(candidates)
    if miss is None:
        raise PenstockError(
            code="nothing-evaluated", what="no trial came to an end", where=where,
            hint="look at the trials' errors, then start the run again",
        )  # fmt: skip
    short, excess = shortage(miss.constraints)
    raise PenstockError(
        code="nothing-fits", what=f"none of the {len(candidates)} designs keeps every limit", where=where,
        limit=describe_miss(short, excess),
        hint=after_miss(short),
    )  # fmt: skip


def choosable(candidates: Sequence[C]) -> list[C]:
    """The feasible ones; where there are none, those that miss only the dies, which are then left to the tools."""
    finished = [c for c in candidates if c.values is not None]
    return [c for c in finished if c.feasible] or [c for c in finished if shortage(c.constraints)[1] <= 0]


def nearest_miss(candidates: Sequence[C]) -> C | None:
    """The candidate that is least over its worst limit."""
    finished = [c for c in candidates if c.values is not None]
    return min(finished, key=lambda c: (shortage(c.constraints)[1], _values(c)), default=None)


def place_of(candidate: Candidate) -> tuple[tuple[float, ...], str]:
    """What candidates are ordered by: equal ones by their content, not by who ended first."""
    return _values(candidate), setting_of(candidate)


def setting_of(candidate: Candidate) -> str:
    """What tells candidates apart, also when one was evaluated again."""
    return json.dumps(dict(candidate.params), sort_keys=True)


def _values(candidate: Candidate) -> tuple[float, ...]:
    assert candidate.values is not None
    return tuple(candidate.values)
