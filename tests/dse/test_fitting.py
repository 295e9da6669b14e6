"""How many lanes a design gets that lacks memories: what these take follows lanes by no rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.fitting import fitted
from penstock.dse.evaluation.routing import RoutingUse
from penstock.dse.space.fitted import Allowance
from tests.compiler.designs import Dense, build_network

EVALUATOR = Evaluator.create(build_network("int8", 8, 16, (Dense(8, False, False),), seed=1), "xcu280")
LIMITS = EVALUATOR.may_use


def model(used: Callable[[Allowance], Resources]) -> Callable[[Allowance], Evaluation]:
    """Designs that take twice as long with half the DSPs."""
    plain = EVALUATOR.assume(EVALUATOR.space.fitted_setting())

    def of(allowance: Allowance) -> Evaluation:
        cycles = 10**9 // max(1, allowance.whole.dsp)
        figures = replace(plain.figures, latency=cycles, interval=cycles)
        return EVALUATOR.counted(replace(plain, figures=figures), used(allowance))

    return of


def test_where_few_lanes_take_more_memories_than_more_the_most_that_fit_are_found() -> None:
    def used(allowance: Allowance) -> Resources:
        part = allowance.whole.dsp / LIMITS.dsp
        fits = 0.2 < part < 0.58
        return Resources(lut=1000, dsp=allowance.whole.dsp, bram18=LIMITS.bram18 + (0 if fits else 1))

    found = fitted(model(used), LIMITS, 100, mixed=False)
    assert found.feasible
    assert 0.55 < found.figures.resources.dsp / LIMITS.dsp < 0.58


def test_memories_are_made_to_fit_where_luts_were_what_was_short_until_then() -> None:
    """Tries that left operators fewer LUTs were used up, and the design was given up as it was."""
    asked = list[Allowance]()

    def used(allowance: Allowance) -> Resources:
        asked.append(allowance)
        lut = LIMITS.lut * 13 // 10 if len(asked) < 6 else LIMITS.lut // 2
        return Resources(lut=lut, dsp=allowance.whole.dsp, bram18=LIMITS.bram18 + (100 if len(asked) <= 6 else 0))

    assert fitted(model(used), LIMITS, 100, mixed=False).feasible


def test_a_kernel_that_stays_too_large_to_be_routed_has_all_take_less() -> None:
    """One that walks along with another is no smaller where each kernel may take less."""
    asked = list[Allowance]()
    plain = model(lambda _: Resources(lut=1000 + len(asked)))

    def crowded(allowance: Allowance) -> Evaluation:
        asked.append(allowance)
        routes = allowance.whole.lut < LIMITS.lut * 0.85
        return replace(plain(allowance), routing=RoutingUse(0.9 if routes else 1.1, "a pipeline"))

    assert fitted(crowded, LIMITS, 100, mixed=False).feasible
    assert asked[1].one is not None, "first each kernel takes less"
    assert asked[1].whole.lut == LIMITS.lut
