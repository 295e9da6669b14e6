"""docs/client.md: every example runs as it stands, against a real service with somebody who does the work."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import penstock.client
from penstock.client import (
    AsyncClient,
    Client,
    ConflictError,
    InvalidRequestError,
    StillRunningError,
    UsageError,
)
from penstock.db.schema.records import Run
from penstock.db.schema.states import RunState
from tests.api.seeding import Seeder

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def workers(seeder: Seeder) -> Iterator[None]:
    """Finishes each run that is queued, as workers would."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.05):
            with seeder.database.begin() as tx:
                waiting = tx.runs.list(states=(RunState.QUEUED,)).items
            for run in waiting:
                do(seeder, run)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join()


def do(seeder: Seeder, run: Run) -> None:
    trials = int(run.options["trials"])
    seeder.explore(run, trials)
    for number in range(trials):
        seeder.trial(run, number)
    seeder.complete(run, 0)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(
    number: int,
    client: httpx.Client,
    workers: None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", str(client.base_url))
    monkeypatch.chdir(tmp_path)
    exec(compile(EXAMPLES[number], f"example {number}", "exec"), {"__name__": "example"})
    said = ("digits_mlp.penstock.zip", "succeeded", "latency_us<=1000: holds", "'succeeded', 'succeeded'", "run-not-")
    assert said[number] in capsys.readouterr().out


def test_the_page_names_what_is_public() -> None:
    missing = [name for name in penstock.client.__all__ if f"`{name}`" not in PAGE]
    assert missing == [], "docs/client.md says what may be relied on"
    assert sorted(penstock.client.__all__) == sorted(name for name in vars(penstock.client) if name[0].isupper())


def test_both_clients_do_the_same() -> None:
    def methods(kind: type) -> dict[str, list[str]]:
        found = inspect.getmembers(kind, inspect.isfunction)
        return {name: list(inspect.signature(one).parameters) for name, one in found if name[0] != "_"}

    assert methods(Client) == methods(AsyncClient)


def stream(*ids: int, end: bool = False) -> str:
    at = "2026-01-31T09:00:00Z"
    text = "".join(f'id: {n}\ndata: {{"id":{n},"kind":"x","at":"{at}","data":{{}}}}\n\n' for n in ids)
    return "retry: 2000\n\n" + text + ("event: end\ndata: {}\n\n" if end else ": still here\n\n")


def breaking() -> httpx.MockTransport:
    """A service that goes away in the middle of a stream, is busy, and comes back."""
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("Last-Event-ID"))
        match len(asked):
            case 1:
                return httpx.Response(200, text=stream(3, 4))
            case 2:
                raise httpx.ReadError("gone", request=request)
            case 3:
                return httpx.Response(503, json={"code": "database-unavailable", "detail": "away"})
            case _:
                assert asked == [None, "4", "4", "4"]
                return httpx.Response(200, text=stream(5, end=True))

    return httpx.MockTransport(answer)


def test_events_are_taken_up_where_they_broke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.services.client.patience._PAUSE_SECONDS", 0.01)
    with Client("http://127.0.0.1:1", transport=breaking()) as service:
        assert [event.id for event in service.events("run_x")] == [3, 4, 5]

    async def read() -> list[int]:
        async with AsyncClient("http://127.0.0.1:1", transport=breaking()) as service:
            return [event.id async for event in service.events("run_x")]

    assert asyncio.run(read()) == [3, 4, 5]


def test_refusals_are_told_apart(client: httpx.Client, seeder: Seeder, tmp_path: Path) -> None:
    done, waiting = seeder.finished_run(1), seeder.run()
    with Client(str(client.base_url), "") as service:
        with pytest.raises(ConflictError, match="already succeeded"):
            service.cancel(done.id)
        with pytest.raises(InvalidRequestError, match="did you mean 'u55c'"):
            service.submit_run(done.model_id, platform="u55x")
        with pytest.raises(StillRunningError, match="is still queued"):
            service.wait(waiting.id, timeout=0)
        with pytest.raises(ConflictError, match="has chosen no design"):
            service.compare_limits(service.run(waiting.id), ["dsp<=0.5"])
        with pytest.raises(UsageError, match="no limit"):
            service.compare_limits(service.run(done.id), ["dspp"])
        unknown, missed = service.compare_limits(service.run(done.id), ["power_w<=1", "latency_us<=1"])
        assert (unknown.holds, unknown.value, missed.holds, missed.evidence) == (False, None, False, "simulated")
        again = [service.submit("zoo:mlp", key="job-7", trials=1).id for _ in range(2)]
        assert again[0] == again[1], "a job that is restarted starts no second run"
