"""Deletion, pins and collection over REST and from the command line: whose may go, when, and what is told of it."""

from __future__ import annotations

import json

import httpx
import pytest

from penstock.services.api.plumbing.accounts import create
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.api.test_accounts import bearer
from tests.cli.conftest import Run, run

__all__ = ["run"]


def test_only_its_owner_lets_a_run_go(make_client: MakeClient, seeder: Seeder, settings: Settings) -> None:
    client = make_client(auth=True)
    ada, bob = (bearer(create(seeder.database, settings, name).secret) for name in ("ada", "bob"))
    root = bearer(create(seeder.database, settings, "root", scope="admin").secret)
    model = client.post("/v1/models", json={"zoo": "mlp"}, headers=ada).json()
    started = client.post("/v1/runs", json={"model": model["id"]}, headers=ada).json()
    at = f"/v1/runs/{started['id']}"
    for change in (client.delete, lambda path, headers: client.post(f"{path}/pin", headers=headers)):
        check_problem(change(at, headers=bob), "not-yours", 403, "ada")
    check_problem(client.delete(f"/v1/models/{model['id']}", headers=bob), "not-yours", 403, "the model belongs to ada")
    check_problem(client.delete(at, headers=ada), "run-going", 409, "is queued", "penstock cancel")
    client.post(f"{at}/cancel", headers=ada)
    assert client.post(f"{at}/pin", headers=ada).json()["pinned"] is True
    check_problem(client.delete(at, headers=root), "run-pinned", 409, "unpin")
    check_problem(client.delete(f"/v1/models/{model['id']}", headers=ada), "model-in-use", 409, "a run of this model")
    assert client.post(f"{at}/unpin", headers=ada).json()["pinned"] is False
    assert client.delete(at, headers=ada).json() == {"runs": 1, "models": 0, "bytes": 0}
    check_problem(client.delete(at, headers=ada), "run-not-found", 404)
    assert client.delete(f"/v1/models/{model['id']}", headers=ada).status_code == 204
    check_problem(client.post("/v1/gc", json={"older_than_days": 1}, headers=ada), "forbidden", 403, "admin")
    audit = client.get("/v1/audit", headers=root).json()["items"]
    told = [(one["actor"], one["status"]) for one in audit if one["action"] == "DELETE /v1/runs/{run_id}"]
    assert told == [("ada", 404), ("ada", 200), ("root", 409), ("ada", 409), ("bob", 403)]


def test_a_stream_ends_with_its_run(client: httpx.Client, seeder: Seeder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.services.api.plumbing.hub.DELETED_SECONDS", 0.2)
    waiting = seeder.run()
    with client.stream("GET", f"/v1/runs/{waiting.id}/events") as stream:
        lines = stream.iter_lines()
        next(lines)
        seeder.cancel(waiting)
        client.delete(f"/v1/runs/{waiting.id}")
        assert "event: end" in list(lines)


def test_from_the_command_line(run: Run, seeder: Seeder) -> None:
    done, kept, going = seeder.finished_run(1), seeder.finished_run(1), seeder.run(trials=2)
    assert run("pin", kept.id).out == f"{kept.id}: pinned\n"
    assert run("delete", kept.id).code == 1
    refused = run("delete", going.id)
    assert (refused.code, "stop it first" in refused.err) == (1, True)
    assert run("delete", going.id, "--cancel", going.model_id).code == 0
    said = json.loads(run("gc", "--older-than", "0d", "--dry-run", "--json").out)
    assert (said["runs"], said["models"], said["dry_run"]) == (1, 1, True)
    ended = run("gc", "--older-than", "0h")
    assert ended.out.startswith("removed 1 runs and 1 models")
    assert run("gc", "--older-than", "never").code == 2
    assert [one["id"] for one in json.loads(run("runs", "--json").out)["runs"]] == [kept.id]
    assert run("watch", done.id).code == 2


@pytest.mark.parametrize("days", [-1, "x", 1e9, float("1e308")])
def test_an_age_that_is_none_is_refused(shared_client: httpx.Client, days: object) -> None:
    check_problem(shared_client.post("/v1/gc", json={"older_than_days": days}), "invalid-request", 422)
