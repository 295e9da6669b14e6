"""Which designs go up to a stronger rung, by recorded errors: the best modelled one always, and nothing by chance."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.evidence import EVIDENCE, RUNGS
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs import WIDER, Bench, measure_all, shortlist
from penstock.dse.rungs.error import ENOUGH, Correction, error_of, errors_of
from penstock.dse.rungs.history import FolderHistory, Pair, mix_of, model_of, pairs_of
from penstock.dse.rungs.promotion import promote, promoted_from, prospects
from penstock.profiling.store import FolderProfiles
from tests.compiler.designs import Dense, build_network

BASE = Pair("m", "d", "modelled", "csynth", "f", "II = 1", 100.0, 100.0)


@cache
def evaluated() -> tuple[Evaluator, tuple[Evaluation, ...]]:
    program = build_network("int8", None, 16, (Dense(16, False, True), Dense(16, False, False)), seed=3)
    board = load_platform("u55c")
    evaluator = Evaluator(program, board, board.clock_mhz)
    settings = [{"overall_unroll_size": size, "default_tile_size": tile} for size in (8, 16, 64) for tile in (4, 16)]
    return evaluator, tuple(evaluator.evaluate(params) for params in settings)


@st.composite
def candidates(draw: st.DrawFn) -> list[Evaluation]:
    """Designs with drawn times; some are equal, some are paced by memory."""
    found: list[Evaluation] = []
    for index in range(draw(st.integers(1, 12))):
        base = draw(st.sampled_from(evaluated()[1]))
        latency = draw(st.integers(50, 150))
        tasks = base.figures.tasks
        if draw(st.booleans()):
            tasks = tuple(replace(t, waits_for_memory=True) for t in tasks)
        figures = replace(base.figures, latency=latency, interval=latency, tasks=tasks)
        design = base.design.with_fifo_depths({**base.design.fifo_depths, f"f{index}": 2})
        found.append(replace(base, figures=figures, design=design))
    return found


ratios = st.lists(st.floats(0.25, 4.0), max_size=30)


def history_of(found: list[float], mix: str = "II = 1") -> list[Pair]:
    return [replace(BASE, design=str(i), stronger_cycles=100.0 * r, mix=mix) for i, r in enumerate(found)]


def digests(chosen: list[Evaluation]) -> list[str]:
    return [c.design.digest() for c in chosen]


@settings(max_examples=40)
@given(candidates(), ratios, ratios, st.integers(1, 8))
def test_the_best_modelled_design_always_goes_up(
    some: list[Evaluation], pipeline: list[float], memory: list[float], best: int
) -> None:
    pairs = history_of(pipeline) + history_of(memory, "external memory")
    chosen = promote(some, "csynth", best, pairs)
    assert chosen[0].values == min(c.values for c in some)
    assert len(chosen) == min(best, len(some))
    assert len(set(digests(chosen))) == len(chosen)


@settings(max_examples=40)
@given(candidates(), st.integers(1, 8), st.integers(0, 20))
def test_without_error_or_without_history_it_is_plain_ranking(some: list[Evaluation], best: int, count: int) -> None:
    chosen = promote(some, "csynth", best, history_of([1.0] * count))
    assert [c.values for c in chosen] == sorted(c.values for c in some)[:best]
    few = promote(some, "csynth", best, history_of([3.0, 0.3, 2.0, 0.5][: ENOUGH - 1]))
    assert [c.values for c in few] == sorted(c.values for c in some)[:best]


@settings(max_examples=40)
@given(candidates(), ratios, st.randoms(use_true_random=False))
def test_neither_order_nor_chance_matters(some: list[Evaluation], found: list[float], random: Random) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    pairs = history_of(found)
    assert digests(promote(some, "csynth", 5, pairs)) == digests(promote(shuffled, "csynth", 5, pairs))


def slower_of_memory() -> list[Evaluation]:
    """Three by memory, the fastest as modelled, and three by their pipelines, a little slower."""
    found: list[Evaluation] = []
    for index, base in enumerate(evaluated()[1]):
        memory = index < 3
        tasks = tuple(replace(t, ii=1, waits_for_memory=memory, layer="l") for t in base.figures.tasks)
        latency = (100 if memory else 110) + index
        found.append(replace(base, figures=replace(base.figures, latency=latency, interval=latency, tasks=tasks)))
    return found


def test_a_recorded_error_of_one_kind_of_design_lets_another_kind_go_first() -> None:
    some = slower_of_memory()
    assert [mix_of(c) for c in some] == ["external memory"] * 3 + ["II = 1"] * 3
    pairs = history_of([1.0] * 6) + history_of([1.5] * 6, "external memory")
    plain, corrected = promote(some, "csynth", 4), promote(some, "csynth", 4, pairs)
    assert [some.index(c) for c in plain] == [0, 1, 2, 3]
    assert [some.index(c) for c in corrected] == [0, 3, 4, 5]


def test_a_wide_error_makes_a_design_worth_a_look() -> None:
    """By their medians both kinds are right; one of them may be far better than it looks."""
    some = slower_of_memory()
    pairs = history_of([0.5, 0.6, 1.0, 1.0, 1.4, 1.5]) + history_of([1.0] * 6, "external memory")
    found = prospects(some, "csynth", 6, pairs)
    assert [some.index(p.candidate) for p in found] == [0, 3, 4, 5, 1, 2]
    assert found[1].gain > found[2].gain > 0 == found[0].gain


def test_of_equals_the_one_least_like_the_others_goes_first() -> None:
    first, near, far = (replace(c, figures=evaluated()[1][0].figures) for c in evaluated()[1][:3])
    first, near, far = (
        replace(c, params={"a": a, "b": b}, shares=first.shares, cost=first.cost)
        for c, a, b in ((first, 1, 1), (near, 1, 2), (far, 2, 2))
    )
    chosen = promote([first, near, far], "csynth", 3)
    top = chosen[0].params
    differences = [sum(c.params[name] != top[name] for name in top) for c in chosen[1:]]
    assert differences == sorted(differences, reverse=True)


def test_every_rung_gets_its_designs_from_a_weaker_one() -> None:
    for evidence in RUNGS[1:]:
        assert EVIDENCE.index(promoted_from(evidence)) < EVIDENCE.index(evidence)


def test_a_correction_says_what_it_rests_on() -> None:
    pairs = history_of([1.2] * ENOUGH)

    def found(model: str, mix: str, step: str = "csynth") -> Correction:
        return Correction.between(pairs, "modelled", step, model, mix)  # type: ignore[arg-type]

    assert "the same model" in found("m", "II = 1").basis
    assert "all models" in found("other", "II = 1").basis
    assert "the family" in found("other", "external memory").basis
    assert found("other", "external memory").ratio == pytest.approx(1.2)
    assert found("m", "II = 1", "cosim") == Correction()
    assert "too few" in Correction.between(pairs[1:], "modelled", "csynth", "m", "II = 1").basis


def test_an_error_is_said_in_words() -> None:
    exact = error_of(history_of([1.0] * 3))
    assert exact.sentence == "modelled was exact against csynth (3 designs; nothing is corrected below 5)"
    off = error_of(history_of([1.25] * ENOUGH))
    assert off.typical == pytest.approx(0.2)
    assert off.sentence == (
        "modelled was off by 20.00% against csynth, at worst by 20.00%, in the middle 25.00% too low (5 designs)"
    )
    both = errors_of([*history_of([1.0]), replace(BASE, model="n", stronger="cosim")])
    assert [(e.stronger, e.designs) for e in both] == [("cosim", 1), ("csynth", 1)]
    assert [e.stronger for e in errors_of([*history_of([1.0]), replace(BASE, model="n", stronger="cosim")], "n")] == [
        "cosim"
    ]


@pytest.fixture
def history(tmp_path: Path) -> FolderHistory:
    return FolderHistory(tmp_path)


def test_a_history_keeps_the_newest_of_each_design(history: FolderHistory) -> None:
    assert list(history.pairs("f")) == []
    history.add(history_of([1.0, 2.0]))
    history.add([replace(BASE, design="0", stronger_cycles=300.0), replace(BASE, family="g")])
    assert [(p.design, p.ratio) for p in history.pairs("f")] == [("1", 2.0), ("0", 3.0)]
    assert [p.family for p in history.pairs("g")] == ["g"]


def test_pairs_connect_each_rung_with_the_next_that_was_measured() -> None:
    evaluator, (one, *_) = evaluated()
    pairs = pairs_of(evaluator, one, {"modelled": 10, "cosim": 12, "simulated": 11})
    assert [(p.weaker, p.stronger, p.ratio) for p in pairs] == [
        ("modelled", "simulated", 1.1), ("simulated", "cosim", 12 / 11),
    ]  # fmt: skip
    assert {p.family for p in pairs} == {"vitis-ultrascale-plus"}
    assert {p.model for p in pairs} == {model_of(evaluator)}


def test_a_rung_of_tools_looks_at_what_the_simulator_prefers_and_the_best_modelled_one(
    history: FolderHistory, tmp_path: Path
) -> None:
    evaluator, some = evaluated()
    said: list[str] = []
    bench = Bench(profiles=FolderProfiles(tmp_path / "profiles"), history=history, progress=said.append)
    feasible = [c for c in some if c.feasible]
    distinct = {c.design.digest() for c in feasible}
    chosen = shortlist(evaluator, some, "csynth", bench, best=2)
    assert len(chosen) == 2
    assert chosen[0].values == min(c.values for c in feasible)
    assert said == [f"simulating {min(len(distinct), 2 * WIDER)} designs"]
    pairs = history.pairs(evaluator.platform.operators)
    assert len(pairs) == min(len(distinct), 2 * WIDER)
    assert {(p.weaker, p.stronger) for p in pairs} == {("modelled", "simulated")}
    assert shortlist(evaluator, some[:1], "csynth", bench, best=2) == [some[0]], "there is nothing to decide"
    assert len(said) == 1


def test_what_is_measured_is_recorded_against_the_weaker_rungs(history: FolderHistory, tmp_path: Path) -> None:
    evaluator, (one, *_) = evaluated()
    bench = Bench(profiles=FolderProfiles(tmp_path / "profiles"), history=history)
    [found] = measure_all(evaluator, [one], "simulated", bench)
    assert found.measured is not None
    [pair] = bench.history.pairs(evaluator.platform.operators)
    assert (pair.weaker_cycles, pair.stronger_cycles) == (one.figures.latency, found.measured.latency)
    measure_all(evaluator, [one], "modelled", bench)
    assert list(bench.history.pairs(evaluator.platform.operators)) == [pair], "the model says nothing new"
