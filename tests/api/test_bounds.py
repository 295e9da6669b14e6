"""Who sends too much, too slowly or too often is refused before it costs the service memory or a place."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from penstock.services.api.plumbing import middleware
from penstock.services.supervisor import protocol
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.fixtures.waiting import QUIET_SECONDS


def connect(client: httpx.Client) -> socket.socket:
    return socket.create_connection((client.base_url.host, client.base_url.port or 0), timeout=QUIET_SECONDS)


def test_a_large_json_body_is_refused_before_it_is_read(client: httpx.Client) -> None:
    """Files may be large, since they go to the disk as they come; JSON is read into memory."""
    with connect(client) as line:
        line.sendall(
            b"POST /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 300000000\r\n\r\n{"
        )
        answer = line.recv(4096)
    assert answer.startswith(b"HTTP/1.1 413")
    sent = client.post("/v1/models", content=b" " * (2 << 20), headers={"Content-Type": "application/json"})
    check_problem(sent, "too-large", 413)


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "])
def test_a_connection_that_says_nothing_whole_is_closed(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)
    with connect(make_client()) as line:
        line.sendall(said)
        assert line.recv(100) == b""


def test_the_next_request_of_a_connection_must_come_whole_too(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEADER_SECONDS", 0.3)
    with connect(make_client()) as line:
        line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(4096).startswith(b"HTTP/1.1 200")
        line.sendall(b"GET /heal")
        said = b"".join(iter(lambda: line.recv(4096), b""))
    assert said.endswith(b"ok\n") or said == b""


def test_a_body_that_does_not_come_is_not_waited_for(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "BODY_SECONDS", 0.3)
    client = make_client()
    with connect(client) as line:
        line.sendall(
            b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n{"
        )
        assert line.recv(4096).startswith(b"HTTP/1.1 408")


def test_of_many_streams_at_once_no_more_than_allowed_are_open(make_client: MakeClient, seeder: Seeder) -> None:
    client = make_client(max_streams=3)
    run = seeder.run()

    def ask(_: int) -> int:
        with client.stream("GET", f"/v1/runs/{run.id}/events") as stream:
            if stream.status_code == 200:
                time.sleep(1.0)
            return stream.status_code

    with ThreadPoolExecutor(12) as pool:
        codes = list(pool.map(ask, range(12)))
    assert codes.count(200) >= 3
    assert set(codes) == {200, 429}
    seeder.cancel(run)
    with client.stream("GET", f"/v1/runs/{run.id}/events") as stream:
        assert stream.status_code == 200, "every place was given back"


def test_of_many_runs_at_once_no_more_than_allowed_are_taken(make_client: MakeClient, seeder: Seeder) -> None:
    client = make_client(max_waiting_runs=4)
    model = seeder.model()
    with ThreadPoolExecutor(10) as pool:
        codes = list(pool.map(lambda _: client.post("/v1/runs", json={"model": model.id}).status_code, range(10)))
    assert sorted(codes) == [202] * 4 + [429] * 6
