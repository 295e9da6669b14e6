"""Which setting a trial of some number has, whoever asks for it and whenever: proposals in generations.

A proposal follows from the answers of all generations before its own, and from nothing else. What of these is not
answered yet, since another process is at it, is evaluated here as well: that costs a process milliseconds, and waiting
would cost it as much. So the same trials are made by any number of processes, in whatever order they end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from penstock.compiler.errors import PenstockError
from penstock.dse.search.coordinates import Coordinates
from penstock.dse.search.local import LocalProposer, Proposal
from penstock.dse.search.promise import EndedTrial
from penstock.dse.space.tiling import Params

SIZE = 8
"""Trials of one generation."""
REACH = 900
"""How many of the trials before it a generation looks at: long studies are read in part."""

Values = tuple[float, ...]
Evaluated = tuple[Values, Mapping[str, float]]
"""Objectives and constraints of a setting."""
Answering = Callable[[Params], Evaluated]


@dataclass(frozen=True)
class Answered:
    """A trial that has an answer, or that somebody works at, by its place in the search."""

    params: Params
    answer: Evaluated | None
    means: str | None = None


class Generations:
    """Settings by their place in a search: those that it begins with, then proposals."""

    def __init__(self, proposer: LocalProposer, first: Sequence[Params]) -> None:
        self._proposer, self._first = proposer, first
        self._proposed: dict[int, Proposal] = {}
        self._ended: dict[int, EndedTrial | None] = {}

    def setting(self, index: int, known: Mapping[int, Answered], evaluate: Answering | None) -> Proposal:
        """The setting of the trial at this place.

        Without `evaluate`, what is not answered is left out: then the order in which trials end makes a difference.
        """
        if index < len(self._first):
            place = self._proposer.place_of(self._first[index])
            return Proposal(place, dict(self._first[index]), self._means(place))
        if evaluate is None:
            return self._propose(index, len(known), known, None)
        if index not in self._proposed:
            start = len(self._first) + (index - len(self._first)) // SIZE * SIZE
            for place in range(start, index + 1):
                if place not in self._proposed:
                    self._proposed[place] = self._propose(place, start, known, evaluate)
        return self._proposed[index]

    def _propose(self, index: int, start: int, known: Mapping[int, Answered], evaluate: Answering | None) -> Proposal:
        """By the trials before `start`, and unlike those of the own generation before it."""
        window = [*range(min(len(self._first), start)), *range(max(len(self._first), start - REACH), start)]
        ended: list[EndedTrial] = []
        tried: set[Hashable] = set()
        for number in dict.fromkeys(window) if evaluate is not None else sorted(known):
            tried.add(self._met(number, known, evaluate))
            if self._proposer.learns and (one := self._end(number, known, evaluate)) is not None:
                ended.append(one)
        if evaluate is not None:
            tried |= {self._proposer.means(self._proposed[n].place) for n in range(start, index)}
        look = None if evaluate is None else partial(self._seen, evaluate)
        return self._proposer.propose(ended, tried, index, look)

    def _seen(self, evaluate: Answering, number: int, place: Coordinates) -> EndedTrial | None:
        try:
            values, constraints = evaluate(self._proposer.params_at(place))
        except PenstockError:  # its own trial says why
            return None
        return EndedTrial(number, place, tuple(values), _worst(constraints))

    def _met(self, number: int, known: Mapping[int, Answered], evaluate: Answering | None) -> Hashable:
        """What the setting at a place means."""
        one = known.get(number)
        place = self._proposer.place_of(self._params(number, known, evaluate))
        if one is not None and one.means is not None:
            self._proposer.is_known(place, one.means)
        return self._proposer.means(place)

    def _params(self, number: int, known: Mapping[int, Answered], evaluate: Answering | None) -> Params:
        one = known.get(number)
        return one.params if one is not None else self.setting(number, known, evaluate).params

    def _end(self, number: int, known: Mapping[int, Answered], evaluate: Answering | None) -> EndedTrial | None:
        """What came of the trial at a place, or would; None where it has no figures."""
        if number not in self._ended:
            one = known.get(number)
            answer = one.answer if one is not None else None
            params = self._params(number, known, evaluate)
            if answer is None and evaluate is not None:
                try:
                    answer = evaluate(params)
                except PenstockError:  # its own trial says why
                    self._ended[number] = None
            if answer is None:
                return None
            place = self._proposer.place_of(params)
            self._ended[number] = EndedTrial(number, place, tuple(answer[0]), _worst(answer[1]))
        return self._ended[number]

    def _means(self, place: tuple[int, ...]) -> str:
        return str(self._proposer.means(place))


def _worst(constraints: Mapping[str, float]) -> float:
    """The largest share of what may be used."""
    return max(constraints.values(), default=-1.0) + 1.0
