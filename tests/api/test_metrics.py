"""What a monitor reads, and the dashboard that draws it: one names what the other has."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from penstock.db import lifecycle
from penstock.services.api.plumbing import middleware
from penstock.services.api.plumbing.logs import get_logger
from penstock.services.api.plumbing.tokens import make_token
from penstock.services.settings import Settings
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder
from tests.fixtures.waiting import wait_until

DASHBOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana.json"
_LINE = re.compile(r'penstock_[a-z_]+({[a-z]+="[^"]*"(,[a-z]+="[^"]*")*})? -?[0-9.e+-]+')


def figures(client: httpx.Client) -> dict[str, float]:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    assert all(_LINE.fullmatch(line) for line in lines), answer.text
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}


def test_a_monitor_sees_queues_losses_licences_and_what_owners_used(
    make_client: MakeClient, settings: Settings, seeder: Seeder
) -> None:
    client = make_client(replace(settings, licences={"vitis_hls": 2}))
    run = seeder.run(trials=3)
    seeder.explore(run, 3)
    seeder.trial(run, 0)
    lost = seeder.claim(run, "trial/0001")
    with seeder.database.begin() as tx:
        lifecycle.lose(tx, lost.id, lost.fence, None)
        tx.connection.exec_driver_sql(
            "UPDATE penstock.steps SET queued_at = now() - interval '90 s' WHERE state = 'queued'"
        )
    seen = figures(client)
    assert seen['penstock_queue_waiting{queue="explore"}'] == 2
    assert seen['penstock_workers_wanted{queue="explore"}'] == 2
    assert 89 <= seen['penstock_queue_oldest_seconds{queue="explore"}'] < 600
    assert seen["penstock_leases_lost_total"] == 1
    assert seen["penstock_trials_last_hour"] == 1
    assert seen['penstock_runs{state="running"}'] == 1
    assert seen['penstock_attempts_total{owner=""}'] == 4
    assert (seen['penstock_licences{licence="vitis_hls"}'], seen['penstock_licences_in_use{licence="vitis_hls"}']) == (
        2,
        0,
    )
    assert seen["penstock_disk_free_bytes"] > 0


def test_the_dashboard_draws_what_there_is(client: httpx.Client) -> None:
    known = set(re.findall(r"# TYPE (penstock_[a-z_]+) ", client.get("/metrics").text))
    drawn = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
    named = {name for expression in drawn for name in re.findall(r"penstock_[a-z_]+", expression)}
    assert len(drawn) > 5
    assert named <= known


def test_each_request_is_a_line_without_its_secrets(make_client: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(middleware, "log", get_logger(written))
    client = make_client(access_log=True)
    answer = client.get("/v1/platforms?secret=x", headers={"Authorization": "Bearer nothing", "X-Request-Id": "abc"})
    wait_until(written.getvalue)  # it is written once the answer is on its way
    line = json.loads(written.getvalue())
    assert line["request_id"] == "abc"
    assert (line["method"], line["path"], line["status"]) == ("GET", "/v1/platforms", answer.status_code)
    assert line["ms"] >= 0
    assert "secret" not in json.dumps(line)
    assert "nothing" not in json.dumps(line)


@pytest.mark.parametrize("address", ["/runs/{}", "/enter/{}", "/v1/runs?token={}"])
def test_a_token_in_an_address_is_not_kept_by_the_log(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    written, token = io.StringIO(), make_token()
    monkeypatch.setattr(middleware, "log", get_logger(written))
    refused = make_client(access_log=True).get(address.format(token), headers={"Authorization": "Bearer nothing"})
    wait_until(written.getvalue)
    assert json.loads(written.getvalue())["status"] == refused.status_code == 400
    assert token not in written.getvalue()
