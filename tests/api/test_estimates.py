"""When a run may begin and end: from measured rates, and nothing where nothing was measured."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
from sqlalchemy import text

from penstock.db.schema.records import Run
from tests.api.seeding import Seeder

SECONDS = {"import": 10, "explore": 5, "trial": 4, "select": 20, "verify": 30, "package": 3}


def lasting(seeder: Seeder, run: Run) -> Run:
    """Its steps took so many seconds each, and have just ended."""
    with seeder.database.begin() as tx:
        for kind, seconds in SECONDS.items():
            tx.connection.execute(
                text(
                    "UPDATE steps SET started_at = now() - make_interval(secs => :s), finished_at = now()"
                    " WHERE run_id = :r AND kind = :k AND state = 'succeeded'"
                ),
                {"s": seconds, "r": run.id, "k": kind},
            )
        tx.connection.execute(text("UPDATE trials SET seconds = 4"))
    return run


def left(document: dict[str, dict[str, str]]) -> float:
    return (datetime.fromisoformat(document["estimate"]["end"]) - datetime.now(UTC)).total_seconds()


def test_nothing_is_said_where_nothing_was_measured(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=2)
    assert client.get(f"/v1/runs/{run.id}").json()["estimate"] is None


def test_what_is_left_takes_what_it_took_before(client: httpx.Client, seeder: Seeder) -> None:
    done = lasting(seeder, seeder.finished_run(2))
    assert client.get(f"/v1/runs/{done.id}").json()["estimate"] is None, "it is over"
    run = seeder.run(trials=10)
    waiting = client.get(f"/v1/runs/{run.id}").json()
    known = sum(SECONDS.values()) - SECONDS["trial"]
    assert abs(left(waiting) - (known + 10 * 4)) < 5
    assert datetime.fromisoformat(waiting["estimate"]["start"]) - datetime.now(UTC) < timedelta(seconds=1)
    seeder.explore(run, 10)
    for number in range(4):
        seeder.trial(run, number)
    with seeder.database.begin() as tx:
        # four trials in a minute, by whatever number of workers
        tx.connection.execute(
            text("UPDATE steps SET started_at = now() - interval '60 s' WHERE run_id = :r AND kind = 'trial'"),
            {"r": run.id},
        )
    going = client.get(f"/v1/runs/{run.id}").json()
    after_trials = sum(SECONDS[kind] for kind in ("select", "verify", "package"))
    assert abs(left(going) - (after_trials + 6 * 15)) < 8
    assert "4 trials a minute" in going["estimate"]["basis"]
    assert going["estimate"]["start"] == going["started_at"]
    client.post(f"/v1/runs/{run.id}/pause")
    assert client.get(f"/v1/runs/{run.id}").json()["estimate"] is None, "it is held back"


def test_a_run_begins_when_a_place_is_free(client: httpx.Client, seeder: Seeder) -> None:
    lasting(seeder, seeder.finished_run(1))
    for _ in range(2):
        seeder.claim(seeder.run(trials=1), "import")
    waiting = client.get(f"/v1/runs/{seeder.run(trials=1).id}").json()
    start = datetime.fromisoformat(waiting["estimate"]["start"]) - datetime.now(UTC)
    assert abs(start.total_seconds() - SECONDS["import"] / 2) < 3
