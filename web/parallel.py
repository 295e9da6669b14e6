"""Trials as lines across their parameters and figures: which settings the good ones share, and a part of an axis that
the table is held to."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web import text
from penstock.web.text import Document
from penstock.web.trials_view import FIGURES, KnownTrials, shown_value, split_params, usual_columns

_DRAWN = ("latency_us", "resource_share", "energy_uj")
_LOG_FROM_RATIO = 12.0
_MOST_STOPS = 24
"""Values of an axis that a chosen part of it ends at; of more, it may end anywhere."""
AskedOf = tuple[str, str, str]
"""Name, relation and value, as the table's filter has them."""


@dataclass(frozen=True)
class Rail:
    """An axis: where it stands, what it is called, what its ends mean, and the part that the table is held to."""

    at: float
    key: str
    """What a condition calls it."""
    name: str
    anchor: str
    high: str
    low: str
    scale: str
    """How places become values, as JSON: the ends and whether it is logarithmic, and of few values their places."""
    top: float
    bottom: float
    top_words: str
    bottom_words: str

    @property
    def is_held(self) -> bool:
        return self.top > 0 or self.bottom < 100


@dataclass(frozen=True)
class Strand:
    """A trial's line."""

    number: int
    path: str
    style: str


@dataclass(frozen=True)
class ParallelPlot:
    rails: tuple[Rail, ...]
    strands: tuple[Strand, ...]
    """Of the trials in the table."""
    others: tuple[tuple[str, str], ...]
    """Those of other trials, by the style that they share."""

    @property
    def is_held(self) -> bool:
        return any(rail.is_held for rail in self.rails)


@dataclass(frozen=True)
class _Scale:
    key: str
    name: str
    show: Callable[[Any], str]
    low: float
    high: float
    logarithmic: bool
    words: Mapping[str, float]
    """The place of each value of an axis without numbers."""
    said: Mapping[str, str]
    """How these read."""
    values: tuple[float, ...]

    @staticmethod
    def of(key: str, name: str, values: Sequence[Any], show: Callable[[Any], str]) -> _Scale:
        known = [value for value in values if value is not None]
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
            low, high = float(min(known)), float(max(known))
            is_wide = low > 0 and high / low > _LOG_FROM_RATIO
            return _Scale(key, name, show, low, high, is_wide, {}, {}, tuple(sorted(set(map(float, known)))))
        said = {_word(value): shown_value(value) for value in known}
        words = sorted(said, key=text.by_size, reverse=any(isinstance(value, list) for value in known))
        places = {word: 100 * i / max(1, len(words) - 1) for i, word in enumerate(words)}
        return _Scale(key, name, show, 0.0, 1.0, False, places, said, ())

    def place(self, value: Any) -> float | None:
        """Between 0 at the top and 100; None where there is no value."""
        if value is None:
            return None
        if self.words:
            return round(self.words[_word(value)], 1) if _word(value) in self.words else None
        return self._place(float(value))

    def _place(self, value: float) -> float:
        ends = self.low, self.high
        if self.logarithmic:
            value, *ends = (math.log(max(one, self.low)) for one in (value, *ends))
        share = (value - ends[0]) / ((ends[1] - ends[0]) or 1)
        return round(100 - 100 * min(1.0, max(0.0, share)), 1)

    def ends(self) -> tuple[str, str]:
        if not self.words:
            return self.show(self.high), self.show(self.low)
        return self.words_at(0), self.words_at(100) if len(self.words) > 1 else ""

    def held(self, conditions: Sequence[AskedOf]) -> tuple[float, float]:
        """The part that conditions leave, from above."""
        top, bottom = 0.0, 100.0
        for name, relation, value in conditions:
            if name != self.key:
                continue
            places = [self._of_text(one) for one in value.split("|")]
            known = [place for place in places if place is not None]
            if known and relation in ("=", "<="):
                top = max(top, min(known))
            if known and relation in ("=", ">="):
                bottom = min(bottom, max(known))
        return (top, bottom) if top <= bottom else (0.0, 100.0)

    def _of_text(self, word: str) -> float | None:
        if self.words:
            return self.words.get(word)
        try:
            return self._place(float(word))
        except ValueError:
            return None

    def words_at(self, place: float) -> str:
        """What stands there, said aloud."""
        if self.words:
            return self.said[min(self.words, key=lambda word: abs(self.words[word] - place))]
        if len(self.values) <= _MOST_STOPS:
            return self.show(min(self.values, key=lambda value: abs(self._place(value) - place)))
        share = 1 - place / 100
        if self.logarithmic:
            return self.show(self.low * (self.high / self.low) ** share)
        return self.show(self.low + share * (self.high - self.low))

    def as_json(self) -> str:
        stops: list[tuple[float, str, str]] = []
        if self.words:
            stops = [(place, word, self.said[word]) for word, place in self.words.items() if word and "|" not in word]
        elif len(self.values) <= _MOST_STOPS:
            stops = [(self._place(value), f"{value:.12g}", self.show(value)) for value in self.values]
        whole = {
            "low": self.low, "high": self.high, "log": self.logarithmic, "words": bool(self.words), "stops": stops,
        }  # fmt: skip
        return json.dumps(whole, separators=(",", ":"))

    def rail(self, at: float, conditions: Sequence[AskedOf]) -> Rail:
        top, bottom = self.held(conditions)
        high, low = self.ends()
        anchor = "start" if at == 0 else "end" if at == 100 else "middle"
        name = self.name + (" (log)" if self.logarithmic else "")
        words = self.words_at(top), self.words_at(bottom)
        return Rail(at, self.key, name, anchor, high, low, self.as_json(), top, bottom, *words)


