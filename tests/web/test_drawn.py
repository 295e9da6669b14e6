"""The drawings of all trials are made once for each event of their run, however many ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.services.api.pages import drawn
from penstock.services.api.pages.drawn import DrawnTrials
from penstock.web.templating import environment
from penstock.web.trial_drawings import TrialDrawings
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder
from tests.fixtures.waiting import wait_until


def test_trials_are_drawn_once_for_each_event(seeder: Seeder, monkeypatch: pytest.MonkeyPatch) -> None:
    run = seeder.run(trials=4)
    seeder.explore(run, 4)
    made, of_all, real = [], DrawnTrials(), drawn.draw_trials
    monkeypatch.setattr(drawn, "draw_trials", lambda *given: made.append(given) or real(*given))

    def ask() -> TrialDrawings:
        with seeder.database.begin() as tx:
            return of_all.of(tx, run, tx.events.newest_id(run.id))

    seeder.trial(run, 0)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: ask(), range(8)))
    assert len(made) == 1
    assert found == [found[0]] * 8
    assert found[0].plot is not None
    assert len(found[0].plot.shown) == 1
    seeder.trial(run, 1)
    later = ask()
    assert later.plot is not None
    assert len(later.plot.shown) == 2, "what was drawn before is not shown again"
    assert len(made) == 2


def test_templates_are_compiled_before_anybody_looks(make_client: MakeClient) -> None:
    environment.cache_clear()
    make_client()
    names = environment().list_templates()
    wait_until(lambda: len(environment().cache or ()) == len(names), lambda: len(environment().cache or ()))
