"""Server-sent events: complete, in order, and taken up again anywhere."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import httpx
from sqlalchemy.event import listen

from penstock.db import Database
from penstock.services.api.plumbing.hub import BATCH, EventHub
from penstock.services.api.routes.events import message
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.fixtures.waiting import QUIET_SECONDS


def read_stream(client: httpx.Client, url: str, **headers: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of a stream that ends by itself, with their ids; and the names of its other messages."""
    events, names, current = [], [], {}
    with client.stream("GET", url, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        for line in response.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                current[name] = value
            elif "event" in current:
                names.append(current["event"])
                current = {}
            elif "data" in current:
                event = json.loads(current["data"])
                assert int(current["id"]) == event["id"]
                events.append(event)
                current = {}
            else:
                current = {}
    return events, names


def test_a_finished_run_is_told_whole_and_ends(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(3)
    events, names = read_stream(client, f"/v1/runs/{run.id}/events")
    assert names == ["end"]
    assert events[0]["kind"] == "run.create"
    assert events[-1]["kind"] == "run.succeed"
    ids = [event["id"] for event in events]
    assert ids == sorted(set(ids))
    assert client.get(f"/v1/runs/{run.id}/history?limit=500").json()["items"] == events, "documents are the same"
    middle = ids[len(ids) // 2]
    rest, _ = read_stream(client, f"/v1/runs/{run.id}/events", **{"Last-Event-ID": str(middle)})
    assert [event["id"] for event in rest] == [number for number in ids if number > middle]
    again, _ = read_stream(client, f"/v1/runs/{run.id}/events?after={middle}")
    assert again == rest
    over = client.get(f"/v1/runs/{run.id}/events", headers={"Last-Event-ID": str(ids[-1])})
    assert (over.status_code, over.content) == (204, b"")


def test_a_stream_tells_whatever_words_an_event_has(client: httpx.Client, seeder: Seeder) -> None:
    """Some readers of streams take more letters for the end of a line than the standard does."""
    words = 'Größe\u2028"\x85\\ \n \ud83d\ude00'.encode("utf-16", "surrogatepass").decode("utf-16")
    run = seeder.run(name=words)
    seeder.cancel(run)
    events, names = read_stream(client, f"/v1/runs/{run.id}/events")
    assert names == ["end"]
    assert events == client.get(f"/v1/runs/{run.id}/history").json()["items"]
    assert events[0]["data"]["name"] == words


def test_events_arrive_as_they_happen(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run()

    def work() -> None:
        seeder.explore(run, 1)
        seeder.trial(run, 0)
        seeder.complete(run, 0)

    later = threading.Timer(0.3, work)
    later.start()
    events, names = read_stream(client, f"/v1/runs/{run.id}/events")
    later.join()
    assert names == ["end"]
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "run.create"
    assert kinds[-1] == "run.succeed"
    assert kinds.count("step.succeed") == 6


def test_long_histories_come_whole(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=BATCH // 2)
    seeder.explore(run, BATCH // 2)  # steps made and cancelled: more than one batch
    seeder.cancel(run)
    events, _ = read_stream(client, f"/v1/runs/{run.id}/events")
    assert len(events) > BATCH
    assert events[-1]["kind"] == "run.end_cancelled"


def test_much_that_happens_in_a_moment_is_asked_for_in_few_questions(database: Database, seeder: Seeder) -> None:
    """Each question waits for a processor three times where machines are busy, and what is told waits with it."""
    run = seeder.run()
    seeder.explore(run, 2 * BATCH)
    first = database.run(lambda tx: tx.events.after(run.id, 0, 1))[0].id
    last = database.run(lambda tx: tx.events.newest_id(run.id))
    asked: list[str] = []
    listen(database.engine, "before_cursor_execute", lambda *said: asked.append(said[2]))

    async def follow() -> int:
        hub = EventHub(database, 8, message)
        leave, told, at = hub.enter(run.id, first), 0, first
        while at < last:
            assert await hub.newer(run.id, at, QUIET_SECONDS)
            news = hub.news(run.id, at)
            assert news is not None, "what just came is kept"
            told, at = told + news.text.count("\nid: ") + 1, news.last
        leave()
        await hub.close()
        return told

    told = asyncio.run(follow())
    assert told >= 2 * BATCH
    assert len(asked) <= told // BATCH + 2


def test_bad_event_ids_and_too_many_streams(make_client: MakeClient, seeder: Seeder) -> None:
    client = make_client(max_streams=1)
    run = seeder.run()
    for bad in ("abc", "-1", "1.5", str(2**63), "9" * 50):
        response = client.get(f"/v1/runs/{run.id}/events", headers={"Last-Event-ID": bad})
        check_problem(response, "bad-event-id", 422, "Last-Event-ID")
    check_problem(client.get(f"/v1/runs/{run.id}/history?after=x"), "invalid-request", 422, "query.after")
    with client.stream("GET", f"/v1/runs/{run.id}/events") as stream:
        lines = stream.iter_lines()
        assert next(lines).startswith("retry:")
        response = client.get(f"/v1/runs/{run.id}", params={"wait": 5})
        check_problem(response, "too-many-streams", 429, "at most 1")
        seeder.cancel(run)
