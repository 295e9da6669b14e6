"""Tags, notes and saved views: whose they are, what they may hold, and that pages show them as they are."""

from __future__ import annotations

import httpx

from penstock.client import Client
from penstock.services.api.app import create_app
from penstock.services.api.plumbing.accounts import create
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient, check_problem, served
from tests.api.seeding import Seeder
from tests.api.test_accounts import bearer

OVERRIDE = "\u202e"


def test_what_is_written_beside_a_run_is_found_and_told(client: httpx.Client, seeder: Seeder) -> None:
    run, other = seeder.run(name="first"), seeder.run(name="second")
    at = f"/v1/runs/{run.id}"
    given = client.patch(at, json={"tags": ["paper-v2", "größe", "paper-v2"], "notes": f"a{OVERRIDE}b\r\n<b>c</b>"})
    assert (given.json()["tags"], given.json()["notes"]) == (["paper-v2", "größe"], "ab\n<b>c</b>")
    client.patch(at, json={"notes": "kept"})
    assert client.get(at).json()["tags"] == ["paper-v2", "größe"], "what is left out stays"
    client.patch(at, json={"notes": "kept"})
    told = [one["data"] for one in client.get(f"{at}/history").json()["items"] if one["kind"] == "run.label"]
    assert [one["notes"] for one in told] == ["ab\n<b>c</b>", "kept"], "what changes nothing is no event"
    found = client.get("/v1/runs", params={"tag": "größe"}).json()["items"]
    assert [one["id"] for one in found] == [run.id]
    for page in (f"/runs/{run.id}", "/runs?tag=paper-v2"):
        html = client.get(page).text
        assert "paper-v2</bdi>" in html
        assert other.id not in html
    for wrong in (["two words"], [f"a{OVERRIDE}b"], ["x" * 41], ["<b>"], [""], [f"t{n}" for n in range(21)]):
        check_problem(client.patch(at, json={"tags": wrong}), "invalid-request", 422)
    for notes in ("x" * 4001, "a\x00b", "a\x1bb"):
        check_problem(client.patch(at, json={"notes": notes}), "invalid-request", 422)


def test_only_its_owner_writes_beside_a_run(make_client: MakeClient, seeder: Seeder, settings: Settings) -> None:
    client = make_client(auth=True)
    ada, bob = (bearer(create(seeder.database, settings, name).secret) for name in ("ada", "bob"))
    reader = bearer(create(seeder.database, settings, "eve", scope="read").secret)
    root = bearer(create(seeder.database, settings, "root", scope="admin").secret)
    model = client.post("/v1/models", json={"zoo": "mlp"}, headers=ada).json()
    at = f"/v1/runs/{client.post('/v1/runs', json={'model': model['id']}, headers=ada).json()['id']}"
    check_problem(client.patch(at, json={"tags": ["mine"]}, headers=bob), "not-yours", 403, "ada")
    check_problem(client.patch(at, json={"tags": ["mine"]}, headers=reader), "forbidden", 403)
    assert client.patch(at, json={"tags": ["mine"]}, headers=ada).json()["tags"] == ["mine"]
    audit = client.get("/v1/audit", headers=root).json()["items"]
    changes = [(one["actor"], one["status"]) for one in audit if one["action"] == "PATCH /v1/runs/{run_id}"]
    assert changes == [("ada", 200), ("eve", 403), ("bob", 403)]
    view = client.post("/v1/views", json={"name": "mine", "tag": "mine", "state": "active"}, headers=ada).json()
    assert view["page"] == "/runs?state=active&tag=mine"
    again = client.post("/v1/views", json={"name": "mine", "words": "mlp"}, headers=ada).json()
    assert (again["id"], again["page"]) == (view["id"], "/runs?state=all&words=mlp")
    assert client.get("/v1/views", headers=bob).json()["items"] == []
    check_problem(client.delete(f"/v1/views/{view['id']}", headers=bob), "view-not-found", 404)
    for wrong in ({"name": ""}, {"name": OVERRIDE}, {"name": "x", "state": "odd"}):
        check_problem(client.post("/v1/views", json=wrong, headers=ada), "invalid-request", 422)
    for number in range(49):
        client.post("/v1/views", json={"name": f"v{number}"}, headers=ada)
    check_problem(client.post("/v1/views", json={"name": "more"}, headers=ada), "quota-exceeded", 429, "50")
    assert client.delete(f"/v1/views/{view['id']}", headers=ada).status_code == 204


def test_from_python(settings: Settings, seeder: Seeder) -> None:
    run = seeder.run()
    with served(create_app(settings, ApiOptions())) as url, Client(url) as client:
        client.label(run.id, tags=["a", "b"])
        client.label(run.id, notes="second thoughts")
        assert [(one.id, one.tags) for one in client.runs(tag="b")] == [(run.id, ["a", "b"])]
        view = client.save_view("b only", tag="b")
        assert [one.name for one in client.views()] == ["b only"]
        client.delete_view(view.id)
        assert client.views() == []
