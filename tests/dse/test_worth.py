"""What a search need not model: settings whose operators alone take as long as the best one does."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.fitting import part_of
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search.worth import Worth, foretell
from penstock.dse.space.fitted import FITTED, Allowance
from tests.compiler.designs import Dense, build_network

LAYERS = (Dense(24, True, False), Dense(36, True, True), Dense(144, False, False))


def evaluator(*objectives: str, limits: tuple[str, ...] = ("dsp<=60",)) -> Evaluator:
    goal = Goal.of(objectives, limits)
    return Evaluator.create(build_network("int8", None, 30, LAYERS, seed=4), "zcu104", goal=goal)


@pytest.mark.parametrize("limits", [("dsp<=60",), ("dsp<=17", "lut<=9000")])
def test_no_design_of_a_setting_is_quicker_than_its_operators_say(limits: tuple[str, ...]) -> None:
    frames, draw = evaluator("throughput", limits=limits), Random(7)
    choices, fitting = frames.space.choices, frames.space.fitting
    paces: set[int] = set()
    for _ in range(25):
        setting = {name: draw.choice(values) for name, values in choices.items()} | {"allocation": FITTED}
        quickest = fitting.quickest(frames.space.settings(setting), frames.may_use)
        assert frames.assume(setting).figures.interval >= quickest
        paces.add(quickest)
    assert len(paces) > 1


@pytest.mark.parametrize("objectives", [("throughput",), ("throughput", "resources")])
def test_what_gains_nothing_is_left_out_where_only_the_time_between_inputs_counts(objectives: tuple[str, ...]) -> None:
    """It counts among what was tried, or many such would make room for as many others that take time."""
    frames = evaluator(*objectives, limits=("dsp<=8",))
    worth = Worth(frames, frames.space.choices, 2, None)
    best = worth.evaluate(frames.space.fitted_setting())
    assert best is not None
    slower = {**best.params, "favour.fc0": 200}
    assert frames.space.fitting.quickest(frames.space.settings(slower), frames.may_use) > best.values[0]
    assert worth.evaluate(slower, best) is None, "even its first design is far slower"
    assert len(worth.seen) == len(objectives)
    assert not worth.may_go_on


@pytest.mark.parametrize(
    ("interval", "quickest", "looked_at"),
    [
        (100_300, 100_000, False),  # nothing else is changed than what operators wait for, which is hardly anything
        (102_000, 100_000, True),
        (100_300, 99_800, True),  # operators are quicker
    ],
)
def test_what_hardly_waits_is_not_fed_otherwise(
    monkeypatch: pytest.MonkeyPatch, interval: int, quickest: int, looked_at: bool
) -> None:
    frames = evaluator("throughput")
    worth = Worth(frames, frames.space.choices, 8, None)
    found = worth.evaluate(frames.space.fitted_setting())
    assert found is not None
    best = replace(found, figures=replace(found.figures, interval=interval))
    other = {**best.params, "burst.fc2": "2x"}
    cycles = {str(best.params): 100_000, str(other): quickest}
    monkeypatch.setattr(Worth, "_quickest", lambda _, params: cycles[str(dict(params))])
    assert (worth.evaluate(other, best) is not None) == looked_at


@pytest.mark.parametrize(("slower", "looked_at"), [(1.05, True), (1.5, False)])
def test_what_is_far_slower_by_its_first_design_is_not_made_to_fit(
    monkeypatch: pytest.MonkeyPatch, slower: float, looked_at: bool
) -> None:
    """And it is as soon as the best is not that much faster: it was passed over, not judged."""
    frames = evaluator("latency", limits=("lut<=9000",))
    setting = frames.space.fitted_setting()
    whole = part_of(frames.may_use, 100)
    first = frames.outlook_of(frames.space.fitted(setting, Allowance(whole)), setting)
    worth = Worth(frames, frames.space.choices, 8, None)
    fits = worth.evaluate({**setting, "favour.fc0": 200})
    assert fits is not None
    assert fits.feasible
    assert first.figures.latency < frames.assume(setting).figures.latency, "it has more than fits"
    best = replace(fits, figures=replace(fits.figures, latency=round(first.figures.latency / slower)))
    looks: list[object] = []
    monkeypatch.setattr(worth, "_look", lambda params: looks.append(params) or frames.outlook(params))
    assert (worth.evaluate(setting, best) is not None) == looked_at
    assert bool(looks) == looked_at
    if not looked_at:
        slow = replace(fits, figures=replace(fits.figures, latency=10 * first.figures.latency))
        assert worth.evaluate(setting, slow) == frames.assume(setting)


def test_first_designs_say_nothing_where_time_is_not_what_counts() -> None:
    for objectives in (("resources",), ("energy", "latency")):
        frames = evaluator(*objectives)
        assert foretell(frames, frames.space.fitted_setting(), (0.0, 0.0)).by_first is None
    frames = evaluator("latency")
    said = foretell(frames, frames.space.fitted_setting(), (0.0, 0.0))
    assert said.by_first is not None
    assert said.at_best is None is said.timed
