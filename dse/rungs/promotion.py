"""Which designs a stronger rung looks at: those it may find to be the best, by what is known of the weaker's error.

The best design of the weaker rung always goes up. The others follow by expected improvement: how much faster than the
best corrected figure each is expected to be, over the recorded ratios of designs like it. Where no errors were
recorded, or none were found, that is 0 for all and plain ranking decides. What is equal in both goes by difference
from what was chosen before. Dominated designs take part: one within the error of the front may be its best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.evidence import EVIDENCE, Evidence
from penstock.dse.evaluation.choosing import choosable
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.error import Correction
from penstock.dse.rungs.history import Pair, mix_of
from penstock.dse.rungs.rung import Measured

_DIGITS = 12
"""Improvements that agree in so many digits are equal."""


@dataclass(frozen=True)
class Prospect:
    """A candidate for a stronger rung: its figures as they are, as corrected, and what it may gain."""

    candidate: Evaluation
    values: tuple[float, ...]
    corrected: tuple[float, ...]
    gain: float
    correction: Correction


def promoted_from(evidence: Evidence) -> Evidence:
    """The rung by whose figures designs are chosen for this one: tools get what was simulated."""
    return "modelled" if EVIDENCE.index(evidence) <= EVIDENCE.index("simulated") else "simulated"


def promote(
    candidates: Sequence[Evaluation],
    evidence: Evidence,
    best: int,
    history: Sequence[Pair] = (),
    *,
    model: str = "",
    weaker: Evidence = "modelled",
    known: Mapping[str, Measured] | None = None,
) -> list[Evaluation]:
    """At most `best` different designs to choose from for the rung `evidence`, the most promising first.

    `known` holds what the `weaker` rung measured, by a design's digest; the model's figures need none.
    """
    found = prospects(candidates, evidence, best, history, model=model, weaker=weaker, known=known)
    return [one.candidate for one in found]


def prospects(
    candidates: Sequence[Evaluation],
    evidence: Evidence,
    best: int,
    history: Sequence[Pair],
    *,
    model: str = "",
    weaker: Evidence = "modelled",
    known: Mapping[str, Measured] | None = None,
) -> list[Prospect]:
    """The same with what it was decided by."""
    distinct = {c.design.digest(): c for c in reversed(choosable(candidates))}
    figures = {digest: _times(c, (known or {}).get(digest)) for digest, c in distinct.items()}
    plain = {digest: c.goal.values(c.measures_at(*figures[digest])) for digest, c in distinct.items()}
    order = sorted(distinct, key=lambda digest: (plain[digest], digest))
    by_mix: dict[str, Correction] = {}
    for mix in sorted({mix_of(c) for c in distinct.values()}):
        by_mix[mix] = Correction.between(history, weaker, evidence, model, mix)
    corrections = {digest: by_mix[mix_of(c)] for digest, c in distinct.items()}
    corrected = {digest: _at(distinct[digest], figures[digest], corrections[digest].ratio) for digest in order}
    target = min((corrected[digest][0] for digest in order), default=0.0)
    made = [
        Prospect(distinct[digest], plain[digest], corrected[digest],
                 _gain(distinct[digest], figures[digest], corrections[digest], target), corrections[digest])
        for digest in order
    ]  # fmt: skip
    return _by_promise(made, best)


def _times(candidate: Evaluation, measured: Measured | None) -> tuple[int, int]:
    figures = candidate.figures
    if measured is None:
        return figures.latency, figures.interval
    times = measured.times
    return times.latency, figures.interval if times.interval is None else times.interval


def _at(candidate: Evaluation, times: tuple[int, int], ratio: float) -> tuple[float, ...]:
    latency, interval = times
    return candidate.goal.values(candidate.measures_at(round(latency * ratio), round(interval * ratio)))


def _gain(candidate: Evaluation, times: tuple[int, int], correction: Correction, target: float) -> float:
    """Expected improvement of the first objective on the best corrected one, as a share of it."""
    if target <= 0:
        return 0.0
    values = [_at(candidate, times, ratio)[0] for ratio in correction.ratios]
    return round(sum(max(0.0, target - value) for value in values) / (len(values) * target), _DIGITS)


def _by_promise(ranked: Sequence[Prospect], best: int) -> list[Prospect]:
    """The first, then the largest gain, then the best corrected figures; of equals, the least like those before."""
    taken, left = list(ranked[:1]), list(ranked[1:])
    while left and len(taken) < best:
        promise = min((-one.gain, one.corrected) for one in left)
        equal = [one for one in left if (-one.gain, one.corrected) == promise]
        one = max(equal, key=lambda e: min(_difference(e, t) for t in taken))  # of equals the first
        left.remove(one)
        taken.append(one)
    return taken[:best]


def _difference(one: Prospect, other: Prospect) -> int:
    """In how many parameters two designs differ."""
    mine, others = one.candidate.params, other.candidate.params
    return sum(mine.get(name) != others.get(name) for name in {*mine, *others})
