"""From the outbox to Redis and, when Redis forgot, again: what is missing goes out, and nothing twice."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis as client

from penstock.db import Database, lifecycle
from penstock.db.schema.records import NewStep, Run
from penstock.services.settings import Settings
from penstock.services.supervisor.redis import EmbeddedRedis
from penstock.services.worker.publish import BROKER_ERRORS, Publisher
from penstock.services.worker.reaper import reap_expired


@pytest.fixture
def settings(database: Database, redis: EmbeddedRedis, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=database.url, redis_url=redis.client_url, republish_seconds=0.05)


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


def test_everything_that_is_due_goes_out_once(database: Database, publisher: Publisher, broker: client.Redis) -> None:
    submit(database, 120)
    assert publisher.publish_due() == 120
    assert publisher.publish_due() == 0
    assert lengths(broker) == (60, 60)


def test_a_wiped_broker_is_filled_again_and_a_full_one_is_left_alone(
    database: Database, publisher: Publisher, broker: client.Redis
) -> None:
    submit(database, 20)
    publisher.publish_due()
    time.sleep(0.1)
    assert publisher.republish_lost() == 0, "a backlog is not a loss"
    broker.flushall()
    assert publisher.republish_lost() == 20
    assert publisher.publish_due() == 20
    assert lengths(broker) == (10, 10)
    broker.lpop("explore")
    time.sleep(0.1)
    assert publisher.republish_lost() == 1, "only as many as are missing"


def test_what_is_claimed_or_cancelled_is_not_sent_again(
    database: Database, publisher: Publisher, broker: client.Redis
) -> None:
    run = submit(database, 4)
    publisher.publish_due()
    with database.begin() as tx:
        first = tx.steps.list(run.id).items[0]
        assert lifecycle.claim(tx, first.id, worker="w", lease_seconds=60)
    broker.flushall()
    time.sleep(0.1)
    assert publisher.republish_lost() == 3
    with database.begin() as tx:
        lifecycle.cancel_run(tx, run.id)
    assert publisher.publish_due() == 0


def test_while_the_broker_is_away_nothing_is_lost(
    database: Database, publisher: Publisher, redis: EmbeddedRedis
) -> None:
    submit(database, 6)
    redis.stop()
    with pytest.raises(BROKER_ERRORS):
        publisher.publish_due()
    publisher.reset()
    redis.start()
    assert publisher.publish_due() == 6


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
