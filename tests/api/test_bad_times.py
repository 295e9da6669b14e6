"""A Postgres without a connection left, a Redis that takes no writes, and how often a submission asks the database."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import psycopg
import pytest
import redis as client_of_redis
from psycopg import sql
from sqlalchemy import event, make_url
from sqlalchemy.engine import Engine

from penstock.db import Database
from penstock.services.settings import Settings
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.fixtures.waiting import wait_until

# Each of these is a question that whoever submits waits for. The audit log's entry is the last.
QUESTIONS_OF_A_SUBMISSION = ("models", "count(*)", "INSERT INTO penstock.runs", "INSERT INTO penstock.steps", "audit")


@pytest.fixture
def one_connection(database: Database, database_url: str) -> Iterator[str]:
    """The address of the database for a role that may have one connection at a time."""
    role = f"few_{secrets.token_hex(4)}"
    with database.begin() as tx:
        tx.connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 1")
        tx.connection.exec_driver_sql(f"GRANT ALL ON SCHEMA penstock TO {role}")
        tx.connection.exec_driver_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA penstock TO {role}")
        tx.connection.exec_driver_sql(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA penstock TO {role}")
    yield make_url(database_url).set(username=role).render_as_string(hide_password=False)
    with psycopg.connect(database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.Identifier(role)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_a_database_without_a_connection_left_is_a_503_and_nothing_is_lost(
    make_client: MakeClient, settings: Settings, seeder: Seeder, one_connection: str
) -> None:
    model = seeder.model()
    client = make_client(replace(settings, database_url=one_connection))
    asked = {"model": model.id, "trials": 1}
    with psycopg.connect(one_connection.replace("+psycopg", "")):
        for refused in (client.get("/v1/runs"), client.post("/v1/runs", json=asked)):
            check_problem(refused, "database-unavailable", 503, "no connection left", "nothing was lost")
            assert refused.headers["retry-after"] == "5"
            assert "max_connections" in refused.json()["limit"]
        assert client.get("/healthz").status_code == 503
        assert client.get("/runs", headers={"Accept": "text/html"}).status_code == 503
    wait_until(lambda: client.get("/v1/runs").status_code == 200)
    assert client.get("/v1/runs").json()["items"] == [], "what was refused was not begun"
    assert client.post("/v1/runs", json=asked).status_code == 202


@pytest.mark.parametrize(
    ("lock", "unlock", "words"),
    [
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read only replica"),
        (("CONFIG", "SET", "min-replicas-to-write", "1"), ("CONFIG", "SET", "min-replicas-to-write", "0"), "replicas"),
    ],
)
def test_a_broker_that_takes_no_writes_is_no_good_broker(
    make_client: MakeClient, settings: Settings, seeder: Seeder, redis: EmbeddedRedis,
    lock: tuple[str, ...], unlock: tuple[str, ...], words: str,
) -> None:  # fmt: skip
    """It answers, but wakes nobody. Submissions need none."""
    client = make_client(replace(settings, redis_url=redis.client_url))

    def broker() -> dict[str, Any]:
        return client.get("/v1/health").json()["broker"]

    wait_until(lambda: broker()["status"] == "ok")
    with client_of_redis.Redis.from_url(redis.client_url) as connection:
        connection.execute_command(*lock)
        wait_until(lambda: broker()["status"] == "down")
        assert broker()["detail"].startswith("takes no writes: ")
        assert words in broker()["detail"]
        posted = client.post("/v1/runs", json={"model": seeder.model().id, "trials": 1})
        assert posted.status_code == 202, "its row is what counts"
        connection.execute_command(*unlock)
    wait_until(lambda: broker()["status"] == "ok")


def test_a_submission_asks_the_database_five_questions(client: httpx.Client, seeder: Seeder) -> None:
    """Counted, since that is what its time consists of; the answer is that of a look at the run."""
    model = seeder.model()
    asked = {"model": model.id, "trials": 1}
    assert client.post("/v1/runs", json=asked).status_code == 202
    wait_until(lambda: _audited(seeder.database))  # that entry is written after the answer
    said: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
        said.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        posted = client.post("/v1/runs", json=asked)
        wait_until(lambda: len(said) >= len(QUESTIONS_OF_A_SUBMISSION))
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(said) == len(QUESTIONS_OF_A_SUBMISSION), said
    for words, statement in zip(QUESTIONS_OF_A_SUBMISSION, said, strict=True):
        assert words in statement
    shown = client.get(posted.json()["url"]).json()
    told = posted.json()
    assert {name: told[name] for name in ("steps", "progress", "last_event_id", "state", "waiting_for")} == {
        name: shown[name] for name in ("steps", "progress", "last_event_id", "state", "waiting_for")
    }


def _audited(database: Database) -> int:
    with database.begin() as tx:
        return len(tx.audit.list().items)
