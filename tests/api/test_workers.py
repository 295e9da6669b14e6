"""/v1/workers, and what a reverse proxy may say."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from penstock.db import Database
from penstock.services.api.plumbing.accounts import create
from penstock.services.settings import Settings
from penstock.services.supervisor.redis import EmbeddedRedis
from penstock.services.worker.sign_of_life import DRAIN, KEY, connect
from tests.api.conftest import MakeClient, check_problem
from tests.api.test_accounts import bearer
from tests.cli.conftest import Run, run
from tests.fixtures.waiting import wait_until

__all__ = ["run"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def settings(settings: Settings, redis: EmbeddedRedis) -> Settings:
    return replace(settings, redis_url=redis.client_url)


def test_workers_are_listed_and_drained(run: Run, redis: EmbeddedRedis, client: httpx.Client) -> None:
    with connect(redis.client_url) as broker:
        for name, ago in (("penstock-1@lab", 0), ("penstock-2@lab", 600)):
            line = {"queues": ["import", "explore"], "concurrency": 2, "at": time.time() - ago}
            broker.hset(KEY, name, json.dumps(line))
        wait_until(lambda: "lab" in run("workers").out)
        assert [line.split()[:2] for line in run("workers").out.splitlines()] == [
            ["penstock-1@lab", "alive"], ["penstock-2@lab", "silent"],
        ]  # fmt: skip
        assert run("workers", "drain", "penstock-1@lab").out.splitlines()[0].split()[1] == "drains"
        assert broker.exists(DRAIN), "the order is there, for the worker to fetch"
    assert run("workers", "drain", "penstock-2@lab").code == 2
    assert run("workers", "drain").code == 2
    check_problem(client.post("/v1/workers/nobody/drain"), "worker-not-found", 404)


def test_draining_is_for_administrators(make_client: MakeClient, database: Database, settings: Settings) -> None:
    client = make_client(settings, auth=True)
    reader = bearer(create(database, settings, "ada", scope="submit").secret)
    assert client.get("/v1/workers", headers=reader).status_code == 200
    check_problem(client.post("/v1/workers/x/drain", headers=reader), "forbidden", 403, "admin")


@pytest.fixture
def proxied(settings: Settings, request: pytest.FixtureRequest) -> Iterator[str]:
    """The API as it is started for a lab, which believes a proxy on loopback or nobody."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")} | {
        "PENSTOCK_HOME": str(settings.home), "PENSTOCK_DATABASE_URL": settings.require_database_url(),
        "PENSTOCK_REDIS_URL": settings.require_redis_url(), "PENSTOCK_API_PORT": str(port), "PYTHONPATH": str(ROOT),
    } | ({"PENSTOCK_TRUSTED_PROXIES": "127.0.0.1"} if request.param else {})  # fmt: skip
    process = subprocess.Popen([sys.executable, "-m", "penstock.services.supervisor.serve_api"], env=environment)

    def answers() -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False

    try:
        wait_until(answers)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("proxied", [True, False], indirect=True)
def test_a_proxy_is_believed_where_it_was_named(
    proxied: str, database: Database, settings: Settings, request: pytest.FixtureRequest
) -> None:
    believed = request.node.callspec.params["proxied"]
    secret = create(database, settings, "ada", scope="admin").secret
    said = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
    with httpx.Client(base_url=proxied, trust_env=False) as client:
        answer = client.post("/login", data={"token": secret}, headers=said)
        cookie = answer.headers["set-cookie"]
        assert ("; Secure" in cookie) == believed, "only over TLS, where the proxy says that it was TLS"
        assert "HttpOnly" in cookie
        client.cookies.clear()
        link = client.post("/v1/login-links", headers=said | bearer(secret)).json()["url"]
        assert link.startswith("https://" if believed else "http://")
        addresses = {one["client"] for one in client.get("/v1/audit", headers=bearer(secret)).json()["items"]}
        assert addresses - {None} == ({"203.0.113.9"} if believed else {"127.0.0.1"})
