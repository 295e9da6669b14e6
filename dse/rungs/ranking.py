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


def rank(
    evaluator: Evaluator,
    candidates: Sequence[Evaluation],
    evidence: Evidence,
    bench: Bench | None = None,
    *,
    best: int = BEST,
    smallest: bool = False,
) -> list[Ranked]:
    """The best designs in the rung's order, those that it could not measure at the end.

    `smallest` ranks by the largest share of a resource first, and by latency only where that is equal.
    """
    bench = bench or Bench()
    order = sorted((c for c in candidates if c.feasible), key=lambda c: c.values[::-1] if smallest else c.values)
    distinct = list({c.design.digest(): c for c in reversed(order)}.values())[::-1][:best]
    if evidence == "open-rtl":
        build_together(evaluator, distinct, bench)
    found: list[Ranked] = []
    for candidate in distinct:
        try:
            found.append(Ranked(candidate, RUNGS[evidence](evaluator, candidate, bench)))
        except PenstockError as error:
            found.append(Ranked(candidate, None, error.one_line()))

    def place(ranked: Ranked) -> tuple[float, ...]:
        if ranked.measured is None:
            return (float("inf"),)
        share = max(ranked.candidate.shares.values())
        return (share, ranked.measured.latency) if smallest else (ranked.measured.latency, share)

    return sorted(found, key=place)
