"""Workers are woken as far as there is something to do and somebody to do it; also when Redis forgot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import redis as client

from penstock.db import Database, claiming, lifecycle
from penstock.db.schema.records import NewStep, Run
from penstock.services.settings import Settings
from penstock.services.supervisor.redis import EmbeddedRedis
from penstock.services.worker.publish import BROKER_ERRORS, Publisher
from penstock.services.worker.reaper import reap_expired
from penstock.services.worker.sign_of_life import SignOfLife, signs
from tests.fixtures.waiting import wait_until


@pytest.fixture
def settings(database: Database, redis: EmbeddedRedis, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=database.url, redis_url=redis.client_url)


@pytest.fixture
def publisher(database: Database, settings: Settings) -> Iterator[Publisher]:
    made = Publisher(database, settings)
    yield made
    made.reset()


@pytest.fixture
def broker(redis: EmbeddedRedis) -> Iterator[client.Redis]:
    with client.Redis.from_url(redis.client_url) as connection:
        yield connection


def submit(database: Database, count: int) -> Run:
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        steps = [NewStep("echo", f"e{i}", "explore" if i % 2 else "build") for i in range(count)]
        return lifecycle.submit(tx, model_id=model.id, name="r", steps=steps, options={}, owner=None)


def lengths(broker: client.Redis) -> tuple[int, int]:
    explore, build = broker.llen("explore"), broker.llen("build")
    assert isinstance(explore, int)
    assert isinstance(build, int)
    return explore, build


@pytest.fixture
def workers(settings: Settings) -> Iterator[None]:
    """Signs of life of a worker with two hands for one queue."""
    sign = SignOfLife(settings.require_redis_url(), "w", ("explore",), 2)
    sign.start()
    with client.Redis.from_url(settings.require_redis_url()) as connection:
        wait_until(lambda: signs(connection))
    yield
    sign.stop()


def test_there_are_no_more_messages_than_free_hands(
    database: Database, publisher: Publisher, broker: client.Redis, workers: None
) -> None:
    submit(database, 1000)
    assert publisher.wake() == 3, "two for the worker, one for whoever may come for the other queue"
    assert publisher.wake() == 0
    assert lengths(broker) == (2, 1)


def test_a_wiped_broker_is_filled_again(database: Database, publisher: Publisher, broker: client.Redis) -> None:
    submit(database, 20)
    publisher.wake()
    broker.flushall()
    assert publisher.wake() == 2
    assert lengths(broker) == (1, 1)


def test_for_what_is_cancelled_held_or_wants_a_taken_licence_nobody_is_woken(
    database: Database, settings: Settings, broker: client.Redis
) -> None:
    cancelled = submit(database, 4)
    with database.begin() as tx:
        lifecycle.cancel_run(tx, cancelled.id)
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        trials = [NewStep("trial", f"trial/{i}", "explore") for i in range(3)]
        paused = lifecycle.submit(tx, model_id=model.id, name="r", steps=trials, options={}, owner=None)
        lifecycle.pause_run(tx, paused.id)
        measured = [NewStep("measure", f"measure/{i}", "build", licence="vitis_hls") for i in range(2)]
        lifecycle.submit(tx, model_id=model.id, name="r", steps=measured, options={}, owner=None)
    counted = Publisher(database, replace(settings, licences={"vitis_hls": 1}))
    assert counted.wake() == 1
    with database.begin() as tx:
        assert claiming.claim_next(tx, ("build",), worker="w", lease_seconds=9, licences={"vitis_hls": 1})
    broker.flushall()
    assert counted.wake() == 0
    counted.reset()


def test_while_the_broker_is_away_nothing_is_lost(
    database: Database, publisher: Publisher, redis: EmbeddedRedis
) -> None:
    submit(database, 6)
    redis.stop()
    with pytest.raises(BROKER_ERRORS):
        publisher.wake()
    publisher.reset()
    redis.start()
    assert publisher.wake() == 2


def test_a_lease_that_ran_out_while_postgres_was_down_is_given_time(database: Database, settings: Settings) -> None:
    """Right after a start of Postgres no lease counts as lost: its worker could not renew it."""
    run = submit(database, 1)
    with database.begin() as tx:
        step = lifecycle.claim(tx, tx.steps.list(run.id).items[0].id, worker="w", lease_seconds=0.001)
    assert step is not None
    time.sleep(0.05)
    with database.begin() as tx:
        assert tx.steps.expired(grace_seconds=3600) == ()
    assert reap_expired(database, Settings(home=settings.home, heartbeat_seconds=0.01)) == 1
