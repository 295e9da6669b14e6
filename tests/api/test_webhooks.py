"""/v1/webhooks: whose they are, where they may go, what they tell; and the command line over them."""

from __future__ import annotations

import json
from dataclasses import replace

import httpx
import pytest

from penstock.services.api.plumbing.accounts import create
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder
from tests.api.test_accounts import bearer
from tests.cli.conftest import Run, run

__all__ = ["run"]

TARGET = "https://ci.example.org/hook"


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return replace(settings, webhook_targets=("ci.example.org",))


def test_a_webhook_is_its_owners(make_client: MakeClient, seeder: Seeder, settings: Settings) -> None:
    client = make_client(auth=True)
    ada, bob = (bearer(create(seeder.database, settings, name).secret) for name in ("ada", "bob"))
    root = bearer(create(seeder.database, settings, "root", scope="admin").secret)
    made = client.post("/v1/webhooks", json={"url": TARGET}, headers=ada).json()
    assert made["secret"].startswith("whsec_")
    assert made["kinds"] == ["run.succeeded", "run.failed"]
    at = f"/v1/webhooks/{made['id']}"
    check_problem(client.delete(at, headers=bob), "webhook-not-found", 404)
    check_problem(client.get(f"{at}/deliveries", headers=bob), "webhook-not-found", 404)
    assert client.get("/v1/webhooks", headers=bob).json() == {"items": []}
    assert [one["id"] for one in client.get("/v1/webhooks", headers=root).json()["items"]] == [made["id"]]
    assert "secret" not in client.get("/v1/webhooks", headers=ada).json()["items"][0]
    check_problem(client.post("/v1/webhooks", json={"url": TARGET, "everybody": True}, headers=ada), "forbidden", 403)
    assert client.post(f"{at}/rotate", headers=ada).json()["secret"] != made["secret"]
    assert client.post(f"{at}/test", headers=ada).status_code == 202
    told = client.get(f"{at}/deliveries", headers=ada).json()["items"]
    assert [(one["kind"], one["state"]) for one in told] == [("test", "pending")]
    assert client.delete(at, headers=ada).status_code == 204
    check_problem(client.get(f"{at}/deliveries?cursor=x", headers=ada), "webhook-not-found", 404)


@pytest.mark.parametrize(
    "body",
    [
        {"url": "https://127.0.0.1/"}, {"url": "https://elsewhere.org/"}, {"url": "no url"},
        {"url": f"https://{'a' * 1900}"},
        {"url": TARGET.replace("https", "http")}, {"url": "https://ci.example.org:99999999/"}, {"url": "https://[::1"},
        {"url": "https://xn--/"},
    ],
)  # fmt: skip
def test_a_target_that_is_not_allowed_is_refused(client: httpx.Client, body: dict[str, str]) -> None:
    check_problem(client.post("/v1/webhooks", json=body), "webhook-target-refused", 422, "PENSTOCK_WEBHOOK_TARGETS")


def test_from_the_command_line(run: Run) -> None:
    made = run("webhook", "create", TARGET, "--kind", "run.cancelled")
    assert made.code == 0, made.err
    name, secret = made.out.split()
    assert secret.startswith("whsec_")
    assert run("webhook", "test", name).code == 0
    assert "pending" in run("webhook", "deliveries", name).out
    assert json.loads(run("webhook", "list", "--json").out)[0]["kinds"] == ["run.cancelled"]
    assert run("webhook", "rotate", name).out.startswith("whsec_")
    assert run("webhook", "delete", name).code == 0
    for wrong in (("create",), ("list", "x"), ("delete", name), ("create", "https://127.0.0.1/")):
        assert run("webhook", *wrong).code == 2
