"""Proposals near what was good so far, by a model of the trials: the default sampler.

A Gaussian process over the settings predicts the objectives and the worst constraint of what was not tried yet.
Proposed is what promises most among the neighbours of the best settings and others at random, and means a design that
nobody tried. All it knows it reads from the study, so any number of processes may propose at the same time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from compiler.errors import PenstockError
from dse.samplers import distribution, in_order, is_ordered, means_something
from dse.tiling import Choices, Conditions, Params, Value

Meaning = Callable[[Params], Hashable]
"""What two settings have in common if they mean the same design."""

Place = tuple[int, ...]
"""A setting as positions among each parameter's choices; one that means nothing stands at 0."""
Floats = NDArray[np.floating[Any]]

_FEWEST = 4  # trials from which there is something to learn
_MOST_LEARNT, _LATEST = 160, 40  # the best, and the latest, of many trials
_TOP = 8
_AT_RANDOM = 300
_REACH = 2  # how many places along an ordered parameter count as near
_LENGTH = 0.35
_NOISE = 1e-4
_BOLD = 3.0  # every other proposal trusts the prediction less
_OTHER_OBJECTIVE = 8  # one proposal in so many is for the other objectives
_MOST_CHECKED = 64  # candidates that mean what was tried before chance decides
_JUDGED = 60  # trials by which it is judged which parameters matter
_WIDTHS = (0.2, 0.5, 2.0)
_WORST = 50.0  # a resource this many times over its limit is as bad as any beyond


@dataclass(frozen=True)
class _Point:
    """A trial that came to an end."""

    place: Place
    values: tuple[float, ...]
    worst: float
    """The largest share of what may be used: feasible up to 1."""

    @property
    def rank(self) -> tuple[float, ...]:
        return (max(self.worst, 1.0), *self.values)


