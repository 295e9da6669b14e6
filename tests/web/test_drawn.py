"""The drawings of all trials are made once for each event of their run, however many ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.services.api.pages import drawn
from penstock.services.api.pages.drawn import DrawnTrials
from penstock.web.trial_drawings import TrialDrawings
from tests.api.seeding import Seeder


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
