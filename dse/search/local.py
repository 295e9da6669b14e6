"""Proposals near what was good so far, by a model of the trials: the default sampler.

A Gaussian process over the settings predicts the objectives and the worst constraint of what was not tried yet.
Proposed is what promises most among the neighbours of the best settings and others at random, and means a design that
nobody tried. It keeps nothing but what it has worked out: which trials it learns from is said by who asks it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.compiler.errors import PenstockError
from penstock.dse.search.coordinates import CoordinateRows, Coordinates, Floats, Places
from penstock.dse.search.promise import EndedTrial, learn_widths, promise
from penstock.dse.space.tiling import Choices, Conditions, Params, Value

Meaning = Callable[[Params], Hashable]
"""What two settings have in common if they mean the same design."""

Foreseeing = Callable[[int, Coordinates], EndedTrial | None]
"""What the trial of a number would come to with a setting, which its own trial finds known; None without figures."""

MEANS = "means"
"""A trial's attribute: a digest of what its setting means, so that no other process has to find it out."""

_FEWEST = 4  # trials from which there is something to learn
_MOST_LEARNT, _LATEST = 100, 30  # the best, and the latest, of many trials
_GROWTH = 1.25  # with so many times the trials it is learnt anew which parameters matter
_TOP = 8
_AT_RANDOM = 300
_DIGITS = 24  # of a meaning's digest: none of ten thousand is another's
_MOST_CHECKED = 64  # candidates that mean what was tried before chance decides
_MOST_MISSED = 4  # candidates that are seen not to fit before the first of them is tried all the same


@dataclass(frozen=True)
class Proposal:
    """A whole setting, and a digest of what it means, where that is known."""

    place: Coordinates
    params: dict[str, Value]
    means: str | None


class LocalProposer:
    """Asked for the same number after the same trials, it always proposes the same.

    One that does not learn proposes anything that means something new.
    """

    def __init__(
        self,
        choices: Choices,
        conditions: Conditions,
        seed: int,
        meaning: Meaning | None = None,
        *,
        learns: bool = True,
    ) -> None:
        self._places, self._seed, self.learns = Places(choices, conditions), seed, learns
        self._meaning = meaning
        self._meanings: dict[Coordinates, Hashable] = {}
        self._judged: tuple[int, ...] = ()
        self._widths: Floats = np.ones(len(self._places.columns))

    def place_of(self, params: Params) -> Coordinates:
        return self._places.at(params)

    def params_at(self, place: Coordinates) -> dict[str, Value]:
        return self._places.params(place)

    def means(self, place: Coordinates) -> Hashable:
        """A digest of what a setting means; where nobody says what settings mean, the setting itself."""
        if self._meaning is None:
            return place
        if place not in self._meanings:
            try:
                means = self._meaning(self._places.params(place))
            except PenstockError:  # a setting that means no design is like no other; its trial will say why
                means = place
            self._meanings[place] = hashlib.sha256(repr(means).encode()).hexdigest()[:_DIGITS]
        return self._meanings[place]

    def is_known(self, place: Coordinates, means: str) -> None:
        """Some other process found out what a setting means."""
        if self._meaning is not None:
            self._meanings.setdefault(place, means)

    def propose(
        self, known: Sequence[EndedTrial], tried: Container[Hashable], number: int, look: Foreseeing | None = None
    ) -> Proposal:
        """A whole setting for the trial of this number that means nothing that was tried, as far as that can be.

        What would miss a limit by `look` is learnt from and passed over, as often as pays, once any trial keeps to all.
        """
        looks = look if self.learns and any(one.fits for one in known) else None
        chance = np.random.default_rng([self._seed % (1 << 63), number])
        place = self._propose(known, tried, chance, number, looks)
        return Proposal(place, self._places.params(place), None if self._meaning is None else str(self.means(place)))

    # -- what to try

    def _propose(
        self,
        known: Sequence[EndedTrial],
        tried: Container[Hashable],
        chance: np.random.Generator,
        number: int,
        look: Foreseeing | None,
    ) -> Coordinates:
        missed: list[EndedTrial] = []
        if self.learns and len(known) >= _FEWEST:
            points, widths = _learnt(known), self._learn_widths(known)
            pool = self._places.around([p.place for p in points[:_TOP]], _AT_RANDOM, chance)
            for _ in range(_MOST_MISSED):
                promised = promise(self._places, [*points, *missed], widths, pool, number)
                best = pool[np.argsort(-promised, kind="stable")[:_MOST_CHECKED]]
                found = self._first_new(best, tried, self._means_of(missed))
                if found is None:
                    break
                if self._keeps(found, number, look, missed):
                    return found
        anywhere = self._places.at_random(_MOST_CHECKED, chance)
        for _ in range(_MOST_MISSED):  # what promises most does not fit: anything that does says more
            found = self._first_new(anywhere, tried, self._means_of(missed))
            if found is None:
                break
            if self._keeps(found, number, look, missed):
                return found
        return missed[0].place if missed else tuple(anywhere[-1].tolist())

    def _keeps(self, place: Coordinates, number: int, look: Foreseeing | None, missed: list[EndedTrial]) -> bool:
        """Whether a setting keeps to the limits, as far as anybody looks."""
        seen = None if look is None else look(number, place)
        if seen is None or seen.fits:
            return True
        missed.append(seen)
        return False

    def _means_of(self, missed: Sequence[EndedTrial]) -> set[Hashable]:
        return {self.means(one.place) for one in missed}

    def _first_new(self, rows: CoordinateRows, *tried: Container[Hashable]) -> Coordinates | None:
        """The first place that means what nobody tried."""
        for row in rows.tolist():
            place: Coordinates = tuple(row)
            if not any(self.means(place) in some for some in tried):
                return place
        return None

    def _learn_widths(self, known: Sequence[EndedTrial]) -> Floats:
        """From the first trials, as many as there were when their number had last grown enough."""
        some = known[: _last_step(len(known))]
        judged = tuple([p.number for p in some])
        if judged != self._judged:
            self._judged, self._widths = judged, learn_widths(self._places, _learnt(some))
        return self._widths


def _learnt(known: Sequence[EndedTrial]) -> list[EndedTrial]:
    """The trials to learn from, the best first: all of few, of many the best and the latest."""
    ranked = sorted(known, key=lambda p: p.rank)
    if len(known) <= _MOST_LEARNT + _LATEST:
        return ranked
    best = ranked[:_MOST_LEARNT]
    numbers = {p.number for p in best}
    return [*best, *[p for p in known[-_LATEST:] if p.number not in numbers]]


def _last_step(count: int) -> int:
    """The last number up to this one at which it is learnt anew."""
    step = _FEWEST
    while (following := max(step + 1, int(step * _GROWTH))) <= count:
        step = following
    return step
