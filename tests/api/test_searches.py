"""Pause, resume, extend, one trial, replay: what the API does to a run, and what it refuses."""

from __future__ import annotations

from typing import Any

import httpx

from penstock.db.repositories.queues import Wanted
from penstock.db.schema.records import Run
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder


def keys(client: httpx.Client, run: Run) -> dict[str, str]:
    document = client.get(f"/v1/runs/{run.id}").json()
    return {step["key"]: step["state"] for step in document["steps"]}


def post(client: httpx.Client, run: Run, what: str, **body: Any) -> httpx.Response:
    return client.post(f"/v1/runs/{run.id}/{what}", json=body or None)


def published(seeder: Seeder, run: Run) -> int:
    """How many steps a worker could take; the run is the only one, and nothing but its trials waits."""
    with seeder.database.begin() as tx:
        assert tx.queues.next_run(Wanted(("explore",))) in (run.id, None)
        return tx.queues.ready({"explore": 100})["explore"]


def test_a_paused_run_hands_out_no_trial(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=4)
    seeder.explore(run, 4)
    seeder.trial(run, 0)
    running = seeder.claim(run, "trial/0001")
    for _ in range(2):
        paused = post(client, run, "pause")
        assert (paused.status_code, paused.json()["paused"]) == (202, True)
    assert published(seeder, run) == 0
    with seeder.database.begin() as tx:
        assert tx.steps.get(running.id) == running, "what runs is left alone"
    document = client.get(f"/v1/runs/{run.id}").json()
    assert (document["state"], document["waiting_for"]) == ("running", "")
    resumed = post(client, run, "resume")
    assert (resumed.status_code, resumed.json()["paused"]) == (202, False)
    assert published(seeder, run) == 2
    assert post(client, run, "resume").status_code == 202
    assert [e["kind"] for e in client.get(f"/v1/runs/{run.id}/history").json()["items"][-2:]] == [
        "run.pause", "run.resume",
    ]  # fmt: skip


def test_an_extension_while_searching_is_more_trials(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=3)
    early = post(client, run, "extend", trials=2)  # before the search has begun: its own numbers stay free
    assert early.status_code == 202, early.text
    assert early.json()["progress"]["trials_total"] == 5
    seeder.explore(run, 3)
    assert post(client, run, "extend", trials=1).json()["progress"]["trials_total"] == 6
    trials = client.get(f"/v1/runs/{run.id}/trials").json()["items"]
    assert sorted(t["number"] for t in trials) == list(range(6))
    assert {t["state"] for t in trials} == {"queued"}
    assert keys(client, run)["select"] == "blocked"


