"""The hypervolume of a front: against counting of cells, and as a search's report has it."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

from penstock.dse.evaluation.choosing import pareto_front
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.hypervolume import beyond, front_share, hypervolume, most_first
from penstock.dse.search.study import Told
from tests.compiler.designs import Dense, build_network


@pytest.mark.parametrize("objectives", [1, 2, 3])
def test_it_is_the_number_of_cells_that_are_beaten(objectives: int) -> None:
    draw = random.Random(objectives)
    for _ in range(20):
        points = [tuple(draw.randint(0, 7) for _ in range(objectives)) for _ in range(draw.randint(0, 6))]
        beaten = [
            cell for cell in product(range(6), repeat=objectives)
            if any(all(a <= b for a, b in zip(point, cell, strict=True)) for point in points)
        ]  # fmt: skip
        assert hypervolume(points, (6,) * objectives) == len(beaten)


def told(number: int, values: tuple[float, ...], *, over: float = 0.0) -> Told:
    return Told(number, "complete", {"n": number}, values, {"dsp": over})


def test_a_front_is_measured_within_what_may_be_chosen() -> None:
    trials = [told(0, (1.0, 100.0)), told(1, (100.0, 1.0)), told(2, (10.0, 10.0)), told(3, (0.1, 0.1), over=0.5)]
    assert front_share(trials) == pytest.approx(0.25), "the middle one beats a quarter; what misses a limit counts not"
    assert front_share([*trials, told(4, (1.0, 1.0))]) == pytest.approx(1.0)
    assert front_share(trials[:1]) is None
    assert front_share([]) is None


def test_evaluations_are_measured_like_trials() -> None:
    evaluator = Evaluator.create(build_network("int8", 4, 8, (Dense(8, False, False),), seed=1), "u55c")
    found = [evaluator.evaluate({"overall_unroll_size": size}) for size in (2, 8)]
    assert front_share(found) is not None


def test_of_a_front_what_adds_most_comes_first() -> None:
    draw = random.Random(5)
    for _ in range(20):
        points = [(float(draw.randint(1, 60)), float(draw.randint(1, 60))) for _ in range(12)]
        front = pareto_front([told(n, point) for n, point in enumerate(points)])
        first, rest = front[0], front[1:]
        order = most_first(rest, first)
        assert sorted(map(id, order)) == sorted(map(id, rest))
        logs = [tuple(map(math.log, one.values or ())) for one in (first, *order)]
        reference = beyond(logs)
        for n in range(1, len(logs)):
            gains = [hypervolume([*logs[:n], other], reference) for other in logs[n:]]
            assert gains[0] == pytest.approx(max(gains)), "the next one adds no less than any later one would"


def test_the_ends_of_a_front_come_before_what_lies_close_beside_another() -> None:
    front = [told(n, (math.exp(n / 8), math.exp(-n / 8))) for n in range(1, 9)]
    order = most_first(front, told(0, (1.0, 1.0)))
    assert order[0] is front[-1], "the far end: all others are nearer to the first"
    assert most_first([told(1, (2.0, 3.0))], told(0, (2.0, 3.0)))[0].number == 1, "a front of one place"
