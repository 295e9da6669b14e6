"""Ranks the best designs of a search by what a rung says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import held_as_needed, held_between
from penstock.dse.rungs.ahead import Ahead
from penstock.dse.rungs.history import Pair, model_of, pairs_of
from penstock.dse.rungs.inputs import FRAMES
from penstock.dse.rungs.kinds import RUNGS, TOGETHER
from penstock.dse.rungs.promotion import promote, promoted_from
from penstock.dse.rungs.rung import Bench, Measured
from penstock.dse.support.budgets import DEFAULT_GAP
from penstock.profiling.simulated import outlook_of

BEST = 8
"""How many designs a stronger rung looks at."""

WIDER = 2
"""For a rung of tools, so many times as many designs are simulated first."""

SHORT = 2_000_000
"""Events of a simulation that is made even of a design that cannot be the best, for what it says of the model."""


@dataclass(frozen=True)
class Ranked:
    """A candidate with what a rung says of it, or why the rung could not say anything."""

    candidate: Evaluation
    measured: Measured | None
    failure: str = ""
    error: PenstockError | None = None
    beaten: bool = False
    """It was not measured, since it cannot be better than one that was."""


def rank(
    evaluator: Evaluator,
    candidates: Sequence[Evaluation],
    evidence: Evidence,
    bench: Bench | None = None,
    *,
    best: int = BEST,
) -> list[Ranked]:
    """The most promising designs in the rung's order by the goal's objectives, what it could not measure at the end.

    A long simulation of a design that cannot be the best is spared.
    """
    bench = bench or Bench()
    chosen = shortlist(evaluator, candidates, evidence, bench, best=best)
    return in_order(evaluator, measure_all(evaluator, chosen, evidence, bench, contenders=True))


def rank_beaten(
    evaluator: Evaluator, ranked: Sequence[Ranked], evidence: Evidence, bench: Bench, taken: Ranked | None = None
) -> list[Ranked]:
    """The same order with those measured too that had been spared and may be better than what is `taken`; the same
    list where there are none."""
    known = [] if taken is None else [taken]
    left = [one for one in ranked if one.beaten and not _lost(evaluator, one.candidate, known)]
    if not left:
        return list(ranked)
    measured = measure_all(evaluator, [one.candidate for one in left], evidence, bench)
    return in_order(evaluator, [*(one for one in ranked if one not in left), *measured])


def shortlist(
    evaluator: Evaluator, candidates: Sequence[Evaluation], evidence: Evidence, bench: Bench, *, best: int = BEST
) -> list[Evaluation]:
    """The designs that a rung should look at: promoted from the model, over the simulator where tools are asked."""
    model, family = model_of(evaluator), evaluator.platform.operators
    if promoted_from(evidence) == "modelled":
        return promote(candidates, evidence, best, bench.history.pairs(family), model=model)
    wider = promote(candidates, "simulated", WIDER * best, bench.history.pairs(family), model=model)
    if len(wider) <= best:
        return wider  # there is nothing to decide
    bench.progress(f"simulating {len(wider)} designs")
    ranked = measure_all(evaluator, wider, "simulated", bench)
    known = {one.candidate.design.digest(): one.measured for one in ranked if one.measured is not None}
    running = [one.candidate for one in ranked if one.measured is not None]
    if not running:
        return wider[:best]  # the rung itself says why they cannot run
    history = bench.history.pairs(family)
    found = promote(running, evidence, best, history, model=model, weaker="simulated", known=known)
    return found if running[0] in found else [*found[: best - 1], running[0]]  # the best modelled one goes up


def measure_all(
    evaluator: Evaluator,
    candidates: Sequence[Evaluation],
    evidence: Evidence,
    bench: Bench,
    *,
    contenders: bool = False,
) -> list[Ranked]:
    """What a rung says of each of these designs, recorded beside what weaker rungs said of them.

    With `contenders` long simulations are made only of designs that may still be the best.
    """
    found = _measure(evaluator, candidates, evidence, bench, contenders=contenders and evidence == "simulated")
    good = [one for one in found if one.measured is not None]
    if evidence == "modelled" or not good:
        return found
    model = model_of(evaluator)
    pairs: list[Pair] = []
    earlier = {
        pair.design: pair.stronger_cycles
        for pair in bench.history.pairs(evaluator.platform.operators)
        if pair.model == model and pair.stronger == "simulated"
    }
    for one in good:
        assert one.measured is not None
        cycles: dict[Evidence, float] = {"modelled": one.candidate.figures.latency}
        if (cycles_simulated := earlier.get(one.candidate.design.digest())) is not None:
            cycles["simulated"] = cycles_simulated
        cycles[one.measured.evidence] = one.measured.times.latency
        pairs += pairs_of(evaluator, one.candidate, cycles)
    bench.history.add(pairs)
    return found


def _measure(
    evaluator: Evaluator, candidates: Sequence[Evaluation], evidence: Evidence, bench: Bench, *, contenders: bool
) -> list[Ranked]:
    if evidence in TOGETHER:
        candidates = [evaluator.proven(one) for one in candidates]
        outcomes = TOGETHER[evidence](evaluator, candidates, bench)
        return [_ranked(one, outcome) for one, outcome in zip(candidates, outcomes, strict=True)]
    found: list[Ranked] = []
    ahead = Ahead(evaluator, bench, evidence)
    for number, candidate in enumerate(candidates):
        if bench.line is not None:
            bench.line(f"{number} of {len(candidates)}")
        lost = _lost(evaluator, candidate, found) if contenders else ""
        if lost:
            found.append(Ranked(candidate, None, lost, beaten=True))
            continue
        if (said := ahead.said(candidate)) is not None:
            found.append(Ranked(said.proven, said.measured))
            continue
        rest = (one for one in candidates[number + 1 :] if not contenders or not _lost(evaluator, one, found))
        ahead.begin(next(rest, None))
        try:
            if evidence != "modelled":
                candidate = evaluator.proven(candidate)
            found.append(Ranked(candidate, RUNGS[evidence](evaluator, candidate, bench)))
        except PenstockError as error:
            found.append(_ranked(candidate, error))
    return found


def _lost(evaluator: Evaluator, candidate: Evaluation, found: Sequence[Ranked]) -> str:
    """Why a design cannot be better than the best of those that were simulated; empty where it may be, or is short."""
    places = [_place(one) for one in found if one.measured is not None]
    outlook = outlook_of(evaluator.assembler.network(candidate.design), evaluator.platform, evaluator.clock_mhz)
    if not places or outlook.events * FRAMES <= SHORT:
        return ""
    if candidate.goal.values(candidate.measures_at(outlook.least, outlook.least)) <= min(places):
        return ""
    return f"not simulated: it takes {outlook.least:,} cycles at least, which cannot be the best"


def _ranked(candidate: Evaluation, outcome: Measured | PenstockError) -> Ranked:
    if isinstance(outcome, PenstockError):
        return Ranked(candidate, None, outcome.one_line(), outcome)
    return Ranked(candidate, outcome)


def in_order(evaluator: Evaluator, found: Sequence[Ranked]) -> list[Ranked]:
    """Measured designs, the best first, of equal ones that whose FIFOs need least; those that could not be measured at
    the end."""
    equals = Counter(map(_place, found))

    def waiting(one: Ranked) -> int:
        alone = one.measured is None or equals[_place(one)] == 1
        return 0 if alone else held_between(evaluator, one.candidate, held_as_needed)

    return sorted(found, key=lambda one: (_place(one), waiting(one)))


def nearly_as_good(best: Ranked, others: Sequence[Ranked]) -> list[Ranked]:
    """As near to the best as a search may end to its bound."""
    most = _place(best)[0] * (1 + DEFAULT_GAP / 100)
    return [one for one in others if one.measured is not None and _place(one)[0] <= most]


def _place(ranked: Ranked) -> tuple[float, ...]:
    if ranked.measured is None:
        return (float("inf"),)
    one, found = ranked.candidate, ranked.measured.times
    interval = one.figures.interval if found.interval is None else found.interval
    return one.goal.values(one.measures_at(found.latency, interval))
