"""Kept measurements, differences of rungs, and why a run chose its design, as the API gives them."""

from __future__ import annotations

import json

import httpx

from penstock.db.schema.records import NewProfile, RungPair
from tests.api.conftest import check_problem
from tests.api.seeding import Seeder


def test_statistics_of_kept_measurements(client: httpx.Client, seeder: Seeder) -> None:
    assert client.get("/v1/profiles").json() == {
        "hits": 0, "misses": 0, "waits": 0, "failures": 0, "evicted": 0, "seconds_saved": 0.0, "measuring": 0,
        "tools": [],
    }  # fmt: skip
    with seeder.database.begin() as tx:
        tx.profiles.put([NewProfile("k", "u55c", "vitis-csynth", "csynth", {"ii": 1}, 60.0)])
        tx.profiles.use(["k"])
        tx.profiles.count({"hits": 1, "misses": 2, "seconds_saved": 60.0})
        tx.profiles.claim(["other"], "somebody", "", 60)
    found = client.get("/v1/profiles").json()
    assert (found["hits"], found["misses"], found["seconds_saved"], found["measuring"]) == (1, 2, 60.0, 1)
    assert found["tools"] == [
        {"tool": "vitis-csynth", "evidence": "csynth", "profiles": 1, "uses": 1, "seconds": 60.0}
    ]  # fmt: skip


def test_differences_of_rungs_and_why_a_run_chose(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=1)
    path = f"/v1/runs/{run.id}/explanation"
    empty = {"run": run.id, "why": None, "rung_errors": [], "correction": "", "profiles": None, "differences": []}
    assert client.get(path).json() == empty
    assert client.get("/v1/rungs").json() == {"items": []}
    why = {"sentences": ["fc1 sets the pace"]}
    with seeder.database.begin() as tx:
        tx.rung_pairs.add(run.id, [RungPair("m", "d", "modelled", "csynth", "f", "II = 1", 100.0, 125.0)])
        step = tx.steps.by_key(run.id, "import")
        assert step is not None
        tx.artifacts.create(run.id, step.id, [
            seeder.file("exploration.json", json.dumps({"why": why, "correction": "none"}).encode(), "application/json")
        ])  # fmt: skip
    [difference] = client.get("/v1/rungs").json()["items"]
    assert (difference["weaker"], difference["designs"], difference["median_ratio"]) == ("modelled", 1, 1.25)
    found = client.get(path).json()
    assert (found["why"], found["correction"], found["differences"]) == (why, "none", [difference])
    check_problem(client.get("/v1/runs/run_none/explanation"), "run-not-found", 404, "run_none")
