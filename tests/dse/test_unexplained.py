"""What only explains or decorates may fail: the design, its package and its page are none the worse, and say so."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.errors import PenstockError, reason_of
from penstock.compiler.package import render
from penstock.compiler.package.decorating import Decorating
from penstock.compiler.platforms import load_platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.explaining.sensitivity import explain
from penstock.dse.rungs.history import FolderHistory, Pair
from penstock.profiling import store
from penstock.services.jobs import explanation
from penstock.services.jobs.search import find_design
from penstock.services.jobs.search_settings import SearchSettings
from tests.compiler.designs import Dense, build_network
from tests.package.hand_made import program, report


def small() -> Any:
    return build_network("int8", None, 8, (Dense(8, False, True),), seed=3)


class Breaks:
    """Fails as code fails that met what nobody foresaw."""

    def __call__(self, *_: object, **__: object) -> Any:
        raise KeyError("convert.chunk.block")


@pytest.mark.parametrize("part", ["explain", "sensitivity_svg", "errors_of", "passed_over"])
def test_a_search_ends_with_its_design_whatever_explaining_meets(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explanation, part, Breaks())
    board = load_platform("ecp5-25k")
    choice, section = find_design(
        small(), board, board.clock_mhz, None, 2, SearchSettings(), lambda _, most: None, evidence="modelled"
    )
    assert choice.finished.design.kernels
    assert section.complete == 2
    assert [("KeyError: 'convert.chunk.block' at test_unexplained.py" in one.why) for one in section.left_out] == [True]
    assert (section.why is None) == (part == "explain")
    assert explanation.in_words(section)["left_out"]


def test_comparisons_that_another_version_kept_are_left_out_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of evidence that there is no name for; those beside them count as ever."""
    monkeypatch.setattr(store, "kept_folder", lambda: tmp_path)
    board = load_platform("ecp5-25k")
    kept = Pair("m", "d", "modelled", "simulated", board.operators, "II = 1", 100.0, 110.0)
    strange: Any = "rtl-guess"
    FolderHistory().add([kept, replace(kept, stronger=strange), replace(kept, design="e", weaker=strange)])
    _, section = find_design(
        small(), board, board.clock_mhz, None, 2, SearchSettings(), lambda _, most: None, evidence="modelled"
    )
    [left] = section.left_out
    assert left.part == "how far rungs differ"
    assert left.why == (
        "2 comparisons on record are left out: of evidence 'rtl-guess', a kind that this version does not know "
        "(it knows modelled, simulated, open-rtl, csynth, cosim, implemented, board); another version kept them"
    )
    assert [(one.weaker, one.stronger, one.designs) for one in section.rung_errors] == [("modelled", "simulated", 1)]


def test_a_step_that_cannot_be_modelled_is_one_step_less(monkeypatch: pytest.MonkeyPatch) -> None:
    board = load_platform("ecp5-25k")
    evaluator = Evaluator(small(), board, board.clock_mhz)
    generator = random.Random(0)
    chosen = evaluator.evaluate({name: generator.choice(values) for name, values in evaluator.space.choices.items()})
    whole, first = Evaluator.assume, dict(chosen.params)

    def sometimes(self: Evaluator, params: Any) -> Evaluation:
        if dict(params) != first:
            raise KeyError("a fault of ours")
        return whole(self, params)

    monkeypatch.setattr(Evaluator, "assume", sometimes)
    found = explain(evaluator, chosen, [])
    assert found.neighbours
    assert all(one.failure.startswith("KeyError: 'a fault of ours' at") for one in found.neighbours)


@pytest.mark.parametrize("part", ["dataflow", "percent"])
def test_a_page_is_written_whatever_drawing_meets(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    render._environment.cache_clear()
    monkeypatch.setattr(render, part, Breaks())
    try:
        page = render.render_html(report(program()))
    finally:
        render._environment.cache_clear()
    assert "KeyError" in page
    assert page.lower().startswith("<!doctype html>")


def test_reasons_are_one_line() -> None:
    refused = PenstockError(code="x", what="too\nlarge", where="fc1", hint="use less")
    assert reason_of(refused) == "fc1: too large - use less"
    assert reason_of(ValueError("two\nlines")) == "ValueError: two lines"
    making = Decorating()
    assert making.make("a picture", lambda: 1 // 0, "nothing") == "nothing"
    assert making.make("another", lambda: 3, None) == 3
    assert [one.part for one in making.left_out] == ["a picture"]
    assert "ZeroDivisionError" in making.left_out[0].why
