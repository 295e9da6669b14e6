"""Ranks the best designs of a search by what a rung says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.waiting import held_as_needed, held_between, much_between
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


_NEARLY_AS_GOOD, _LESS = 1 + DEFAULT_GAP / 100, 0.85
"""As near to the best as a search may end to its bound; what part of the bits may be left for that."""
BLOCK_BITS = 18 * 1024
"""Of one block RAM: less is not worth any time."""


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
    the end. Where the best one's need much, another one with less is taken that is nearly as good."""
    order = sorted(found, key=_place)
    equals = Counter(map(_place, order))

    @cache
    def needs(place: int) -> int:
        return held_between(evaluator, order[place].candidate, held_as_needed)

    def waiting(place: int) -> int:
        alone = order[place].measured is None or equals[_place(order[place])] == 1
        return 0 if alone else needs(place)

    places = sorted(range(len(order)), key=lambda place: (_place(order[place]), waiting(place)))
    if lean := _leaner(evaluator, order, places, needs):
        places = [*lean, *(place for place in places if place not in lean)]
    return [order[place] for place in places]


def better_than(taken: Ranked, ranked: Sequence[Ranked]) -> list[tuple[Ranked, float]]:
    """Measured designs that are better by the goal's objectives, and how many percent more of the first one `taken`
    has."""
    mine = _place(taken)
    better = [one for one in ranked if one.measured is not None and _place(one) < mine]
    return [(one, 100 * (mine[0] / _place(one)[0] - 1)) for one in better if _place(one)[0]]


def _leaner(
    evaluator: Evaluator, order: Sequence[Ranked], places: Sequence[int], needs: Callable[[int], int]
) -> list[int]:
    """Of designs that are nearly as good as the best one those that need less, where it needs much."""
    first, *others = places or [0]
    if not others or order[first].measured is None:
        return []
    near = [place for place in others if _is_near(order[place], order[first])]
    if not near or not holds_much(evaluator, lambda: needs(first)):
        return []
    return [place for place in near if holds_less(needs(place), needs(first))][:1]


def _is_near(one: Ranked, best: Ranked) -> bool:
    return one.measured is not None and _place(one)[0] <= _place(best)[0] * _NEARLY_AS_GOOD


def holds_much(evaluator: Evaluator, bits: Callable[[], int]) -> bool:
    """Whether what FIFOs hold is worth another design, if one is nearly as good."""
    much = max(much_between(evaluator.space.graph), BLOCK_BITS)
    return not evaluator.goal.weighs_fifos and much < inf and bits() > much


def holds_less(bits: int, than: int) -> bool:
    return bits <= min(_LESS * than, than - BLOCK_BITS)


def rivals(taken: Ranked, others: Sequence[Ranked]) -> list[Ranked]:
    """Those of others that are nearly as good, or better."""
    return [one for one in others if one is not taken and _is_near(one, taken)]


def _place(ranked: Ranked) -> tuple[float, ...]:
    if ranked.measured is None:
        return (float("inf"),)
    one, found = ranked.candidate, ranked.measured.times
    interval = one.figures.interval if found.interval is None else found.interval
    return one.goal.values(one.measures_at(found.latency, interval))