class LocalSampler(BaseSampler):
    """Asked for the same trial of the same study, it always proposes the same."""

    def __init__(self, choices: Choices, conditions: Conditions, seed: int, meaning: Meaning | None = None) -> None:
        self._choices, self._conditions, self._seed = choices, conditions, seed
        self._names = in_order(choices, conditions)
        self._sizes = [len(choices[name]) for name in self._names]
        self._ordered = [is_ordered(choices[name]) for name in self._names]
        counts = [1 if ordered else size for ordered, size in zip(self._ordered, self._sizes, strict=True)]
        self._columns = np.repeat(np.arange(len(self._sizes)), counts)
        self._space: dict[str, BaseDistribution] = {name: distribution(choices[name]) for name in self._names}
        self._meaning = meaning
        self._meanings: dict[Place, Hashable] = {}
        self._points: dict[int, _Point] = {}
        self._places: dict[int, Place] = {}
        self._tried: set[Hashable] = set()
        self._alone = RandomSampler(seed=seed)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return self._space

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return self._alone.sample_independent(study, trial, param_name, param_distribution)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A whole setting. What a queued one leaves open is filled in at random."""
        if "fixed_params" in trial.system_attrs:
            return {}
        self._read(study.get_trials(deepcopy=False), trial.number)
        chance = random.Random(self._seed * 1_000_003 + trial.number)
        place = self._propose(chance, trial.number)
        self._tried.add(self._means(place))
        return {
            name: position if ordered else self._choices[name][position]
            for name, position, ordered in zip(self._names, place, self._ordered, strict=True)
        }

    # -- what was tried

    def _read(self, trials: Sequence[FrozenTrial], own: int) -> None:
        for trial in trials:
            number = trial.number
            if number in self._points or number == own or not trial.params:
                continue
            if number not in self._places:
                place = self._place_of(trial.params)
                self._places[number] = place
                self._tried.add(self._means(place))
            if trial.state == TrialState.COMPLETE:
                worst = max(trial.constraints.values(), default=-1.0) + 1.0
                self._points[number] = _Point(self._places[number], tuple(trial.values), worst)

    def _place_of(self, params: Mapping[str, Any]) -> Place:
        place: list[int] = []
        for name, ordered in zip(self._names, self._ordered, strict=True):
            value = params.get(name)
            if value is None:
                place.append(0)
            else:
                place.append(int(value) if ordered else self._choices[name].index(value))
        return tuple(place)

    def _params_of(self, place: Place) -> dict[str, Value]:
        """The setting, without what means nothing in it."""
        params: dict[str, Value] = {}
        for name, position in zip(self._names, place, strict=True):
            if means_something(name, params, self._conditions):
                params[name] = self._choices[name][position]
        return params

    def _tidy(self, place: Place) -> Place:
        """The same setting, with what means nothing in it at 0."""
        if not self._conditions:
            return place
        params = self._params_of(place)
        return tuple([p if name in params else 0 for name, p in zip(self._names, place, strict=True)])

    def _means(self, place: Place) -> Hashable:
        if self._meaning is None:
            return place
        if place not in self._meanings:
            try:
                self._meanings[place] = self._meaning(self._params_of(place))
            except PenstockError:  # a setting that means no design is like no other; its trial will say why
                self._meanings[place] = place
        return self._meanings[place]

    # -- what to try

    def _propose(self, chance: random.Random, number: int) -> Place:
        points = self._learnt()
        if len(points) >= _FEWEST:
            pool = self._pool(points, chance)
            promise = self._promise(points, pool, number)
            order: list[int] = np.argsort(-promise, kind="stable")[:_MOST_CHECKED].tolist()
            for index in order:
                if self._means(pool[index]) not in self._tried:
                    return pool[index]
        place = self._at_random(chance)
        for _ in range(_MOST_CHECKED):
            if self._means(place) not in self._tried:
                break
            place = self._at_random(chance)
        return place

    def _learnt(self) -> list[_Point]:
        """The trials to learn from, the best first: all of few, of many the best and the latest."""
        points = list(self._points.values())
        ranked = sorted(points, key=lambda p: p.rank)
        if len(points) <= _MOST_LEARNT + _LATEST:
            return ranked
        best = ranked[:_MOST_LEARNT]
        return [*best, *[p for p in points[-_LATEST:] if p not in best]]

    def _pool(self, points: Sequence[_Point], chance: random.Random) -> list[Place]:
        """Neighbours of the best, each also with one more parameter changed; and anything."""
        pool: dict[Place, None] = {}
        for point in points[:_TOP]:
            for near in self._neighbours(point.place):
                pool[self._tidy(near)] = None
                position = chance.randrange(len(near))
                other = chance.randrange(self._sizes[position])
                pool[self._tidy((*near[:position], other, *near[position + 1 :]))] = None
        for _ in range(_AT_RANDOM):
            pool[self._at_random(chance)] = None
        return list(pool)

    def _neighbours(self, place: Place) -> Iterator[Place]:
        for position, size in enumerate(self._sizes):
            for other in range(size):
                near = not self._ordered[position] or abs(other - place[position]) <= _REACH
                if other != place[position] and near:
                    yield (*place[:position], other, *place[position + 1 :])

    def _at_random(self, chance: random.Random) -> Place:
        return self._tidy(tuple([chance.randrange(size) for size in self._sizes]))

    def _promise(self, points: Sequence[_Point], pool: Sequence[Place], number: int) -> Floats:
        """By how much each place may be better than the best, times the chance that it fits."""
        widths = self._widths(points)
        known, asked = self._features([p.place for p in points]) * widths, self._features(pool) * widths
        lower: Floats = np.linalg.cholesky(_alike(known, known) + _NOISE * np.eye(len(known)))
        near = _alike(asked, known)
        spread = np.linalg.solve(lower, near.T)
        doubt = np.sqrt(np.maximum(1.0 - (spread**2).sum(axis=0), 1e-9))

        def predict(values: Floats) -> tuple[Floats, Floats]:
            mean, scale = float(values.mean()), float(values.std()) + 1e-9
            halfway: Floats = np.linalg.solve(lower, (values - mean) / scale)
            weights: Floats = np.linalg.solve(lower.T, halfway)
            return near @ weights * scale + mean, doubt * scale

        worst, unsure = predict(np.log([min(max(p.worst, 1e-3), _WORST) for p in points]))
        fits = _chance(-worst / unsure)
        feasible = [p for p in points if p.worst <= 1]
        if not feasible:
            return fits
        objectives = len(points[0].values)
        others = objectives > 1 and number % _OTHER_OBJECTIVE == _OTHER_OBJECTIVE - 1
        which = 1 + number // _OTHER_OBJECTIVE % (objectives - 1) if others else 0
        best = min(_log(p.values[which]) for p in feasible)
        expected, unsure = predict(np.array([_log(p.values[which]) for p in points]))
        unsure = unsure * (_BOLD if number % 2 else 1.0)
        gain = (best - 1e-3 - expected) / unsure
        improvement = unsure * (gain * _chance(gain) + np.exp(-gain * gain / 2) / sqrt(2 * pi))
        return np.maximum(improvement, 1e-12) * fits

    def _widths(self, points: Sequence[_Point]) -> Floats:
        """How much each column counts: parameters that matter more by the trials so far count more."""
        some = points[:: -(-len(points) // _JUDGED)]
        features = self._features([p.place for p in some])
        values = np.array([_log(p.values[0]) for p in some])
        values = (values - values.mean()) / (values.std() + 1e-9)
        apart = [_apart(features[:, self._columns == position]) for position in range(len(self._sizes))]
        widths = np.ones(len(self._sizes))
        total = sum(apart, np.zeros((len(some), len(some))))
        best = _likelihood(total, values)
        for position in range(len(self._sizes)):
            for width in _WIDTHS:
                other = total + (width * width - widths[position] ** 2) * apart[position]
                likelihood = _likelihood(other, values)
                if likelihood > best + 0.1:
                    best, total, widths[position] = likelihood, other, width
        return widths[self._columns]

    def _features(self, places: Sequence[Place]) -> Floats:
        """Places such that near ones are alike: ordered parameters along a line, the values of others apart."""
        taken = np.array(places)
        columns: list[Floats] = []
        for position, size in enumerate(self._sizes):
            column = taken[:, position]
            if self._ordered[position]:
                columns.append((column / sqrt(max(size - 1, 1)))[:, None])
            else:
                columns.append(np.eye(size)[column])
        return np.concatenate(columns, axis=1) * _LENGTH


def _alike(some: Floats, others: Floats) -> Floats:
    """One for the same place, less and less with distance."""
    apart = (some * some).sum(axis=1)[:, None] + (others * others).sum(axis=1) - 2 * some @ others.T
    return np.exp(-0.5 * np.maximum(apart, 0.0))


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


def _log(value: float) -> float:
    return log(max(value, 1e-9))