def test_an_extension_after_the_end_chooses_and_packages_again(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(4)
    extended = post(client, run, "extend", trials=2)
    assert extended.status_code == 202, extended.text
    assert (extended.json()["state"], extended.json()["finished_at"]) == ("running", None)
    found = keys(client, run)
    assert {key: state for key, state in found.items() if "@" in key} == dict.fromkeys(
        ("select@2", "verify@2", "package@2"), "blocked"
    )
    again = post(client, run, "extend", trials=1)  # the second choice has not begun: these take part in it
    assert again.status_code == 202
    for number in (4, 5, 6):
        assert keys(client, run)["select@2"] == "blocked"
        seeder.trial(run, number)
    assert keys(client, run)["select@2"] == "queued"
    later = post(client, run, "extend", trials=1)
    assert later.status_code == 202
    assert keys(client, run)["select@3"] == "blocked"
    for key in ("select@2", "verify@2"):
        seeder.finish(run, key)
    state = client.get(f"/v1/runs/{run.id}/trials").json()["items"][-1]["state"]
    assert state == "blocked", "what is being chosen ends first"
    seeder.finish(run, "package@2")
    seeder.trial(run, 7)
    for key in ("select@3", "verify@3", "package@3"):
        seeder.finish(run, key)
    assert client.get(f"/v1/runs/{run.id}").json()["state"] == "succeeded"


def test_a_search_that_found_nothing_may_go_on(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=1)
    seeder.explore(run, 1)
    seeder.trial(run, 0)
    seeder.fail(run, "select", code="nothing-fits", what="none of the 1 designs keeps every limit")
    assert client.get(f"/v1/runs/{run.id}").json()["state"] == "failed"
    extended = post(client, run, "extend", trials=1).json()
    assert (extended["state"], extended["error"]) == ("running", None)
    seeder.trial(run, 1)
    assert keys(client, run)["select@2"] == "queued"


def test_what_cannot_be_paused_or_extended_says_why(make_client: MakeClient, seeder: Seeder) -> None:
    client = make_client(max_trials=30)
    done = seeder.finished_run(3)
    check_problem(post(client, done, "pause"), "run-finished", 409, "succeeded")
    check_problem(post(client, done, "resume"), "run-finished", 409)
    check_problem(post(client, done, "extend", trials=28), "invalid-request", 422, "31 trials", "at most 30")
    check_problem(post(client, done, "extend", trials=0), "invalid-request", 422)
    check_problem(post(client, done, "extend", tries=3), "invalid-request", 422, "trials")
    cancelled = seeder.run(trials=2)
    seeder.cancel(cancelled)
    check_problem(post(client, cancelled, "extend", trials=1), "run-finished", 409, "cancelled")
    failed = seeder.run(trials=2)
    seeder.fail(failed, "import", code="import-failed", what="no model")
    check_problem(post(client, failed, "extend", trials=1), "run-finished", 409, "never came to its search")
    for what in ("pause", "resume"):
        check_problem(client.post(f"/v1/runs/run_nope/{what}"), "run-not-found", 404)
    check_problem(client.post("/v1/runs/run_nope/extend", json={"trials": 1}), "run-not-found", 404)


def test_the_same_extension_is_made_once(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(3)
    url, headers = f"/v1/runs/{run.id}/extend", {"Idempotency-Key": "ci-1"}
    answers = [client.post(url, json={"trials": 2}, headers=headers) for _ in range(2)]
    assert [a.status_code for a in answers] == [202, 202]
    assert len(client.get(f"/v1/runs/{run.id}/trials").json()["items"]) == 5


def test_one_trial_and_its_replay(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(3)
    one = client.get(f"/v1/runs/{run.id}/trials/1").json()
    listed = client.get(f"/v1/runs/{run.id}/trials").json()["items"][1]
    assert {name: one[name] for name in listed} == listed
    assert "design" in one
    started = client.post(f"/v1/runs/{run.id}/trials/1/replay")
    assert started.status_code == 202
    again = started.json()
    assert started.headers["location"] == again["url"]
    assert [step["key"] for step in again["steps"]] == ["replay"]
    assert again["progress"]["trials_total"] == 0
    assert again["options"]["platform"] == run.options["platform"]
    for address in (f"{run.id}/trials/9", f"{run.id}/trials/9/replay", "run_nope/trials/1"):
        code = "run-not-found" if "nope" in address else "trial-not-found"
        method = "POST" if address.endswith("replay") else "GET"
        check_problem(client.request(method, f"/v1/runs/{address}"), code, 404)


def test_the_page_has_the_buttons_that_do_something(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=2)
    seeder.explore(run, 2)
    page = client.get(f"/runs/{run.id}", headers={"Accept": "text/html"}).text
    assert f'action="/v1/runs/{run.id}/pause"' in page
    assert f'action="/v1/runs/{run.id}/extend"' in page
    assert "/resume" not in page
    post(client, run, "pause")
    page = client.get(f"/runs/{run.id}", headers={"Accept": "text/html"}).text
    assert "/pause" not in page
    assert f'action="/v1/runs/{run.id}/resume"' in page
    assert f'action="/v1/runs/{run.id}/cancel"' in page
