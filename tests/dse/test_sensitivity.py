"""Why a design is what it is: the figures behind each sentence, and a picture that browsers can read."""

from __future__ import annotations

import random
from dataclasses import replace
from math import log2
from xml.etree import ElementTree

import pytest

from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.explaining.picture import sensitivity_svg
from penstock.dse.explaining.sensitivity import (
    ENOUGH_TRIALS,
    FULL,
    ExplainedTrial,
    explain,
    importances_of,
    needed_trials,
)
from penstock.dse.search.explore import explore
from tests.compiler.designs import Dense, build_network


@pytest.fixture(scope="module")
def evaluator() -> Evaluator:
    program = build_network("int8", None, 32, (Dense(64, False, True), Dense(16, False, False)), seed=3)
    board = load_platform("ecp5-25k")
    return Evaluator(program, board, board.clock_mhz)


@pytest.fixture(scope="module")
def tried(evaluator: Evaluator) -> list[Evaluation]:
    return [trial.evaluation for trial in explore(evaluator, 24, seed=1).tried]


def points(tried: list[Evaluation]) -> list[ExplainedTrial]:
    return [ExplainedTrial(one.params, one.measures) for one in tried]


def fastest(tried: list[Evaluation]) -> Evaluation:
    return min((one for one in tried if one.feasible), key=lambda one: one.values)


def test_each_neighbour_is_the_design_one_step_away(evaluator: Evaluator, tried: list[Evaluation]) -> None:
    chosen = fastest(tried)
    found = explain(evaluator, chosen, points(tried))
    assert len({(n.parameter, n.other) for n in found.neighbours}) == len(found.neighbours) > 4
    for one in found.neighbours:
        model = evaluator.evaluate({**chosen.params, one.parameter: one.other})
        assert (one.latency, one.feasible) == (model.figures.latency, model.feasible)
        assert one.objective == model.figures.latency / chosen.figures.latency
        assert one.same == (model.design.digest() == chosen.design.digest())
        values = evaluator.space.choices[one.parameter]
        if isinstance(one.value, int) and not isinstance(one.value, bool):
            assert abs(values.index(one.value) - values.index(one.other)) == 1


def test_parameters_without_meaning_have_no_neighbours(evaluator: Evaluator, tried: list[Evaluation]) -> None:
    for allocation in evaluator.space.choices["allocation"]:
        chosen = evaluator.evaluate({**evaluator.space.default_params(), "allocation": allocation})
        named = {n.parameter for n in explain(evaluator, chosen, []).neighbours}
        unconditional = {name for name in evaluator.space.choices if name not in evaluator.space.conditions}
        assert unconditional <= named
        inactive = {
            name for name, needs in evaluator.space.conditions.items() if allocation not in needs.get("allocation", ())
        }  # fmt: skip
        assert not named & inactive


def test_the_sentences_name_what_the_figures_show(evaluator: Evaluator, tried: list[Evaluation]) -> None:
    chosen = fastest(tried)
    pace, *rest = explain(evaluator, chosen, points(tried)).sentences
    assert pace.startswith(f"{chosen.figures.bottleneck} sets the pace")
    text = " ".join(rest)
    share = chosen.shares[chosen.binding_resource]
    word = f"{chosen.binding_resource} binds: {share:.0%}" if share >= FULL else f"is {chosen.binding_resource} with"
    assert word in text
    assert "Half the cycles would take" in text or "takes half the cycles" in text
    enough = len(tried) >= needed_trials(points(tried))
    assert (f"among {len(tried)} trials" if enough else f"{len(tried)} trials are too few") in text
    lanes, tile = (evaluator.space.choices[name][-1] for name in ("overall_unroll_size", "default_tile_size"))
    too_large = evaluator.evaluate({**chosen.params, "overall_unroll_size": lanes, "default_tile_size": tile,
                                    "allocation": "slowest-first"})  # fmt: skip
    assert not too_large.feasible
    assert "It does not fit" in " ".join(explain(evaluator, too_large, []).sentences)
    assert "0 trials are too few" in " ".join(explain(evaluator, chosen, []).sentences)


def test_equal_inputs_are_explained_equally(evaluator: Evaluator, tried: list[Evaluation]) -> None:
    chosen = fastest(tried)
    assert explain(evaluator, chosen, points(tried)) == explain(evaluator, chosen, points(tried))


def test_what_a_figure_depends_on_is_found() -> None:
    drawn = random.Random(4)
    some = [{"a": drawn.choice((1, 2, 4, 8)), "b": drawn.choice("xyz"), "c": drawn.random() < 0.5} for _ in range(400)]
    found = importances_of([ExplainedTrial(p, {"f": 100.0 / p["a"] * (1.1 if p["c"] else 1.0)}) for p in some], "f")
    assert [one.parameter for one in found] == ["a", "c", "b"]
    assert found[0].share > 0.97
    assert 0 < found[1].share < 0.02
    assert found[2].share < 0.01
    twins = importances_of([ExplainedTrial({**p, "also": p["a"]}, {"f": 100.0 / p["a"]}) for p in some], "f")
    assert [(one.parameter, round(one.share, 2)) for one in twins[:2]] == [("a", 1.0), ("also", 0.0)]
    assert sum(one.share for one in twins) <= 1
    constant = importances_of([ExplainedTrial(p, {"f": 5.0}) for p in some], "f")
    assert {one.share for one in constant} == {0.0}
    assert importances_of([ExplainedTrial(p, {"f": 1.0}) for p in some[: ENOUGH_TRIALS - 1]], "f") == ()


def test_the_picture_is_a_picture(evaluator: Evaluator, tried: list[Evaluation]) -> None:
    found = explain(evaluator, fastest(tried), points(tried))
    picture = sensitivity_svg(found)
    root = ElementTree.fromstring(picture)
    assert root.tag.endswith("svg")
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")]
    most = max((n for n in found.neighbours if n.objective), key=lambda n: abs(log2(n.objective or 1)))
    assert any(most.parameter in text for text in texts)
    nothing = sensitivity_svg(replace(found, neighbours=(), importances=()))
    assert ElementTree.fromstring(nothing).tag.endswith("svg")
