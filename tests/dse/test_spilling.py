"""Products for which no DSP is left: a small kernel's are of LUTs, and all kernels keep a pace twice as fast."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.compiler.analysis.pairs import CHAINED, PAIRED
from penstock.compiler.platforms import Resources
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.fitting import fitted, may_fit_otherwise
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.lanes.spilling import FABRIC, Spillable, may_be_short, spilled
from penstock.dse.space.fitted import Allowance
from penstock.profiling.model import ChannelFigures, DesignFigures
from tests.compiler.designs import Dense, build_network

PROGRAM = build_network(
    "int8", 8, 16, (Dense(64, False, False), Dense(64, False, False), Dense(8, False, False)), seed=1
)
LIMITS = Resources(lut=100_000, ff=200_000, dsp=100, bram18=100, uram=10)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=8), st.integers(1, 200))
def test_what_is_spilled_saves_enough_and_nothing_of_it_in_vain(saved: list[int], short: int) -> None:
    kernels = {f"k{n}": Spillable(f"k{n}", dsp) for n, dsp in enumerate(saved)}
    found = spilled(short, list(kernels.values()))
    if sum(saved) < short:
        assert found is None
        return
    assert found is not None
    assert sum(kernels[layer].saved for layer in found) >= short
    if any(dsp >= short for dsp in saved):
        assert [kernels[layer].saved for layer in found] == [min(dsp for dsp in saved if dsp >= short)]


def test_nothing_is_spilled_where_nothing_is_short() -> None:
    assert spilled(0, [Spillable("k", 4)]) == frozenset()
    assert may_be_short(636) == 31


def evaluator(dsp: int) -> Evaluator:
    free = Evaluator.create(PROGRAM, "xcu280")
    return Evaluator.create(PROGRAM, "xcu280", goal=Goal.of(["latency"], [f"dsp<={dsp}"]).on(free.platform))


def kinds_of(found: Evaluation) -> list[str | None]:
    return [found.design.kernels[layer].bindings.get("arith.muli") for layer in ("fc0", "fc1", "fc2")]


@pytest.mark.parametrize("kind", [PAIRED, CHAINED])
def test_the_smallest_kernel_does_without_dsps_where_a_few_are_missing(kind: str) -> None:
    """Products of 16, 64 and 8 lanes are 44 pairs; two lanes that scale sums are counted with a DSP each."""
    few, enough = (evaluator(dsp) for dsp in (42, 46))
    setting = {**few.space.fitted_setting(), "multipliers": kind}
    found, wanted = few.evaluate(setting), enough.evaluate(setting)
    assert kinds_of(found) == [kind, kind, FABRIC]
    assert kinds_of(wanted) == [kind, kind, kind]
    assert [k.unroll for k in found.design.kernels.values()] == [k.unroll for k in wanted.design.kernels.values()]
    assert found.feasible
    assert found.figures.resources.dsp == (16 + 64) / 2
    assert wanted.figures.resources.dsp == (16 + 64 + 8) / 2
    assert found.figures.interval <= wanted.figures.interval


def test_pairs_are_not_spilled_where_many_are_missing() -> None:
    found = evaluator(39).evaluate({**evaluator(39).space.fitted_setting(), "multipliers": PAIRED})
    assert kinds_of(found) == [PAIRED, PAIRED, PAIRED]


def test_a_spilled_design_that_does_not_fit_changes_nothing() -> None:
    judged, asked = evaluator(42), list[Allowance]()
    setting = {**judged.space.fitted_setting(), "multipliers": PAIRED}
    plain = judged.evaluate_design(judged.space.fitted(setting, Allowance(judged.may_use)))
    too_large = judged.counted(plain, Resources(lut=10**8))

    def model(allowance: Allowance) -> Evaluation:
        asked.append(allowance)
        return too_large if allowance.spilled else plain

    assert fitted(model, judged.may_use, 100, mixed=False, spills=True) is plain
    assert [one.spilled for one in asked] == [False, True]


CHANNEL = ChannelFigures("c", "stream", "a", "b", 2, 8, 1, 1, 1, Resources(), None, 0)
FEW, MANY = 16, 17


@pytest.mark.parametrize(
    ("channels", "lut", "in_memories", "may"),
    [
        (MANY, 102_000, 0, True),
        (MANY, 108_000, 15_999, False),
        (MANY, 108_000, 16_000, True),
        (MANY, 115_000, 30_000, True),
        (MANY, 125_001, 90_000, False),
        (MANY, 99_000, 0, False),
        (FEW, 108_000, 7_999, False),
        (FEW, 108_000, 8_000, True),
        (FEW, 125_000, 25_000, True),
        (FEW, 125_001, 90_000, False),
        (FEW, 99_000, 0, False),
    ],
)
def test_luts_of_memories_may_be_saved_in_small_designs_all_and_in_large_ones_half(
    channels: int, lut: int, in_memories: int, may: bool
) -> None:
    figures = DesignFigures(1, 1, 0, Resources(lut=lut), "", (), (CHANNEL,) * channels, exact_times=True)
    assert may_fit_otherwise(figures, LIMITS, lambda: in_memories) == may
