"""The application on a real Postgres, under uvicorn on loopback: tests speak to it as any client does."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from penstock.db import Database
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from penstock.services.store import ContentStore
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.protocol import BoundedProtocol
from tests.api.seeding import Seeder
from tests.fixtures.servers import fresh_database
from tests.fixtures.waiting import QUIET_SECONDS, wait_until

MakeClient = Callable[..., httpx.Client]
CERTIFICATES = ssl.create_default_context()
"""Reading them takes longer than a request; a client without would read its own."""


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, allow_python_models=True)


@pytest.fixture
def make_client(settings: Settings) -> Iterator[MakeClient]:
    """Clients of applications with other settings or limits, each under uvicorn on a free port of loopback."""
    with ExitStack() as stack:

        def make(changed: Settings | None = None, **options: Any) -> httpx.Client:
            app = create_app(changed or settings, ApiOptions(**options))
            url = stack.enter_context(served(app))
            return stack.enter_context(httpx.Client(base_url=url, timeout=60.0, trust_env=False, verify=CERTIFICATES))

        yield make


@pytest.fixture
def client(make_client: MakeClient) -> httpx.Client:
    return make_client()


@pytest.fixture(scope="module")
def shared_client(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """One application for a module's tests that change nothing, such as refusals."""
    with ExitStack() as stack:
        url = stack.enter_context(fresh_database(postgres))
        home = tmp_path_factory.mktemp("shared") / "home"
        app = create_app(Settings(home=home, database_url=url, allow_python_models=True), ApiOptions())
        url = stack.enter_context(served(app))
        yield stack.enter_context(httpx.Client(base_url=url, timeout=60.0, trust_env=False, verify=CERTIFICATES))


@pytest.fixture
def seeder(database: Database, settings: Settings) -> Seeder:
    return Seeder(database, ContentStore(settings.store_folder))


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """The application under uvicorn, in a thread of this process."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=2, http=BoundedProtocol)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        wait_until(lambda: server.started)
        yield url
    finally:
        server.should_exit = True
        thread.join(QUIET_SECONDS)
        listener.close()
    assert not thread.is_alive(), "the server ended"


def check_problem(response: httpx.Response, code: str, status: int, *words: str) -> dict[str, Any]:
    """The response is a whole problem document of that sort, and says these words."""
    document = response.json()
    assert response.status_code == status, document
    assert response.headers["content-type"] == "application/problem+json"
    assert document["type"] == f"urn:penstock:problem:{code}"
    assert document["status"] == status
    assert document["title"]
    assert document["request_id"] == response.headers["x-request-id"]
    for word in words:
        assert word in document["detail"], document["detail"]
    assert "Traceback" not in response.text
    return document
