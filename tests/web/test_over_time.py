"""A search over time: the best so far, how values are spread, and trials side by side where they overlap."""

from __future__ import annotations

import httpx

from penstock.db.repositories.trial_pages import TimedTrial
from penstock.web import text
from penstock.web.over_time import draw_distribution, draw_history, draw_work
from penstock.web.search_view import ObjectiveAxis
from tests.api.seeding import Seeder

AXIS = ObjectiveAxis("latency_us", "latency", text.microseconds)


def _trial(number: int, value: float | None, ended: float, *, fits: bool = True, seconds: float = 1.0) -> TimedTrial:
    return TimedTrial(number, fits, value, ended, seconds)


TRIALS = [_trial(0, 30.0, 1.0), _trial(1, 5.0, 1.5, fits=False), _trial(2, 20.0, 3.0), _trial(3, None, 4.0),
          _trial(4, 25.0, 5.0)]  # fmt: skip


def test_the_best_so_far_is_of_what_fits() -> None:
    chart = draw_history(TRIALS, AXIS)
    assert chart is not None
    assert chart.fitting.count("M") == 3
    assert chart.misfits.count("M") == 1
    assert chart.words == "20 µs is the best of 3 within the limits"
    assert chart.line.count("V") == 2, "down once, then level"
    outside = draw_history([_trial(n, 1.0, n, fits=False) for n in range(3)], AXIS)
    assert outside is not None
    assert outside.words == "none is within the limits"
    assert draw_history(TRIALS[:1], AXIS) is None


def test_half_are_at_the_median_or_better() -> None:
    chart = draw_distribution(TRIALS, AXIS)
    assert chart is not None
    assert chart.words == "33 % are within a tenth of the best; half are at 25 µs or better"
    assert draw_distribution(TRIALS[1:3], AXIS) is None, "one alone has no spread"


def test_work_at_once_lies_in_rows() -> None:
    chart = draw_work(TRIALS)
    assert chart is not None
    assert [tick.text for tick in chart.y_ticks] == ["1", "2"], "two overlapped, from 0.5 to 1"
    assert chart.words == "5 trials drawn in 5.0 s; 5.0 s of work, 1 at a time"
    assert (chart.fitting.count("M"), chart.misfits.count("M")) == (4, 1)
    many = draw_work([_trial(n, 1.0, 9.0, seconds=9.0) for n in range(100)])
    assert many is not None
    assert len({piece.split("H")[0].split(" ")[1] for piece in many.fitting.split("M")[1:]}) == 16


def test_the_page_is_of_the_objective_that_is_asked_for(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(24)
    page = client.get(f"/runs/{run.id}/over-time")
    assert page.status_code == 200
    assert "24 trials that ended" in page.text
    assert "is the best of" in page.text
    assert "at a time" in page.text
    assert "share of" in client.get(f"/runs/{run.id}/over-time", params={"of": "resources"}).text
    assert client.get(f"/runs/{run.id}/over-time", params={"of": "<b>"}).status_code == 200
    assert client.get("/runs/run_nothing/over-time").status_code == 404


def test_a_run_without_trials_has_a_page(client: httpx.Client, seeder: Seeder) -> None:
    page = client.get(f"/runs/{seeder.run().id}/over-time")
    assert page.status_code == 200
    assert "Trials will appear here" in page.text
