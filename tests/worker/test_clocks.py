"""Clocks that are set: the worker's, by which files are old, and the database's, by which leases are over."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from penstock.db import Database, lifecycle
from penstock.db.schema.records import NewStep, Step
from penstock.services.jobs.removal import GRACE_SECONDS
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from penstock.services.worker import dispatcher
from penstock.services.worker.reaper import LONGEST_LEASES, reap_expired
from penstock.services.worker.steady import LONGEST_BLINK, SteadyClock
from penstock.services.worker.sweep import sweep_everything
from tests.fixtures.waiting import wait_until


@pytest.fixture
def settings(database: Database, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=database.url, lease_seconds=30.0, heartbeat_seconds=0.001)


class Clocks:
    """One that people set, and one that they cannot."""

    def __init__(self) -> None:
        self.now, self.steady = 1e9, 100.0

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        self.steady += seconds


def test_a_clock_is_believed_for_as_long_as_it_was_not_set() -> None:
    clocks = Clocks()
    watched = SteadyClock(lambda: clocks.now, lambda: clocks.steady)
    assert watched.seconds() == 0
    for _ in range(10):
        clocks.pass_by(600)
        clocks.now += 1.0  # nudged, as clocks are
    assert watched.seconds() == 6000
    for jump in (7200.0, -7200.0):
        clocks.pass_by(600)
        clocks.now += jump
        assert watched.seconds() == 0
    clocks.pass_by(600)
    assert watched.seconds() == 600


def test_who_is_started_anew_each_few_minutes_comes_to_believe_the_clock_all_the_same(tmp_path: Path) -> None:
    clocks, boot = Clocks(), "first"

    def started() -> SteadyClock:
        return SteadyClock(lambda: clocks.now, lambda: clocks.steady, kept=tmp_path / "clock.json", boot=lambda: boot)

    started()
    for _ in range(20):
        clocks.pass_by(300)
        assert started().unseen() <= 600, "whoever begins looks soon, if nobody has for long"
        if started().unseen() >= 600:
            started().seconds()
    assert started().seconds() == 6000
    clocks.now += 7200  # set while nobody ran
    clocks.pass_by(10)
    assert started().seconds() == 0
    clocks.pass_by(600)
    assert started().seconds() == 600
    clocks.pass_by(2 * LONGEST_BLINK)  # in which it may have been set, and set right again
    assert started().seconds() == 0
    clocks.pass_by(600)
    boot, clocks.steady = "second", 5.0
    assert started().seconds() == 0
    for broken in ("", "[]", '{"boot": "second"}', '{"boot": "second", "ahead": "x", "since": 1, "looked": 2}'):
        (tmp_path / "clock.json").write_text(broken)
        assert started().seconds() == 0


def test_a_clock_whose_file_cannot_be_kept_is_watched_all_the_same(tmp_path: Path) -> None:
    clocks = Clocks()
    watched = SteadyClock(lambda: clocks.now, lambda: clocks.steady, kept=tmp_path / "gone" / "clock.json")
    clocks.pass_by(600)
    assert watched.seconds() == 600


def test_a_dispatcher_that_was_just_started_removes_old_content(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those before it watched the clock for long enough, and none of them came to sweep."""
    ContentStore(settings.store_folder).put_bytes(b"no row names it")
    _make_old(settings.store_folder)
    now = time.monotonic()
    for ago in (GRACE_SECONDS + 700, 3000, 2000, 700):
        kept, ahead = settings.home / dispatcher.CLOCK_FILE, time.time() - now
        SteadyClock(lambda t=now - ago + ahead: t, lambda t=now - ago: t, kept=kept).seconds()
    monkeypatch.setattr(dispatcher, "_FIRST_SWEEP_SECONDS", 0.0)
    one = dispatcher.Dispatcher(replace(settings, redis_url="redis://127.0.0.1:1/0"))
    running = threading.Thread(target=one.run)
    running.start()
    try:
        wait_until(lambda: not any(path.is_file() for path in settings.store_folder.rglob("*")))
    finally:
        one.stopping.set()
        running.join()


def test_content_of_a_moment_ago_stays_when_the_clock_is_put_forward(database: Database, settings: Settings) -> None:
    """To a clock two hours ahead, all that was stored before is older than the hour that a row may take to come."""
    store = ContentStore(settings.store_folder)
    stored = store.put_bytes(b"its row comes in a second")
    _make_old(settings.store_folder)
    sweep_everything(settings, database, steady_seconds=GRACE_SECONDS - 1)
    assert store.renew(stored.sha256)
    _make_old(settings.store_folder)
    sweep_everything(settings, database, steady_seconds=GRACE_SECONDS)
    assert not store.renew(stored.sha256)


def test_a_database_clock_that_was_put_back_makes_no_lease_last_for_ever(
    database: Database, settings: Settings
) -> None:
    """Put back by a day, all that runs has a lease of a day: nobody would learn of a dead worker until then."""
    step = _running(database)
    _move_lease(database, step, "1 day")
    assert reap_expired(database, settings) == 0, "whoever lives shall renew it first"
    with database.begin() as tx:
        left = tx.connection.execute(
            text("SELECT extract(epoch FROM lease_until - now()) FROM penstock.steps WHERE id = :id"), {"id": step.id}
        ).scalar_one()
        assert 0 < left <= LONGEST_LEASES * settings.lease_seconds
        assert tx.steps.heartbeat({step.id: step.fence}, settings.lease_seconds) == {step.id: False}
    _move_lease(database, step, "-1 second")
    assert reap_expired(database, settings) == 1


def test_a_database_clock_that_was_put_forward_costs_no_attempt(database: Database, settings: Settings) -> None:
    """All leases are over at once. Steps go to others, and what the first ones find is fenced off."""
    step = _running(database)
    _move_lease(database, step, "-1 day")
    assert reap_expired(database, settings) == 1
    with database.begin() as tx:
        after = tx.steps.get(step.id)
        assert after is not None
        assert (after.state, after.attempt) == ("queued", 0)
        assert tx.steps.heartbeat({step.id: step.fence}, settings.lease_seconds) == {}
        assert lifecycle.finish_many(tx, step.run_id, [(step, lifecycle.StepOutcome({}))]) == set()


def _make_old(folder: Path) -> None:
    before = time.time() - 2 * GRACE_SECONDS
    for path in folder.rglob("*"):
        os.utime(path, (before, before))


def _running(database: Database) -> Step:
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        steps = [NewStep("k", "a", "explore")]
        run = lifecycle.submit(tx, model_id=model.id, name="r", steps=steps, options={}, owner=None)
        step = lifecycle.claim(tx, tx.steps.list(run.id).items[0].id, worker="w", lease_seconds=30)
    assert step is not None
    return step


def _move_lease(database: Database, step: Step, by: str) -> None:
    with database.begin() as tx:
        tx.connection.execute(
            text("UPDATE penstock.steps SET lease_until = now() + CAST(:by AS interval) WHERE id = :id"),
            {"by": by, "id": step.id},
        )
