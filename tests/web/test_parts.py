"""The parts of the pages by themselves: numbers as people read them, axes, fronts, drawings, vendored files."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock import web
from penstock.web import text
from penstock.web.axis import fit_axis, span_axis
from penstock.web.course_view import bars_of, draw_course, falls_of, outlook
from penstock.web.event_lines import event_lines
from penstock.web.pareto import Dot, ThirdFigure, draw_pareto, pareto_front
from penstock.web.steps_view import joint_state

FOLDER = Path(web.__file__).parent
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0412, "0.0412"), (7.25, "7.25"), (128.44, "128.4"), (12345.0, "12,345"), (3.0, "3"), (0.0, "0")],
)
def test_quantities(value: float, shown: str) -> None:
    assert text.quantity(value) == shown


def test_numbers_in_words_stand_by_size() -> None:
    assert sorted(["16×32", "b2", "16×8", "4×64", "", "²"], key=text.by_size) == [
        "",
        "4×64",
        "16×8",
        "16×32",
        "b2",
        "²",
    ]


def test_what_turns_a_text_around_is_named() -> None:
    assert text.unturned("gpj\u202eexe") == "gpj[U+202E]exe"
    assert text.unturned("שלום") == "שלום", "a text that is written that way stays"
    assert text.unturned(7) == 7


@pytest.mark.parametrize(("most", "last"), [(1.0, 1.0), (300, 300), (7, 6), (1, 1.0)])
def test_an_axis_of_a_whole_ends_with_it(most: float, last: float) -> None:
    axis = span_axis(most, 0.0, 100.0)
    assert (axis.pixel(0), axis.pixel(most)) == (0, 100)
    assert axis.ticks[-1] == pytest.approx(last)


def test_units() -> None:
    assert [text.microseconds(value) for value in (0.25, 4.5, 2500.0, 3e6)] == ["250 ns", "4.50 µs", "2.50 ms", "3 s"]
    assert [text.percent(value) for value in (0.004, 0.46, 13.5)] == ["0.4 %", "46 %", "1,350 %"]
    assert [text.size(value) for value in (0, 999, 1500, 250_000_000)] == ["0 B", "999 B", "1.5 kB", "250 MB"]
    spans = (0.44, 12, 200, 3600, 7500, 273600)
    assert [text.duration(span) for span in spans] == ["0.4 s", "12 s", "3 min 20 s", "1 h", "2 h 5 min", "3 d 4 h"]
    ages = (0, 40, 720, 7200, 500_000)
    assert [text.age(NOW - timedelta(seconds=age), NOW) for age in ages] == [
        "just now", "40 s ago", "12 min ago", "2 h ago", "5 d ago",
    ]  # fmt: skip
    assert text.age(None, NOW) == "never"
    assert text.between(None, None, NOW) == ""
    assert text.clock("2026-03-01T12:34:56+01:00") == "11:34:56"


@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=50))
def test_axes_show_every_value_between_round_ticks(values: list[float]) -> None:
    axis = fit_axis(values, 0.0, 500.0)
    assert all(0 <= axis.pixel(value) <= 500 for value in values)
    assert len(axis.ticks) <= 10
    assert all(axis.low * (1 - 1e-9) <= tick <= axis.high * (1 + 1e-9) for tick in axis.ticks)
    ordered = sorted(values)
    assert [axis.pixel(value) for value in ordered] == sorted(axis.pixel(value) for value in ordered)


NUMBER = st.integers(1, 12)
DOTS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=40)


@given(DOTS, st.booleans())
def test_the_front_is_what_no_other_beats(found: list[tuple[int, int, int]], shaded: bool) -> None:
    triples = [(x, y, z if shaded else 0) for x, y, z in found]
    front = [(dot.x, dot.y, dot.z) for dot in pareto_front(
        [Dot(number, x, y, "modelled", True, z=z) for number, (x, y, z) in enumerate(triples)]
    )]  # fmt: skip
    beaten = {
        one for one in triples
        if any(other != one and all(a <= b for a, b in zip(other, one, strict=True)) for other in triples)
    }  # fmt: skip
    assert set(front) == set(triples) - beaten
    assert len(set(front)) == len(front)
    assert front == sorted(front)


@given(DOTS)
def test_every_fitting_trial_is_drawn_once_in_the_shade_of_its_third_figure(found: list[tuple[int, int, int]]) -> None:
    dots = [Dot(number, x, y, "modelled", True, z=z) for number, (x, y, z) in enumerate(found)]
    plot = draw_pareto(dots, x_name="x", y_name="y", x_text=str, y_text=str, third=ThirdFigure("z", str))
    assert plot is not None
    assert plot.third == "z"
    assert not plot.front
    assert sum(shade.path.count("M") for shade in plot.shades) + len(plot.marks) == len(dots)
    kinds = {z for _, _, z in found}
    assert plot.shades[-1].words == ("fits" if len(kinds) == 1 else f"z up to {max(kinds)}")


def test_the_front_joins_only_one_evidence_and_only_what_fits() -> None:
    dots = [
        Dot(0, 1.0, 0.9, "modelled", True), Dot(1, 2.0, 0.5, "modelled", True), Dot(2, 0.5, 0.1, "csynth", True),
        Dot(3, 0.1, 1.5, "modelled", False),
    ]  # fmt: skip
    plot = draw_pareto(dots, x_name="x", y_name="y", x_text=str, y_text=str, y_limit=1.0)
    assert plot is not None
    assert [mark.dot.number for mark in plot.marks] == [0, 1]
    assert [(shade.words, shade.path.count("M")) for shade in plot.shades] == [("fits", 1)]
    assert plot.misfits.count("M") == 1
    assert (plot.evidence, plot.others) == ("modelled", 1)
    assert plot.y_limit is not None
    assert draw_pareto([], x_name="x", y_name="y", x_text=str, y_text=str) is None


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=60), st.floats(0.01, 0.1))
def test_the_course_only_falls_and_ends_at_the_best(values: list[float], bound: float) -> None:
    marks = [{"number": n, "state": "complete", "figures": {"x": value}} for n, value in enumerate(values)]
    falls = falls_of(marks, "x")
    reached = [value for _, value in falls]
    assert reached == sorted(set(reached), reverse=True)
    assert reached[-1] == min(values)
    course = draw_course(falls, len(values), "x", str, bound, "")
    assert (course is None) == (len(values) < 2)
    places = [float(y) for y in re.findall(r"[V ]([0-9.e-]+)", course.line)] if course else []
    assert all(0 <= y <= 100 for y in places)


def test_a_bar_holds_every_trial_once() -> None:
    progress = {
        "trials_total": 10, "trials_done": 7, "trials_failed": 1, "trials_infeasible": 2, "trials_running": 1,
        "trials_per_minute": 90.0, "seconds_left": 120.0,
    }  # fmt: skip
    bars = bars_of(progress)
    assert [(bar.state, bar.count) for bar in bars] == [
        ("good", 4), ("infeasible", 2), ("failed", 1), ("running", 1), ("to come", 2),
    ]  # fmt: skip
    assert bars[-1].start + bars[-1].width == pytest.approx(100)
    assert outlook(progress) == "90 trials a minute, about 2 min left for trials"


@pytest.mark.parametrize(
    ("states", "joint"),
    [
        ([], "pending"), (["queued"], "queued"), (["succeeded", "queued"], "running"), (["failed"], "failed"),
        (["succeeded", "failed"], "succeeded"), (["running", "failed"], "running"),
        (["cancelled", "cancelled"], "cancelled"),
    ],
)  # fmt: skip
def test_many_trials_have_one_state(states: list[str], joint: str) -> None:
    assert joint_state(states) == joint


def test_events_read_as_sentences() -> None:
    at = "2026-03-01T12:00:00+00:00"
    events = [
        {"id": 1, "kind": "step.create", "at": at, "data": {"key": "import"}},
        {"id": 2, "kind": "step.claim", "at": at, "data": {"key": "import", "attempt": 2}},
        {"id": 3, "kind": "step.fail", "at": at, "data": {"key": "import", "error": {"what": "no memory"}}},
        {"id": 4, "kind": "step.progress", "at": at, "data": {"key": "verify", "text": "half way"}},
        {"id": 5, "kind": "run.some_news", "at": at, "data": {}},
    ]
    lines = [(line.subject, line.words, line.bad) for line in event_lines(events)]
    assert lines == [
        ("run", "some news", False), ("verify", "half way", False), ("import", "failed: no memory", True),
        ("import", "taken by a worker (attempt 2)", False),
    ]  # fmt: skip


def test_vendored_files_are_those_of_the_manifest() -> None:
    folder = FOLDER / "static" / "vendor"
    manifest = json.loads((folder / "manifest.json").read_text())
    listed = {"manifest.json"}
    for package in manifest["packages"]:
        assert set(package) == {"name", "version", "source", "license", "license_file", "files"}
        assert package["license_file"] in [entry["file"] for entry in package["files"]]
        for entry in package["files"]:
            assert hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
            listed.add(entry["file"])
    assert {path.name for path in folder.iterdir()} == listed


def test_the_pages_know_nothing_of_the_compiler() -> None:
    for path in FOLDER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith("penstock.") or name.startswith("penstock.web"), f"{path.name}: {name}"
