"""How good a whole front is: the volume of what its designs beat, between them and a point that all of them beat."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import log
from typing import TypeVar

from penstock.dse.evaluation.choosing import Candidate, choosable, pareto_front

Point = tuple[float, ...]
C = TypeVar("C", bound=Candidate)
_LEAST = 1e-6
"""By how much the worst of a front is better than what nothing on it is worse than, where they are all the same."""


def hypervolume(points: Sequence[Point], reference: Point) -> float:
    """Of all that is no better than one of the points and better than the reference, every objective kept small.

    By slices along the last objective: what the points up to there beat in the others, times the slice.
    """
    inside = [point for point in points if all(a < b for a, b in zip(point, reference, strict=True))]
    if not inside:
        return 0.0
    if len(reference) == 1:
        return reference[0] - min(point[0] for point in inside)
    heights = sorted({point[-1] for point in inside})
    volume = 0.0
    for low, high in zip(heights, [*heights[1:], reference[-1]], strict=True):
        volume += hypervolume([p[:-1] for p in inside if p[-1] <= low], reference[:-1]) * (high - low)
    return volume


def front_share(candidates: Sequence[Candidate]) -> float | None:
    """Of the box from the best to the worst of each objective among what may be chosen, what the front beats.

    By logarithms, since objectives go over decades. None where no objective has two values.
    """
    columns = [*zip(*(_logarithms(one) for one in choosable(candidates)), strict=True)]
    best, worst = [min(column) for column in columns], [max(column) for column in columns]
    wide = [place for place, (low, high) in enumerate(zip(best, worst, strict=True)) if low < high]
    if not wide:
        return None
    front = [_logarithms(one) for one in pareto_front(candidates)]
    points = [tuple((point[n] - best[n]) / (worst[n] - best[n]) for n in wide) for point in front]
    return hypervolume(points, (1.0,) * len(wide))


def most_first(front: Sequence[C], first: C) -> list[C]:
    """A front from `first` on in the order in which each adds most to what those before it beat, by logarithms.

    They beat what is as far beyond the worst of them as the front is wide: nothing else counts its ends, than which
    nothing on it is worse.
    """
    points = {n: _logarithms(one) for n, one in enumerate((first, *front))}
    reference = beyond(list(points.values()))
    taken = [points.pop(0)]
    # what one adds gets less with every one that is taken, so a gain that was found earlier is one that it has at most
    gains = [(-hypervolume([point], reference), n) for n, point in points.items()]
    heapify(gains)
    order: list[C] = []
    while gains:
        _, n = heappop(gains)
        gain = hypervolume([*taken, points[n]], reference) - hypervolume(taken, reference)
        if gains and -gain > gains[0][0]:
            heappush(gains, (-gain, n))
            continue
        taken.append(points[n])
        order.append(front[n - 1])
    return order


def beyond(points: Sequence[Point]) -> Point:
    """What all of them beat, in each objective by as much as they differ there."""
    columns = zip(*points, strict=True)
    return tuple(max(column) + max(max(column) - min(column), _LEAST) for column in columns)


def _logarithms(candidate: Candidate) -> Point:
    assert candidate.values is not None
    return tuple(log(max(value, 1e-12)) for value in candidate.values)
