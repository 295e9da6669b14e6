"""Webhooks: signed as the specification says, sent until they arrive, and only where they may go."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from penstock.db import Database, lifecycle
from penstock.db.schema.records import Delivery, NewStep, Run, Webhook
from penstock.services.secret_key import load_key
from penstock.services.settings import Settings
from penstock.services.webhooks.sending import AGAIN_SECONDS, send_due
from penstock.services.webhooks.signing import secret_of
from penstock.services.webhooks.targets import TargetRefusedError, resolve
from tests.fixtures.service import Service
from tests.fixtures.waiting import wait_until

LOOPBACK = ("127.0.0.0/8",)


class Receiver:
    """Somebody's server: keeps what came, and answers as it is told."""

    def __init__(self) -> None:
        self.came: list[tuple[dict[str, str], str]] = []
        self.answers: list[int] = []
        self.hold = threading.Event()
        self.hold.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                receiver.came.append(({name.lower(): value for name, value in self.headers.items()}, body))
                receiver.hold.wait()
                self.send_response(receiver.answers.pop(0) if receiver.answers else 204)
                self.send_header("Location", "http://127.0.0.1:1/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=database_url, webhook_targets=LOOPBACK)


def hook(database: Database, url: str, owner: str | None = "ada", **more: Any) -> Webhook:
    with database.begin() as tx:
        kinds = more.pop("kinds", ["run.succeeded", "run.failed"])
        return tx.webhooks.create(owner=owner, everybody=more.pop("everybody", False), url=url, kinds=kinds)


def ended_run(database: Database, owner: str | None = "ada", *, fails: bool = False) -> Run:
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        steps = [NewStep("echo", "a", "explore")]
        run = lifecycle.submit(tx, model_id=model.id, name="r", steps=steps, options={}, owner=owner)
        step = lifecycle.claim(tx, tx.steps.list(run.id).items[0].id, worker="w", lease_seconds=60)
        assert step is not None
        if fails:
            lifecycle.fail(tx, step, {"code": "export-failed", "what": "no"})
        else:
            lifecycle.finish(tx, step, lifecycle.StepOutcome({}, run_summary={"latency_us": 7.5}))
    return run


def log_of(database: Database, webhook: Webhook) -> list[Delivery]:
    with database.begin() as tx:
        return list(tx.webhooks.log(webhook.id).items)


def make_due(database: Database) -> None:
    with database.begin() as tx:
        tx.connection.execute(text("UPDATE deliveries SET due_at = now() WHERE state = 'pending'"))


def verify(headers: dict[str, str], body: str, secret: str) -> bool:
    """As a library of the specification does it."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{body}".encode()
    wanted = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert abs(time.time() - int(headers["webhook-timestamp"])) < 300
    return any(part.partition(",")[2] == wanted for part in headers["webhook-signature"].split())


def test_ends_of_runs_are_told_signed_and_once(database: Database, settings: Settings, receiver: Receiver) -> None:
    own, all_of_them = hook(database, receiver.url), hook(database, receiver.url, "root", everybody=True)
    others = hook(database, receiver.url, "bob")
    done, failed = ended_run(database), ended_run(database, fails=True)
    assert asyncio.run(send_due(database, settings)) == 4
    assert asyncio.run(send_due(database, settings)) == 0
    secret = secret_of(load_key(settings.secret_file), own.id, 1)
    told = [(headers, json.loads(body)) for headers, body in receiver.came if verify(headers, body, secret)]
    assert {(one["type"], one["data"]["run"]) for _, one in told} == {
        ("run.succeeded", done.id), ("run.failed", failed.id),
    }  # fmt: skip
    assert {one["data"]["error"] and one["data"]["error"]["code"] for _, one in told} == {None, "export-failed"}
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 4
    assert [one.state for one in log_of(database, all_of_them)] == ["delivered"] * 2
    assert log_of(database, others) == []


def test_it_is_tried_again_and_given_up(database: Database, settings: Settings, receiver: Receiver) -> None:
    webhook = hook(database, receiver.url)
    receiver.answers = [500, 302]
    ended_run(database)
    for problem in ("it answered 500", "redirects are not followed"):
        assert asyncio.run(send_due(database, settings)) == 1
        assert problem in log_of(database, webhook)[0].problem
        assert asyncio.run(send_due(database, settings)) == 0, "not before its time"
        make_due(database)
    assert asyncio.run(send_due(database, settings)) == 1
    assert (log_of(database, webhook)[0].state, log_of(database, webhook)[0].attempts) == ("delivered", 3)
    assert len({headers["webhook-id"] for headers, _ in receiver.came}) == 1, "the same message each time"
    receiver.answers = [503] * 20
    ended_run(database)
    for _ in range(len(AGAIN_SECONDS) + 1):
        asyncio.run(send_due(database, settings))
        make_due(database)
    assert (log_of(database, webhook)[0].state, log_of(database, webhook)[0].status) == ("failed", 503)
    assert asyncio.run(send_due(database, settings)) == 0


def test_a_target_that_is_gone_is_told_no_more_and_a_new_secret_overlaps(
    database: Database, settings: Settings, receiver: Receiver
) -> None:
    webhook = hook(database, receiver.url)
    receiver.answers = [410]
    ended_run(database)
    asyncio.run(send_due(database, settings))
    ended_run(database)
    assert asyncio.run(send_due(database, settings)) == 0
    with database.begin() as tx:
        off = tx.webhooks.get(webhook.id)
        assert off is not None
        assert (off.enabled, "410" in off.why_disabled) == (False, True)
        assert tx.webhooks.rotate(webhook.id).enabled
    ended_run(database)
    asyncio.run(send_due(database, settings))
    key = load_key(settings.secret_file)
    assert all(verify(*receiver.came[-1], secret_of(key, webhook.id, generation)) for generation in (1, 2))
    assert not verify(*receiver.came[-1], secret_of(key, "whk_other", 1))


@pytest.mark.parametrize(
    ("url", "allowed", "words"),
    [
        ("https://ci.example.org/x", (), "sends to nobody"),
        ("https://ci.example.org/x", ("*.example.com",), "not among the targets"),
        ("https://evilexample.org", ("*.example.org",), "not among the targets"),
        ("https://127.0.0.1/x", ("*",), "private address"),
        ("https://[::1]/x", ("*",), "private address"),
        ("https://[::ffff:10.0.0.1]/x", ("*",), "private address"),
        ("https://[64:ff9b::a00:1]/x", ("*",), "private address"),
        ("https://[64:ff9b:1::a00:1]/x", ("*",), "private address"),
        ("https://[2002:a00:1::1]/x", ("*",), "private address"),
        ("https://[::127.0.0.1]/x", ("*",), "private address"),
        ("https://[::ffff:0:127.0.0.1]/x", ("*",), "private address"),
        ("https://[fec0::1]/x", ("*",), "private address"),
        ("https://[ff02::1]/x", ("*",), "private address"),
        ("https://169.254.169.254/latest", ("*",), "private address"),
        ("https://100.64.0.1/", ("*",), "private address"),
        ("https://8.8.8.8/", ("ci.example.org",), "not among the targets"),
        ("https://localhost/x", ("localhost",), "private address"),
        ("https://localhost/x", ("*",), "private address"),
        ("http://ci.example.org/x", ("*",), "plain http"),
        ("https://user:pw@ci.example.org/", ("*",), "no user"),
        ("ftp://ci.example.org/", ("*",), "no address"),
        ("https://", ("*",), "no address"),
        ("https://ex ample\n", ("*",), "no address"),
        ("https://2130706433/", ("*",), "private address|looked up"),
        ("https://0x7f.1/", ("*",), "private address|looked up"),
    ],
)
def test_where_messages_may_not_go(url: str, allowed: tuple[str, ...], words: str) -> None:
    with pytest.raises(TargetRefusedError, match=words):
        resolve(url, allowed)


def test_a_name_is_not_enough_for_a_private_address(database: Database, settings: Settings, receiver: Receiver) -> None:
    webhook = hook(database, receiver.url.replace("127.0.0.1", "localhost").replace("http:", "https:"))
    ended_run(database)
    asyncio.run(send_due(database, replace(settings, webhook_targets=("localhost",))))
    assert "private address" in log_of(database, webhook)[0].problem
    assert receiver.came == []


@pytest.mark.slow
def test_a_sender_that_is_killed_loses_nothing(service: Service, receiver: Receiver) -> None:
    service.environment["PENSTOCK_WEBHOOK_TARGETS"] = "127.0.0.0/8"
    webhook = hook(service.database, receiver.url)
    receiver.hold.clear()
    first = service.dispatcher()
    ended_run(service.database)
    wait_until(lambda: receiver.came)
    service.kill(first)
    assert log_of(service.database, webhook)[0].state == "pending"
    receiver.hold.set()
    make_due(service.database)  # the minute that the claim was for is over
    service.dispatcher()
    wait_until(lambda: log_of(service.database, webhook)[0].state == "delivered")
    ids = {headers["webhook-id"] for headers, _ in receiver.came}
    assert (len(receiver.came), len(ids)) == (2, 1)
