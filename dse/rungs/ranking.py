"""Ranks the best designs of a search by what a rung says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compiler.errors import PenstockError
from dse.bench import Bench, Measured
from dse.evaluate import Evaluation, Evaluator
from dse.rungs.kinds import RUNGS, build_together
from profiling.evidence import Evidence

BEST = 8
"""How many of the best modelled designs a stronger rung looks at."""


@dataclass(frozen=True)
class Ranked:
    """A candidate with what a rung says of it, or why the rung could not say anything."""

    candidate: Evaluation
    measured: Measured | None
    failure: str = ""
    error: PenstockError | None = None


def rank(
    evaluator: Evaluator,
    candidates: Sequence[Evaluation],
    evidence: Evidence,
    bench: Bench | None = None,
    *,
    best: int = BEST,
) -> list[Ranked]:
    """The best designs in the rung's order by the goal's objectives, those that it could not measure at the end."""
    bench = bench or Bench()
    order = sorted((c for c in candidates if c.feasible), key=lambda c: c.values)
    distinct = list({c.design.digest(): c for c in reversed(order)}.values())[::-1][:best]
    if evidence == "open-rtl":
        build_together(evaluator, distinct, bench)
    found: list[Ranked] = []
    for candidate in distinct:
        try:
            found.append(Ranked(candidate, RUNGS[evidence](evaluator, candidate, bench)))
        except PenstockError as error:
            found.append(Ranked(candidate, None, error.one_line(), error))
    return in_order(found)


def in_order(found: Sequence[Ranked]) -> list[Ranked]:
    """Measured designs, the best first, those that could not be measured at the end."""

    def place(ranked: Ranked) -> tuple[float, ...]:
        if ranked.measured is None:
            return (float("inf"),)
        one, found = ranked.candidate, ranked.measured.times
        interval = one.figures.interval if found.interval is None else found.interval
        return one.goal.values(one.measures_at(found.latency, interval))

    return sorted(found, key=place)
