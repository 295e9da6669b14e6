"""What stands before every address: tokens, other sites, idempotency, problems, outages, health."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from penstock.db import Database
from penstock.services.api.answers.problems import KINDS
from penstock.services.api.openapi import COMMITTED, document
from penstock.services.api.plumbing import health
from penstock.services.api.plumbing.accounts import all_tokens, create, revoke
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.api.plumbing.tokens import is_well_formed, make_token
from penstock.services.secret_key import load_key
from penstock.services.settings import SettingError, Settings
from penstock.services.supervisor.redis import EmbeddedRedis
from penstock.services.worker.sign_of_life import SignOfLife
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.fixtures.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


COMPILER = ("torch", "torch_mlir", "xdsl", "numpy", "optuna", "pulp", "networkx")
SERVER = ("fastapi", "starlette", "sqlalchemy", "alembic", "psycopg", "redis", "celery", "jinja2")


@pytest.mark.parametrize(
    ("absent", "work"),
    [
        (
            COMPILER,
            "import penstock.services.api.plumbing.accounts as _; from penstock.services.api.app import bare_app; "
            "bare_app().openapi()",
        ),
        ((*COMPILER, *SERVER), "import penstock.services.cli.runs"),
    ],
    ids=["the API without the compiler", "the client without compiler and server"],
)
def test_each_part_needs_only_its_own_packages(absent: tuple[str, ...], work: str) -> None:
    code = f"import sys\nfor name in {absent}: sys.modules[name] = None\n{work}\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_committed_description_is_that_of_the_code() -> None:
    repair = "run `python -m penstock.services.api.openapi` and commit docs/openapi.json"
    assert COMMITTED.read_text() == document(), repair


def test_every_problem_is_in_the_documentation() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    missing = [code for code, kind in KINDS.items() if f"| `{code}` | {kind.status} |" not in page]
    assert missing == []


def test_addresses_and_methods_that_do_not_exist(shared_client: httpx.Client) -> None:
    check_problem(shared_client.get("/v1/nothing"), "not-found", 404, "/v1/nothing", "openapi.json")
    refused = shared_client.delete("/v1/runs")
    check_problem(refused, "method-not-allowed", 405, "DELETE")
    assert refused.headers["allow"] == "GET, POST"
    for method in ("OPTIONS", "TRACE"):
        allowed = shared_client.request(method, "/v1/runs/run_0").headers["allow"]
        assert allowed == "DELETE, GET, PATCH"
    assert shared_client.request("TRACE", "/v1/webhooks/whk_0").headers["allow"] == "DELETE"
    assert shared_client.delete("/static/nothing.css").headers["allow"] == "GET, HEAD"
    check_problem(shared_client.get("/v1/runs/"), "not-found", 404)
    page = shared_client.get("/nothing", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "/nothing leads nowhere" in page.text


def test_every_response_carries_an_id_and_security_headers(shared_client: httpx.Client) -> None:
    response = shared_client.get("/v1/platforms", headers={"X-Request-Id": "ci-42"})
    assert response.headers["x-request-id"] == "ci-42"
    assert "script-src 'self'" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "u55c" in [platform["name"] for platform in response.json()["items"]]
    assert shared_client.get("/healthz", headers={"X-Request-Id": "<x>"}).headers["x-request-id"] != "<x>"


@pytest.mark.parametrize(
    "headers", [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "http://evil.example"},
                {"Origin": "null"}],
)  # fmt: skip
def test_other_sites_cannot_act(shared_client: httpx.Client, headers: dict[str, str]) -> None:
    refused = shared_client.post("/v1/runs/run_x/cancel", headers=headers)
    check_problem(refused, "cross-site-request", 403, "another site")
    assert shared_client.get("/v1/runs", headers=headers).status_code == 200


def test_own_pages_and_programs_can_act(shared_client: httpx.Client) -> None:
    own = str(shared_client.base_url).rstrip("/")
    for headers in ({"Sec-Fetch-Site": "same-origin", "Origin": own}, {"Origin": own}, {}):
        check_problem(shared_client.post("/v1/runs/run_x/cancel", headers=headers), "run-not-found", 404)


def test_a_rebound_name_is_refused(shared_client: httpx.Client) -> None:
    for host in ("evil.example", "evil.example:8750", "", "[::2]:80"):
        check_problem(shared_client.get("/v1/runs", headers={"Host": host}), "unknown-host", 421)
    for host in ("localhost:8750", "127.0.0.1", "[::1]:8750"):
        assert shared_client.get("/v1/runs", headers={"Host": host}).status_code == 200


def test_tokens_are_well_formed_and_nothing_else_is() -> None:
    token = make_token()
    assert is_well_formed(token)
    assert token.startswith("penstock_")
    swapped = token[:-1] + ("a" if token[-1] != "a" else "b")
    for wrong in ("", "penstock_", swapped, token + "x", token.removeprefix("penstock_"), token[:-1] + "é"):
        assert not is_well_formed(wrong)


def test_a_service_with_tokens(make_client: MakeClient, settings: Settings, database: Database) -> None:
    client = make_client(auth=True)
    refused = client.get("/v1/runs")
    check_problem(refused, "unauthenticated", 401, "asks for a token", "penstock token create")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    token = create(database, settings, "ci").secret
    bearer = {"Authorization": f"Bearer {token}"}
    assert client.get("/v1/runs", headers=bearer).status_code == 200
    for wrong in (make_token(), "nonsense", "penstock_"):
        check_problem(client.get("/v1/runs", headers={"Authorization": f"Bearer {wrong}"}), "unauthenticated", 401)
    assert client.get("/v1/health").json()["auth"] == "tokens"
    [(known, _)] = all_tokens(database)
    assert token.startswith(known.prefix)
    assert token.encode() not in known.digest
    assert known.last_used_at is not None
    assert revoke(database, known.id)
    check_problem(client.get("/v1/runs", headers=bearer), "unauthenticated", 401, "not valid")
    old = create(database, settings, "old", days=1e-9).secret
    check_problem(client.get("/v1/runs", headers={"Authorization": f"Bearer {old}"}), "unauthenticated", 401)


def test_signing_in_with_a_browser(make_client: MakeClient, settings: Settings, database: Database) -> None:
    client = make_client(auth=True)
    asked = client.get("/runs?state=failed")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=/runs%3Fstate%3Dfailed")
    assert "token is not valid" in client.post("/login", data={"token": "nonsense"}).text
    token = create(database, settings, "ada").secret
    signed = client.post("/login", data={"token": token, "next": "//evil.example"})
    assert (signed.status_code, signed.headers["location"]) == (303, "/runs")
    cookie = signed.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert token not in cookie
    assert "Secure" not in cookie
    assert "samesite=strict" in cookie.lower()
    assert "No runs yet" in client.get("/runs").text
    assert client.get("/v1/runs").status_code == 200
    session = dict(client.cookies)
    client.get("/logout")
    assert client.get("/runs").status_code == 303
    client.cookies.update(session)
    assert client.get("/runs").status_code == 303, "the session is over for the service, too"


def test_the_key_of_the_digests_is_private_and_made_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "secret.key"
    keys: list[bytes] = []
    threads = [threading.Thread(target=lambda: keys.append(load_key(path))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 1
    assert path.stat().st_mode & 0o077 == 0
    assert [file.name for file in path.parent.iterdir()] == ["secret.key"]


def test_tokens_are_asked_for_unless_it_is_said(settings: Settings) -> None:
    assert ApiOptions.from_environment(settings, {}).auth is True
    assert ApiOptions.from_environment(settings, {"PENSTOCK_AUTH": "off"}).auth is False
    with pytest.raises(SettingError, match="PENSTOCK_AUTH='maybe'"):
        ApiOptions.from_environment(settings, {"PENSTOCK_AUTH": "maybe"})
    with pytest.raises(SettingError, match="PENSTOCK_MAX_TRIALS='0'"):
        ApiOptions.from_environment(settings, {"PENSTOCK_MAX_TRIALS": "0"})


def test_an_idempotent_request_is_done_once(client: httpx.Client, seeder: Seeder) -> None:
    asked = {"model": seeder.model().id, "trials": 4}
    key = {"Idempotency-Key": "build-17"}
    first = client.post("/v1/runs", json=asked, headers=key)
    again = client.post("/v1/runs", json={"trials": 4, "model": asked["model"]}, headers=key)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["location"] == first.headers["location"]
    assert again.headers["idempotency-replayed"] == "true"
    assert len(client.get("/v1/runs").json()["items"]) == 1
    other = client.post("/v1/runs", json=asked | {"trials": 5}, headers=key)
    check_problem(other, "idempotency-mismatch", 422, "another request")
    for bad in (b"x" * 201, b"a b", "\u00e9".encode()):
        refused = client.post("/v1/runs", json=asked, headers=[(b"Idempotency-Key", bad)])
        check_problem(refused, "idempotency-key-invalid", 422, "200")
    files = {"file": ("net.py", b"def model(): pass\n")}
    model = client.post("/v1/models", files=files, data={"entry": "model"}, headers={"Idempotency-Key": "m"})
    same = client.post("/v1/models", files=files, data={"entry": "model"}, headers={"Idempotency-Key": "m"})
    assert same.json()["id"] == model.json()["id"]


def test_a_refused_request_does_not_use_up_its_key(client: httpx.Client, seeder: Seeder) -> None:
    key = {"Idempotency-Key": "k"}
    check_problem(client.post("/v1/runs", json={"model": "mdl_x"}, headers=key), "model-not-found", 404)
    assert client.post("/v1/runs", json={"model": seeder.model().id}, headers=key).status_code == 202


def test_a_key_in_flight_is_told_and_an_old_one_is_forgotten(client: httpx.Client, seeder: Seeder) -> None:
    asked = {"model": seeder.model().id}
    key = {"Idempotency-Key": "slow"}
    with seeder.database.begin() as tx:
        assert tx.idempotency.try_lock("anyone", "slow")
        busy = client.post("/v1/runs", json=asked, headers=key)
        check_problem(busy, "idempotency-in-flight", 409, "still being worked on")
        assert busy.headers["retry-after"] == "1"
    first = client.post("/v1/runs", json=asked, headers=key).json()
    with seeder.database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.idempotency_keys SET created_at = now() - interval '25 h'")
    assert client.post("/v1/runs", json=asked, headers=key).json()["id"] != first["id"]


def test_a_database_that_is_away_is_a_503(make_client: MakeClient, settings: Settings, tmp_path: Path) -> None:
    away = replace(settings, database_url=f"postgresql:///penstock?host={tmp_path}")
    client = make_client(away)
    for response in (client.get("/v1/runs"), client.post("/v1/runs", json={"model": "mdl_x"})):
        check_problem(response, "database-unavailable", 503, "nothing was lost")
        assert response.headers["retry-after"] == "5"
    ready = client.get("/healthz")
    assert (ready.status_code, ready.text) == (503, "the database does not answer\n")
    health = client.get("/v1/health")
    assert (health.status_code, health.json()["status"], health.json()["database"]["status"]) == (503, "down", "down")
    page = client.get("/runs", headers={"Accept": "text/html"})
    assert page.status_code == 503
    assert "the database does not answer" in page.text


def test_an_older_api_says_that_it_should_not_be_asked(client: httpx.Client, database: Database) -> None:
    """Where two versions run on one database, whoever shares out requests learns which one is behind."""
    assert client.get("/healthz").text == "ok\n"
    with database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.alembic_version SET version_num = '0999'")
    ready, health = client.get("/healthz"), client.get("/v1/health")
    assert (ready.status_code, health.status_code) == (503, 503)
    assert "the database has schema 0999, and this version knows none after" in ready.text
    assert "schema 0999" in health.json()["database"]["detail"]


def test_health_tells_each_part(
    make_client: MakeClient,
    settings: Settings,
    seeder: Seeder,
    redis: EmbeddedRedis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = make_client(replace(settings, redis_url=redis.client_url))
    run = seeder.run()
    idle = client.get("/v1/health").json()
    assert (idle["status"], idle["workers_alive"], idle["broker"]["status"]) == ("starting", 0, "ok")
    with monkeypatch.context() as later:
        later.setattr(health, "STARTING_SECONDS", 0.0)
        assert client.get("/v1/health").json()["status"] == "degraded"
    assert idle["queues"] == [{"name": "import", "waiting": 1, "running": 0}]
    sign = SignOfLife(redis.client_url, "lab-1", ["import", "explore"], 4)
    sign.start()
    wait_until(lambda: client.get("/v1/health").json()["workers_alive"] == 1)
    known = client.get("/v1/health").json()
    assert known["status"] == "ok"
    assert known["workers"][0]["queues"] == ["import", "explore"]
    assert known["auth"].startswith("off")
    told = client.get("/metrics").text
    assert 'penstock_worker_slots{queue="explore"} 4\n' in told
    assert "penstock_workers_alive 1\n" in told
    sign.stop()
    wait_until(lambda: client.get("/v1/health").json()["workers_alive"] == 0)
    seeder.claim(run, "import")
    assert client.get("/v1/health").json()["workers_alive"] == 1, "whoever holds a lease is alive"
    redis.stop()
    wait_until(lambda: client.get("/v1/health").json()["broker"]["status"] == "down")
    assert client.get("/v1/health").json()["status"] == "degraded"
    assert client.get("/healthz").text == "ok\n"


def test_a_value_is_taken_for_no_other_one(shared_client: httpx.Client) -> None:
    answer = shared_client.post("/v1/runs/run_0/ask", json={"trials": 8.0})
    check_problem(answer, "run-not-found", 404)
    for body in ({"trials": 8.5}, {"trials": "8"}, {"trials": True}):
        check_problem(shared_client.post("/v1/runs/run_0/ask", json=body), "invalid-request", 422, "body.trials")
    for body in ({"older_than_days": 36500, "dry_run": 1}, {"older_than_days": "36500", "dry_run": True}):
        check_problem(shared_client.post("/v1/gc", json=body), "invalid-request", 422, "body.")