def draw_parallel(known: KnownTrials) -> ParallelPlot | None:
    """Of trials that have figures; parameters first, figures last. None where there is nothing to compare.

    Axes are those of all trials, so that one that the table is held to can be let go again.
    """
    rows = {trial["number"]: trial for trial in known.rows if trial["figures"]}
    everything = list((rows | {trial["number"]: trial for trial in known.beside if trial["figures"]}).values())
    _, varying = split_params(everything)
    asked = tuple(name for name in known.query.columns if name in varying)
    names = asked or usual_columns(everything, varying)
    figures = [c for c in FIGURES if c.name in _DRAWN and any(t["figures"].get(c.name) is not None for t in everything)]
    scales = [_Scale.of(name, name, [t["params"].get(name) for t in everything], shown_value) for name in names]
    scales += [_Scale.of(c.name, c.heading, [t["figures"].get(c.name) for t in everything], c.show) for c in figures]
    if len(everything) < 2 or len(scales) < 2 or not names:
        return None
    places = [round(100 * index / (len(scales) - 1), 2) for index in range(len(scales))]

    def path(trial: Document) -> str:
        values = [trial["params"].get(s.key, trial["figures"].get(s.key)) for s in scales]
        return _path(places, [scale.place(value) for scale, value in zip(scales, values, strict=True)])

    others: dict[str, str] = {}
    for trial in everything:
        if trial["number"] not in rows:
            style = _style(trial) if known.kept is None or trial["number"] in known.kept else "faded"
            others[style] = others.get(style, "") + path(trial)
    strands = [Strand(trial["number"], path(trial), _style(trial)) for trial in rows.values()]
    return ParallelPlot(
        rails=tuple(scale.rail(at, known.conditions) for at, scale in zip(places, scales, strict=True)),
        strands=tuple(sorted(strands, key=lambda strand: _STYLES.index(strand.style))),
        others=tuple(sorted(others.items(), key=lambda item: _STYLES.index(item[0]))),
    )


_STYLES = ("faded", "misfit", "fit", "chosen")
"""What is drawn first is covered by what comes after."""


def _word(value: object) -> str:
    """A value as a condition names it: without blanks."""
    return (value if isinstance(value, str) else json.dumps(value)).replace(" ", "")


def _path(places: Sequence[float], values: Sequence[float | None]) -> str:
    """A line that leaves out the axes on which the trial has no value."""
    points = [(x, y) for x, y in zip(places, values, strict=True) if y is not None]
    return "".join(f"{'L' if index else 'M'}{x:g} {y:g}" for index, (x, y) in enumerate(points))


def _style(trial: Document) -> str:
    return "chosen" if trial["chosen"] else "fit" if trial["state"] == "complete" else "misfit"
