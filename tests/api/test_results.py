"""Trials, artifacts and downloads."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from penstock.db.schema.ids import new_id
from tests.api.conftest import check_problem
from tests.api.seeding import Seeder, newest_artifact, summary_of


def test_trials_tell_figures_evidence_and_failures(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=5)
    seeder.explore(run, 5)
    for number in range(2):
        seeder.trial(run, number)
    seeder.fail(run, "trial/0002", code="csim-failed", what="g++ ended with code 1", log_tail="error: expected ;")
    seeder.claim(run, "trial/0003")
    trials = client.get(f"/v1/runs/{run.id}/trials").json()["items"]
    assert [trial["number"] for trial in trials] == [0, 1, 2, 3, 4]
    assert [trial["state"] for trial in trials[2:]] == ["failed", "running", "queued"]
    assert trials[0]["figures"] == summary_of(0).figures
    assert trials[0]["evidence"] == "modelled"
    assert trials[2]["figures"] == {}
    assert trials[2]["evidence"] is None
    assert trials[2]["error"]["log_tail"] == "error: expected ;"


def test_trials_are_paged_and_the_chosen_one_is_marked(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(7)
    first = client.get(f"/v1/runs/{run.id}/trials?limit=4").json()
    second = client.get(f"/v1/runs/{run.id}/trials?limit=4&cursor={first['next_cursor']}").json()
    trials = first["items"] + second["items"]
    assert [trial["number"] for trial in trials] == list(range(7))
    assert second["next_cursor"] is None
    assert [trial["number"] for trial in trials if trial["chosen"]] == [run.summary["chosen_trial"]]
    check_problem(client.get(f"/v1/runs/{run.id}/trials?cursor=1"), "bad-cursor", 422, "'1'")


@pytest.mark.parametrize("sort", ["latency", "resources", "number"])
def test_sorted_pages_hold_every_trial_once(client: httpx.Client, seeder: Seeder, sort: str) -> None:
    run = seeder.run(trials=30)
    seeder.explore(run, 30)
    for number in range(20):
        seeder.trial(run, number)
    seen: list[dict[str, Any]] = []
    cursor: str | None = None
    while not seen or cursor:
        query = {"sort": sort, "limit": "7"} | ({"cursor": cursor} if cursor else {})
        answer = client.get(f"/v1/runs/{run.id}/trials", params=query).json()
        seen += answer["items"]
        cursor = answer["next_cursor"]
    assert sorted(trial["number"] for trial in seen) == list(range(30))
    if sort == "number":
        return
    figure = {"latency": "latency_us", "resources": "resource_share"}[sort]
    done = [trial for trial in seen if trial["figures"]]
    assert seen[: len(done)] == done
    assert done == sorted(done, key=lambda t: (t["state"] != "complete", t["figures"][figure], t["number"]))


@pytest.mark.parametrize("cursor", ["x", "3:1.0:2", "0:nan:2", "0:1e999999:2", "0::1", "stp_0", "0:1.0:99999999999"])
def test_a_cursor_of_nobody_is_refused(client: httpx.Client, seeder: Seeder, cursor: str) -> None:
    run = seeder.run(trials=1)
    answer = client.get(f"/v1/runs/{run.id}/trials", params={"sort": "latency", "cursor": cursor})
    check_problem(answer, "bad-cursor", 422)


def test_the_front_is_of_what_was_asked_for(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(trials=24)
    found = client.get(f"/v1/runs/{run.id}/front").json()
    kept = [n for n in range(24) if summary_of(n).state == "complete"]
    points = {n: (summary_of(n).figures["latency_cycles"], summary_of(n).figures["resource_share"]) for n in kept}
    beaten = {
        n for n, (x, y) in points.items() for a, b in points.values() if a <= x and b <= y and (a, b) != (x, y)
    }  # fmt: skip
    assert {(i["figures"]["latency_cycles"], i["figures"]["resource_share"]) for i in found["items"]} == {
        points[n] for n in kept if n not in beaten
    }
    assert (found["compared"], found["evidence"]) == (len(kept), "modelled")
    alone = client.get(f"/v1/runs/{run.id}/front", params={"objectives": "latency"}).json()
    assert [i["figures"]["latency_cycles"] for i in alone["items"]] == [min(x for x, _ in points.values())]


def test_downloads(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(2)
    artifacts = {file["name"]: file for file in client.get(f"/v1/runs/{run.id}/artifacts").json()["items"]}
    assert {"program.tar", "digits_mlp.penstock.zip", "report.json", "report.html", "dies.svg"} <= set(artifacts)
    assert artifacts["report.json"]["step"] == "package"
    package = artifacts["digits_mlp.penstock.zip"]
    response = client.get(package["url"])
    assert response.status_code == 200
    assert hashlib.sha256(response.content).hexdigest() == package["sha256"]
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["etag"] == f'"{package["sha256"]}"'
    assert 'filename="digits_mlp.penstock.zip"' in response.headers["content-disposition"]
    assert response.headers["content-disposition"].startswith("attachment")
    unchanged = client.get(package["url"], headers={"If-None-Match": response.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    head = client.head(package["url"])
    assert (head.status_code, head.content, int(head.headers["content-length"])) == (200, b"", package["size"])


def test_ranges(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(1)
    with seeder.database.begin() as tx:
        url = f"/v1/artifacts/{newest_artifact(tx, run, 'report.json')}"
    whole = client.get(url).content

    def part(wanted: str, **headers: str) -> httpx.Response:
        return client.get(url, headers={"Range": wanted, **headers})

    middle = part("bytes=2-9")
    assert (middle.status_code, middle.content) == (206, whole[2:10])
    assert middle.headers["content-range"] == f"bytes 2-9/{len(whole)}"
    assert part("bytes=5-").content == whole[5:]
    assert part("bytes=-5").content == whole[-5:]
    assert part("bytes=0-999999").content == whole
    for unserved in ("bytes=0-1,3-4", "lines=1-2", "bytes=-", "nonsense"):
        answer = part(unserved)
        assert (answer.status_code, answer.content) == (200, whole)
    assert part("bytes=2-9", **{"If-Range": '"other"'}).status_code == 200
    for outside in (f"bytes={len(whole)}-", "bytes=9-2", "bytes=-0"):
        refused = part(outside)
        check_problem(refused, "range-not-satisfiable", 416, f"{len(whole)} bytes")
        assert refused.headers["content-range"] == f"bytes */{len(whole)}"


def test_what_is_shown_inline_is_in_a_sandbox(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.finished_run(1)
    with seeder.database.begin() as tx:
        url = f"/v1/artifacts/{newest_artifact(tx, run, 'report.html')}"
    response = client.get(url, params={"inline": "true"})
    assert response.headers["content-disposition"].startswith("inline")
    assert response.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert response.headers["x-content-type-options"] == "nosniff"


def test_artifacts_that_are_not_there(client: httpx.Client, seeder: Seeder) -> None:
    for artifact in ("art_0", new_id("art"), new_id("run"), "..%2F..%2Fetc%2Fpasswd"):
        check_problem(client.get(f"/v1/artifacts/{artifact}"), "artifact-not-found" if "%2F" not in artifact else
                      "not-found", 404)  # fmt: skip
    run = seeder.finished_run(1)
    with seeder.database.begin() as tx:
        artifact = tx.artifacts.get(newest_artifact(tx, run, "report.json"))
    assert artifact is not None
    path = seeder.store.path(artifact.sha256)
    path.unlink()
    check_problem(client.get(f"/v1/artifacts/{artifact.id}"), "artifact-gone", 410, "report.json")
