"""Who may do what: scopes, owners, sessions, the audit log."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from fastapi.routing import APIRoute

from penstock.db import Database
from penstock.services.api.app import ROUTERS
from penstock.services.api.plumbing.access import ACCESS
from penstock.services.api.plumbing.accounts import (
    all_tokens,
    create,
    ensure_local_token,
    first_link,
    revoke,
    rotate,
)
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.fixtures.waiting import wait_until

SAFE = ("GET", "HEAD")


def operations() -> Iterator[tuple[str, str, str]]:
    """Every method and address of the application, with what it is called."""
    for router in ROUTERS:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in sorted(route.methods or ()):
                yield method, route.path, route.name


def filled(path: str) -> str:
    for name, value in {
        "run_id": "run_x",
        "model_id": "mdl_x",
        "artifact_id": "art_x",
        "webhook_id": "whk_x",
        "view_id": "viw_x",
        "name": "w",
        "number": "1",
        "ticket": "t",
        "sha256": "0" * 64,
    }.items():
        path = path.replace(f"{{{name}}}", value)
    assert "{" not in path, f"give {path} a value"
    return path


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


@pytest.fixture
def client(make_client: MakeClient) -> httpx.Client:
    return make_client(auth=True)


@pytest.fixture
def tokens(database: Database, settings: Settings) -> dict[str, str]:
    return {
        scope: create(database, settings, scope, owner=f"{scope}er", scope=scope).secret
        for scope in ("read", "submit", "admin")
    }  # fmt: skip


def test_every_operation_says_what_it_needs() -> None:
    assert {name for _, _, name in operations()} == set(ACCESS)


def test_without_a_token_only_the_ways_in_answer(client: httpx.Client) -> None:
    for method, path, name in operations():
        answer = client.request(method, filled(path))
        if ACCESS[name] == "nobody":
            assert answer.status_code != 401, path
        elif ACCESS[name] == "page":
            assert answer.headers["location"].startswith("/login"), path
        else:
            assert answer.status_code == 401, (method, path, answer.text)


def test_a_scope_holds_those_below_it_and_no_more(client: httpx.Client, tokens: dict[str, str]) -> None:
    order = ("read", "submit", "admin")
    for method, path, name in operations():
        if ACCESS[name] in ("nobody", "page") or name == "stream_events":
            continue
        for scope in order:
            answer = client.request(method, filled(path), headers=bearer(tokens[scope]))
            forbidden = order.index(scope) < order.index(str(ACCESS[name]))
            assert (answer.status_code == 403) == forbidden, (method, path, scope, answer.text)
    refused = client.post("/v1/runs/run_x/cancel", headers=bearer(tokens["read"]))
    check_problem(refused, "forbidden", 403, "its scope is read", "--scope submit")


def test_what_is_somebody_elses_stays(
    client: httpx.Client, seeder: Seeder, tokens: dict[str, str], database: Database, settings: Settings
) -> None:
    asked = {"model": seeder.model().id, "trials": 4}
    mine = bearer(tokens["submit"])
    run = client.post("/v1/runs", json=asked, headers=mine).json()
    assert run["owner"] == "submiter"
    other = bearer(create(database, settings, "other").secret)
    for action in ("cancel", "pause", "resume"):
        refused = client.post(f"/v1/runs/{run['id']}/{action}", headers=other)
        check_problem(refused, "not-yours", 403, "belongs to submiter")
    refused = client.post(f"/v1/runs/{run['id']}/extend", json={"trials": 1}, headers=other)
    check_problem(refused, "not-yours", 403)
    assert client.get(f"/v1/runs/{run['id']}", headers=other).json()["state"] == "queued"
    second = bearer(create(database, settings, "another token of mine", owner="submiter").secret)
    assert client.post(f"/v1/runs/{run['id']}/pause", headers=second).status_code == 202
    assert client.post(f"/v1/runs/{run['id']}/cancel", headers=bearer(tokens["admin"])).status_code == 202
    history = client.get(f"/v1/runs/{run['id']}/history", headers=mine).json()["items"]
    actors = {event["kind"]: event["actor"] for event in history}
    assert (actors["run.create"], actors["run.pause"], actors["run.cancel"]) == ("submiter", "submiter", "adminer")
    nobodys = seeder.run()
    check_problem(client.post(f"/v1/runs/{nobodys.id}/cancel", headers=mine), "not-yours", 403, "nobody in particular")


def test_every_change_is_in_the_audit_log(client: httpx.Client, seeder: Seeder, tokens: dict[str, str]) -> None:
    admin = bearer(tokens["admin"])

    def written(actor: str) -> bool:
        """Answers are on their way before they are written down."""
        return bool(client.get("/v1/audit", params={"actor": actor}, headers=admin).json()["items"])

    client.post(
        "/v1/runs", json={"model": seeder.model().id}, headers=bearer(tokens["submit"]) | {"X-Request-Id": "ci-1"}
    )
    wait_until(lambda: written("submiter"))
    client.post("/v1/runs/run_x/cancel", headers=bearer(tokens["read"]))
    client.get("/v1/runs", headers=admin)
    client.post("/v1/runs/run_x/cancel")
    wait_until(lambda: written("reader"))
    items = client.get("/v1/audit", headers=admin).json()["items"]
    requests = [(one["actor"], one["action"], one["status"]) for one in items if one["status"] is not None]
    assert requests == [
        ("reader", "POST /v1/runs/{run_id}/cancel", 403),
        ("submiter", "POST /v1/runs", 202),
    ]
    assert {one["request_id"] for one in items if one["actor"] == "submiter"} == {"ci-1"}
    assert [one["action"] for one in items if one["actor"].startswith("operator ")] == ["token.create"] * 3
    page = client.get("/v1/audit", params={"limit": 1, "actor": "reader"}, headers=admin).json()
    assert [one["actor"] for one in page["items"]] == ["reader"]
    check_problem(client.get("/v1/audit", params={"cursor": "x"}, headers=admin), "bad-cursor", 422)


def test_the_audit_log_cannot_be_rewritten(database: Database, settings: Settings) -> None:
    create(database, settings, "ada")
    with pytest.raises(Exception, match="append-only"), database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.audit SET actor = 'somebody else'")


def test_a_token_in_an_address_is_refused(client: httpx.Client, tokens: dict[str, str]) -> None:
    secret = tokens["admin"]
    for address in (f"/v1/runs?token={secret}", f"/v1/runs?x=a%26{secret}", f"/runs/{secret}", f"/enter/{secret}"):
        refused = client.get(address, headers=bearer(secret))
        check_problem(refused, "token-in-url", 400, "penstock token rotate")
        assert secret not in refused.text
    assert client.get("/v1/runs?model=penstock_digits", headers=bearer(secret)).status_code == 404


def test_a_link_lets_a_browser_in_once(
    make_client: MakeClient, client: httpx.Client, tokens: dict[str, str], settings: Settings, database: Database
) -> None:
    link = client.post("/v1/login-links", headers=bearer(tokens["read"])).json()["url"]
    entered = client.get(link)
    assert (entered.status_code, entered.headers["location"]) == (303, "/runs")
    assert client.get("/v1/me").json() == {"owner": "reader", "scope": "read"}
    assert client.post("/v1/runs/run_x/cancel").status_code == 403
    second = make_client(auth=True)
    again = second.get(link.replace(str(client.base_url).rstrip("/"), str(second.base_url).rstrip("/")))
    assert again.status_code == 403
    with database.begin() as tx:
        begun = [one.target for one in tx.audit.list(actor="reader").items if one.action == "session.begin"]
    assert begun == ["enter"], "the link itself is not written down"
    assert "used before" in again.text
    with database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.tokens SET revoked_at = now() WHERE scope = 'read'")
    assert client.get("/v1/me").status_code == 401, "a session ends with its token"
    local = first_link(database, settings, "")
    assert second.get(local).status_code == 303
    assert second.get("/v1/me").json()["scope"] == "admin"


def test_cookies_are_for_tls_only_where_there_is_tls(
    make_client: MakeClient, settings: Settings, database: Database
) -> None:
    client = make_client(replace(settings, url="https://penstock.example"), auth=True)
    secret = create(database, settings, "ada").secret
    assert "Secure" in client.post("/login", data={"token": secret}).headers["set-cookie"]
    forged = client.post("/v1/login-links", headers=bearer(secret) | {"X-Forwarded-Host": "evil.example"}).json()["url"]
    assert "evil.example" not in forged


def test_tokens_are_replaced_and_end(database: Database, settings: Settings) -> None:
    for days in (-5, 0):
        with pytest.raises(ValueError, match="good for nothing"):
            create(database, settings, "ci", days=days)
    for days in (math.inf, math.nan, 1e300):
        with pytest.raises(ValueError, match="36500 days at most"):
            create(database, settings, "ci", days=days)
    first = create(database, settings, "ci", owner="build", scope="read", days=30)
    second = rotate(database, settings, first.record.id, overlap_hours=1)
    assert second is not None
    assert (second.record.owner, second.record.scope, second.record.name) == ("build", "read", "ci")
    assert second.record.expires_at is not None
    third = rotate(database, settings, second.record.id)
    assert third is not None
    states = {token.id: state for token, state in all_tokens(database)}
    assert states == {first.record.id: "usable", second.record.id: "revoked", third.record.id: "usable"}
    assert rotate(database, settings, second.record.id) is None
    assert not revoke(database, second.record.id)


def test_ones_own_service_has_a_token_in_a_private_file(database: Database, settings: Settings) -> None:
    assert settings.own_token() == ""
    made = ensure_local_token(database, settings)
    assert settings.token_file.stat().st_mode & 0o777 == 0o600
    assert ensure_local_token(database, settings).id == made.id, "the same at the next start"
    assert made.scope == "admin"
    revoke(database, made.id)
    assert ensure_local_token(database, settings).id != made.id
