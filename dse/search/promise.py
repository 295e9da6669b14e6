"""How much a setting promises by the trials so far: a Gaussian process over places, and which parameters matter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt
from typing import Any, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

from penstock.dse.search.coordinates import CoordinateRows, Coordinates, Floats, Places

_NOISE = 1e-4
_BOLD = 3.0  # every other proposal trusts the prediction less
_OTHER_OBJECTIVE = 8  # one proposal in so many is for the other objectives
_JUDGED = 60  # trials by which it is judged which parameters matter
_WIDTHS = (0.2, 0.5, 2.0)
_WORST = 50.0  # a resource this many times over its limit is as bad as any beyond
_BLOCK = 24  # rows up to which a triangular matrix is inverted at once

_threads = cast(Any, ThreadpoolController())


F = TypeVar("F", bound=Callable[..., Any])


def _on_one_thread(function: F) -> F:
    """For matrices of a hundred rows: more threads wait for each other, and take the cores of other workers."""
    return _threads.wrap(limits=1, user_api="blas")(function)


@dataclass(frozen=True)
class EndedTrial:
    """A trial that came to an end."""

    number: int
    place: Coordinates
    values: tuple[float, ...]
    worst: float
    """The largest share of what may be used: feasible up to 1."""

    @property
    def fits(self) -> bool:
        return self.worst <= 1.0

    @cached_property
    def rank(self) -> tuple[float, ...]:
        return (max(self.worst, 1.0), *self.values)


@_on_one_thread
def promise(places: Places, points: Sequence[EndedTrial], widths: Floats, pool: CoordinateRows, number: int) -> Floats:
    """By how much each row of the pool may be better than the best point, times the chance that it fits."""
    taken = np.array([p.place for p in points], dtype=np.intp)
    known, asked = places.features(taken) * widths, places.features(pool) * widths
    root = _inverted(np.linalg.cholesky(_alike(known, known) + _NOISE * np.eye(len(known))))
    near = _alike(asked, known) @ root.T
    doubt = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", near, near), 1e-9))

    def predict(values: Floats) -> tuple[Floats, Floats]:
        mean, scale = float(values.mean()), float(values.std()) + 1e-9
        return near @ (root @ ((values - mean) / scale)) * scale + mean, doubt * scale

    shares = np.array([p.worst for p in points])
    worst, unsure = predict(np.log(np.clip(shares, 1e-3, _WORST)))
    fits = _chance(-worst / unsure)
    feasible = shares <= 1
    if not feasible.any():
        return fits
    objectives = len(points[0].values)
    others = objectives > 1 and number % _OTHER_OBJECTIVE == _OTHER_OBJECTIVE - 1
    which = 1 + number // _OTHER_OBJECTIVE % (objectives - 1) if others else 0
    reached = _logs([p.values[which] for p in points])
    expected, unsure = predict(reached)
    unsure = unsure * (_BOLD if number % 2 else 1.0)
    gain = (reached[feasible].min() - 1e-3 - expected) / unsure
    improvement = unsure * (gain * _chance(gain) + np.exp(-gain * gain / 2) / sqrt(2 * pi))
    return np.maximum(improvement, 1e-12) * fits


@_on_one_thread
def learn_widths(places: Places, points: Sequence[EndedTrial]) -> Floats:
    """How much each column counts: parameters that matter more by the points, the best first, count more."""
    some = points[:: -(-len(points) // _JUDGED)]
    features = places.features(np.array([p.place for p in some], dtype=np.intp))
    values = _logs([p.values[0] for p in some])
    values = (values - values.mean()) / (values.std() + 1e-9)
    apart = [_apart(features[:, places.columns == position]) for position in range(len(places.names))]
    widths = np.ones(len(places.names))
    total = sum(apart, np.zeros((len(some), len(some))))
    best = _likelihood(total, values)
    for position in range(len(places.names)):
        for width in _WIDTHS:
            other = total + (width * width - widths[position] ** 2) * apart[position]
            likelihood = _likelihood(other, values)
            if likelihood > best + 0.1:
                best, total, widths[position] = likelihood, other, width
    return widths[places.columns]


def _alike(some: Floats, others: Floats) -> Floats:
    """One for the same place, less and less with distance."""
    near = some @ others.T
    near -= np.einsum("ij,ij->i", some, some)[:, None] / 2
    near -= np.einsum("ij,ij->i", others, others) / 2
    return np.exp(np.minimum(near, 0.0, out=near), out=near)


def _inverted(lower: Floats) -> Floats:
    """The inverse of a lower triangular matrix, by halves: numpy's own would not know of the zeros."""
    count = len(lower)
    if count <= _BLOCK:
        return np.linalg.inv(lower)
    half = count // 2
    inverse = np.zeros_like(lower)
    inverse[:half, :half] = first = _inverted(lower[:half, :half])
    inverse[half:, half:] = second = _inverted(lower[half:, half:])
    inverse[half:, :half] = -second @ (lower[half:, :half] @ first)
    return inverse


def _apart(places: Floats) -> Floats:
    """Squared distances."""
    squares = (places * places).sum(axis=1)
    return np.maximum(squares[:, None] + squares - 2 * places @ places.T, 0.0)


def _likelihood(apart: Floats, values: Floats) -> float:
    """How well distances explain values, as a logarithm."""
    lower = np.linalg.cholesky(np.exp(-0.5 * apart) + 1e-3 * np.eye(len(values)))
    explained = np.linalg.solve(lower, values)
    return float(-(explained @ explained) / 2 - np.log(np.diag(lower)).sum())


def _chance(gain: Floats) -> Floats:
    """The normal distribution, nearly."""
    return 1.0 / (1.0 + np.exp(-np.clip(1.702 * gain, -500, 500)))


def _logs(values: Sequence[float]) -> Floats:
    return np.log(np.maximum(values, 1e-9))
