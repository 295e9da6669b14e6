"""What somebody who worries about a run is told: what it waits for, who is gone, what was wrong."""

from __future__ import annotations

import html
from dataclasses import replace

import httpx

from penstock.services.settings import Settings
from tests.api.conftest import MakeClient
from tests.api.seeding import Seeder
from tests.web.states import seed_states

TOLD = {
    "behind": ("<h2>Waiting</h2>", "Step import has waited for", "where"),
    "licence": ("<h2>Waiting</h2>", "waits for a licence of vitis_hls: 1 is in use"),
    "paused": ("<h2>Paused</h2>", "No trial starts until somebody resumes the run", "Resume"),
    "lost": ("<h2>Waiting</h2>", "The worker of step import is silent for", "another will take over"),
    "failed": ("no branches on data", "lstm.py:41", "static graphs", "use torch.where", "UserError: dynamic"),
}


def test_each_state_says_what_is_going_on(client: httpx.Client, seeder: Seeder) -> None:
    for name, run in seed_states(seeder).items():
        text = html.unescape(client.get(f"/runs/{run.id}").text)
        assert [words for words in TOLD[name] if words not in text] == [], name


def test_a_licence_that_is_given_back_is_waited_for_no_more(client: httpx.Client, seeder: Seeder) -> None:
    waits = seed_states(seeder)["licence"]
    for item in client.get("/v1/runs").json()["items"]:
        if item["name"] == "holds the licence":
            assert client.post(f"{item['url']}/cancel").status_code == 202
    with seeder.database.begin() as tx:
        tx.connection.exec_driver_sql("UPDATE penstock.steps SET state = 'cancelled' WHERE state = 'running'")
    said = client.get(f"/v1/runs/{waits.id}").json()["waiting_for"]
    assert "licence" not in said
    assert "has waited for" in said


def test_a_full_disk_is_told_on_each_page_that_it_holds_up(make_client: MakeClient) -> None:
    client = make_client(low_disk_bytes=1 << 60)
    for path in ("/runs", "/service", "/measurements"):
        text = client.get(path).text
        assert "The service is degraded" in text
        assert "Disk: " in text


def test_a_run_says_that_it_waits_for_a_full_disk(make_client: MakeClient, settings: Settings, seeder: Seeder) -> None:
    client = make_client(replace(settings, work_disk_bytes=1 << 60))
    run = seeder.run()
    text = client.get(f"/runs/{run.id}").text
    assert "<h2>Waiting: the disk is full</h2>" in text
    assert "GB without which no step is begun; nothing is lost. Whoever runs the service frees" in text
    seeder.claim(run, "import")
    assert "Waiting: the disk is full" not in client.get(f"/runs/{run.id}").text, "what is at work goes on"
