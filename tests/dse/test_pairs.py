"""Two products a DSP: what a search makes of it, and that what it counts beforehand is what the design takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from penstock.compiler.analysis.pairs import PAIRED, PAIRINGS
from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.fitting import fitted
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.lanes.binding import paired_dims, shared_product
from penstock.dse.search.explore import explore
from penstock.dse.space.fitted import Allowance
from penstock.dse.space.tiling import TilingOptions
from penstock.profiling.model import DesignFigures
from tests.compiler.designs import Dense, build_network

PROGRAM = build_network("int8", 8, 16, (Dense(16, False, False), Dense(16, False, False)), seed=1)


def evaluator(dsp: int, lut: float = 0.7) -> Evaluator:
    free = Evaluator.create(PROGRAM, "xcu280", options=TilingOptions())
    return replace(free, goal=Goal.of(["latency"], [f"dsp<={dsp}", f"lut<={lut}"]).on(free.platform))


def test_a_search_that_is_short_of_dsps_pairs_products() -> None:
    """Where LUTs are short as well: products of these need no DSP at all."""
    judged = evaluator(32, lut=0.006)
    kinds = [explore(judged, trials=1, fixed=[f"multipliers={kind}"]).best.evaluation for kind in ("dsp", "fabric")]
    found = explore(judged, trials=1).best.evaluation
    assert found.feasible
    assert found.figures.latency < min(one.figures.latency for one in kinds if one.feasible)
    assert any(kernel.bindings.get("arith.muli") in PAIRINGS for kernel in found.design.kernels.values())


@pytest.mark.parametrize("dsp", [2, 9, 32, 75])
def test_pairs_that_are_counted_before_are_those_of_the_design(dsp: int) -> None:
    judged = evaluator(dsp)
    found = judged.evaluate({**judged.space.fitted_setting(), "multipliers": PAIRED})
    counted = 0
    for op in judged.space.graph.operations:
        if op.reductions:
            unroll = found.design.kernels[op.layer].unroll
            pairs = shared_product(op, unroll)
            counted += found.design.kernels[op.layer].lanes if pairs is None else pairs
    scaling = found.figures.resources.dsp - counted
    assert found.feasible
    assert 0 <= scaling <= 8, "what is left is multiplied to requantise"


def test_rows_share_weights_and_outputs_share_inputs() -> None:
    product = next(op for op in evaluator(8).space.graph.operations if op.reductions)
    assert paired_dims(product) == tuple(d for d in range(3) if d not in product.reductions)
    along = [2 if d in product.reductions else 1 for d in range(3)]
    assert shared_product(product, along) is None


@dataclass(frozen=True)
class Found:
    figures: DesignFigures
    feasible: bool
    fullest_die: float | None = None
    routing: None = None

    @property
    def values(self) -> tuple[float, ...]:
        return (self.figures.latency,)


def test_operators_that_take_little_of_what_they_are_allowed_get_fewer_all_the_same() -> None:
    """Lanes are 10 LUTs beforehand and 40 in the design, and come in powers of two: 512 do not fit, 256 do."""
    limits, asked = Resources(lut=20_000, dsp=4096), list[Allowance]()

    def model(allowance: Allowance) -> Found:
        asked.append(allowance)
        lanes = 1 << (min(allowance.whole.lut // 10, 1023).bit_length() - 1)
        used = Resources(lut=5000 + 40 * lanes, dsp=lanes)
        figures = DesignFigures(4096 // lanes, 4096 // lanes, 0, used, "", (), (), exact_times=True)
        return Found(figures, used.lut <= limits.lut)

    found = fitted(model, limits, 100, mixed=False)
    assert found.feasible
    assert found.figures.resources.dsp == 256
    assert len(asked) <= 12


def test_of_designs_that_fit_the_fastest_is_taken_not_the_largest() -> None:
    """Of 64 lanes and 128, which both fit, the latter take ten times as long as they should."""
    limits = Resources(lut=20_000, dsp=4096)

    def model(allowance: Allowance) -> Found:
        lanes = 1 << (min(allowance.whole.lut // 10, 1023).bit_length() - 1)
        cycles = 4096 // lanes * (10 if lanes == 128 else 1)
        used = Resources(lut=5000 + 100 * lanes, dsp=lanes)
        return Found(DesignFigures(cycles, cycles, 0, used, "", (), (), exact_times=True), used.lut <= limits.lut)

    found = fitted(model, limits, 100, mixed=False)
    assert found.feasible
    assert found.figures.resources.dsp == 64


def test_memories_that_lanes_take_with_them_are_judged_when_the_lanes_fit() -> None:
    """At first LUTs are short, and block RAM even more, which may be UltraRAM: fewer lanes, and not the fewest."""
    limits, asked = Resources(lut=20_000, dsp=4096, bram18=100, uram=100), list[Allowance]()

    def model(allowance: Allowance) -> Found:
        asked.append(allowance)
        lanes = max(1, min(allowance.whole.lut // 10, 1023))
        blocks = lanes // 3  # of block RAM; of UltraRAM, as many bits, once LUTs are no trouble
        lut = 5000 + 30 * lanes
        fits = lut <= limits.lut
        used = Resources(lut=lut, dsp=lanes, bram18=0 if fits else blocks, uram=blocks // 16 if fits else 0)
        return Found(DesignFigures(4096 // lanes, 1, 0, used, "", (), (), exact_times=True), used.lut <= limits.lut)

    found = fitted(model, limits, 100, mixed=False)
    assert found.feasible
    assert found.figures.resources.dsp > 400, "of 500 that fit"


def test_fewer_lanes_that_take_more_do_not_hide_those_that_fit() -> None:
    """36 lanes have whole windows, 48 and 24 parts of them, with all that puts these together."""
    limits, luts = Resources(lut=20_000, dsp=50), {48: 30_000, 36: 15_000, 24: 28_000, 12: 9_000, 6: 8_000, 1: 7_000}

    def model(allowance: Allowance) -> Found:
        lanes = max(n for n in luts if n == 1 or n <= min(allowance.whole.lut // 100, allowance.whole.dsp))
        used = Resources(lut=luts[lanes], dsp=lanes)
        return Found(DesignFigures(4096 // lanes, 1, 0, used, "", (), (), exact_times=True), used.lut <= limits.lut)

    found = fitted(model, limits, 100, mixed=False)
    assert found.feasible
    assert found.figures.resources.dsp == 36


def test_lanes_of_dsps_get_fewer_where_it_is_luts_around_them_that_are_short() -> None:
    """However few LUTs operators are allowed, they take none: all DSPs were lanes, whose surroundings did not fit."""
    limits = Resources(lut=20_000, dsp=1000)

    def model(allowance: Allowance) -> Found:
        lanes = max(1, min(allowance.whole.dsp, 1023))
        used = Resources(lut=5000 + 30 * lanes, dsp=lanes)
        return Found(DesignFigures(4096 // lanes, 1, 0, used, "", (), (), exact_times=True), used.lut <= limits.lut)

    found = fitted(model, limits, 100, mixed=False)
    assert found.feasible
    assert found.figures.resources.dsp > 400, "of 500 that fit"


def test_what_stands_around_mixed_operators_does_not_take_all_lanes() -> None:
    """The surroundings alone are twice the limit with all lanes, so that nothing would be left of what is taken off."""
    limits = Resources(lut=20_000, dsp=4096)

    def model(allowance: Allowance) -> Found:
        lanes = max(1, min(allowance.whole.lut // 10, 1023))
        used = Resources(lut=40 * lanes + 10, dsp=lanes)
        return Found(DesignFigures(4096 // lanes, 1, 0, used, "", (), (), exact_times=True), used.lut <= limits.lut)

    found = fitted(model, limits, 100, mixed=True)
    assert found.feasible
    assert found.figures.resources.dsp > 300, "of 499 that fit"
