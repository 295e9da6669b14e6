"""Beside the best by the model, a search tries designs that are as fast and in which inputs wait in other places."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.evaluation.objectives import Goal
from penstock.dse.search import start
from penstock.dse.search.descent import Descended
from penstock.dse.search.start import starting_settings, waiting_otherwise
from penstock.dse.space.tiling import Value
from tests.compiler.designs import Dense, build_network


def evaluator(*objectives: str) -> Evaluator:
    program = build_network("int8", None, 30, (Dense(24, True, False), Dense(36, True, False)), seed=4)
    return Evaluator.create(program, "zcu104", goal=Goal.of(objectives, ("dsp<=20",)))


def as_slow(one: Evaluation, interval: int, **params: Value) -> Evaluation:
    changed = {name.replace("__", "."): value for name, value in params.items()}
    return replace(one, params={**one.params, **changed}, figures=replace(one.figures, interval=interval))


def test_they_are_of_another_kind_and_nearly_as_fast() -> None:
    frames = evaluator("throughput")
    one = frames.evaluate(frames.space.fitted_setting())
    best = as_slow(one, 1000)
    timed = (
        best,
        as_slow(one, 1001, favour__fc0=140),  # waits where the best does
        as_slow(one, 1002, burst__fc0="4x"),
        as_slow(one, 1003, burst__fc0="4x", favour__fc0=140),
        as_slow(one, 1004, in_turn=not one.params["in_turn"]),
        as_slow(one, 1005, compact__fc0=not one.params["compact.fc0"]),
        as_slow(one, 1100, burst__fc0="2x"),
    )
    found = waiting_otherwise(timed, best)
    assert found == [dict(timed[2].params), dict(timed[4].params)]
    assert waiting_otherwise((best, timed[-1]), best) == []


@pytest.mark.parametrize(("objective", "tried"), [("throughput", True), ("latency", False)])
def test_they_are_tried_where_inputs_follow_each_other(
    monkeypatch: pytest.MonkeyPatch, objective: str, tried: bool
) -> None:
    frames = evaluator(objective)
    best = frames.assume(frames.space.fitted_setting())
    other = frames.assume({**best.params, "in_turn": not best.params["in_turn"], "burst.fc0": "whole"})
    other = replace(other, figures=replace(other.figures, interval=best.figures.interval, latency=best.figures.latency))
    monkeypatch.setattr(start, "_guesses", lambda _: [])
    monkeypatch.setattr(start, "descend", lambda *_, **__: Descended(best, 2, (best, other)))
    settings, _ = starting_settings(frames)
    assert (dict(other.params) in settings) == tried
