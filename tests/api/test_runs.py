"""Starting, listing, watching and stopping runs, and every way to ask for them wrongly."""

from __future__ import annotations

import threading
import time
from typing import Any, get_args

import httpx
import pytest

from penstock.compiler.evidence import DEFAULT_RUNG, RUNGS
from penstock.db.schema.ids import new_id
from penstock.services.jobs.quotas import Quotas
from penstock.services.run_options import Rung, RunOptions
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder, summary_of


@pytest.fixture(scope="module")
def zoo_model(shared_client: httpx.Client) -> str:
    return shared_client.post("/v1/models", json={"zoo": "mlp"}).json()["id"]


def test_a_run_is_accepted_with_its_graph(client: httpx.Client, seeder: Seeder) -> None:
    model = seeder.model()
    asked = {"model": model.id, "platform": "zcu104", "trials": 5, "quantize": "w8a8", "seed": 3, "name": "mine",
             "evidence": "modelled"}  # fmt: skip
    response = client.post("/v1/runs", json=asked)
    assert response.status_code == 202
    run = response.json()
    assert response.headers["location"] == run["url"]
    assert int(response.headers["retry-after"]) > 0
    assert (run["state"], run["name"], run["model"]["id"]) == ("queued", "mine", model.id)
    assert run["options"] == {
        "platform": "zcu104", "trials": 5, "gap": 1.0, "quantize": "w8a8", "seed": 3,
        "objectives": ["latency", "resources"],
        "evidence": "modelled", "max_lanes": None, "fifo_simulations": 400, "fifo_slack": 0.0, "equalisation": None,
        "aligned_by": "both",
        "bitstream": None, "limits": [],
        "sampler": "local", "priority": 0, "warm_start": True, "fix": [], "dims": [],
    }  # fmt: skip
    assert [(step["key"], step["state"]) for step in run["steps"]][:2] == [("import", "queued"), ("explore", "blocked")]
    assert run["progress"] == {
        "steps_done": 0, "steps_total": 5, "trials_done": 0, "trials_failed": 0, "trials_running": 0, "trials_total": 5,
        "trials_infeasible": None, "trials_per_minute": None, "seconds_left": None,
    }  # fmt: skip
    assert client.get(run["url"]).json()["id"] == run["id"]


def test_the_api_takes_every_evidence_that_a_search_can_be_ended_by() -> None:
    assert get_args(Rung) == RUNGS
    assert RunOptions.model_validate({}).evidence == DEFAULT_RUNG


def test_defaults_are_those_of_the_documentation(client: httpx.Client, seeder: Seeder) -> None:
    run = client.post("/v1/runs", json={"model": seeder.model().id}).json()
    assert run["options"] == {
        "platform": "u55c", "trials": None, "gap": 1.0, "quantize": None, "seed": 0,
        "objectives": ["latency", "resources"],
        "evidence": "simulated", "max_lanes": None, "fifo_simulations": 400, "fifo_slack": 0.0, "equalisation": None,
        "aligned_by": "both",
        "bitstream": None, "limits": [],
        "sampler": "local", "priority": 0, "warm_start": True, "fix": [], "dims": [],
    }  # fmt: skip
    assert run["name"] == "digits_mlp"


@pytest.mark.parametrize(
    ("options", "code", "where", "words"),
    [
        ({"platform": "u55x"}, "unknown-platform", "body.platform", ("u55x", "zcu104", "did you mean 'u55c'")),
        ({"plattform": "u55c"}, "unknown-option", "body.plattform", ("plattform", "did you mean 'platform'")),
        ({"trials": 0}, "invalid-request", "body.trials", ("greater than or equal to 1",)),
        ({"trials": 10**9}, "invalid-request", "body.trials", ("10000",)),
        ({"trials": "5"}, "invalid-request", "body.trials", ("integer",)),
        ({"trials": 1.5}, "invalid-request", "body.trials", ("integer",)),
        ({"trials": True}, "invalid-request", "body.trials", ("integer",)),
        ({"gap": -1}, "invalid-request", "body.gap", ("greater than or equal to 0",)),
        ({"gap": "small"}, "invalid-request", "body.gap", ("number",)),
        ({"quantize": "w2a2"}, "invalid-request", "body.quantize", ("w8a8",)),
        ({"seed": -1}, "invalid-request", "body.seed", ("greater than or equal to 0",)),
        ({"seed": 2**31}, "invalid-request", "body.seed", ("2147483647",)),
        ({"objectives": []}, "invalid-request", "body.objectives", ("at least 1",)),
        ({"objectives": ["latency", "latency"]}, "invalid-request", "body.objectives", ("twice", "once")),
        ({"evidence": "board"}, "invalid-request", "body.evidence", ("modelled", "simulated")),
        ({"objectives": ["latancy"]}, "unknown-objective", "body.objectives[0]", ("did you mean 'latency'", "energy")),
        ({"limits": ["power<=1", "dps<=0.5"]}, "unknown-limit", "body.limits", ("did you mean 'dsp'",)),
        ({"limits": ["dsp"]}, "invalid-request", "body.limits", ("dsp<=0.5",)),
        ({"limits": ["dsp<=0.2", "dsp>=0.4"]}, "contradictory-limits", "body.limits", ("dsp>=0.4", "dsp<=0.2")),
        ({"limits": ["dsp<=0.2", "dsp>=9000"]}, "contradictory-limits", "body", ("dsp>=9000", "dsp<=0.2")),
        ({"limits": ["lut>=2000000"]}, "contradictory-limits", "body", ("804,048 lut of u55c", "larger platform")),
        ({"limits": ["bandwidth<=1"], "platform": "ecp5-45k"}, "invalid-request", "body", ("ecp5-45k has none",)),
        ({"dims": ["seq"]}, "invalid-request", "body.dims", ("no range of lengths", "seq=1..64")),
        ({"dims": ["seq=8..4"]}, "invalid-request", "body.dims", ("8 is not below 4",)),
        ({"dims": ["seq=1..4", "seq=1..8"]}, "invalid-request", "body.dims", ("given twice",)),
        ({"dims": ["seq=1..8"]}, "bad-length", "body.dims", ("mlp has no option 'seq'",)),
        ({"name": "a\x00b"}, "invalid-request", "body.name", ("control character",)),
        ({"name": "x" * 201}, "invalid-request", "body.name", ("200",)),
        ({"platform": "\x00"}, "invalid-request", "body.platform", ("control character",)),
        ({"model": "mdl_nope"}, "model-not-found", "body.model", ("mdl_nope", "POST /v1/models")),
        ({"model": ""}, "invalid-request", "body.model", ("at least 1",)),
    ],
)
def test_options_that_are_refused(
    shared_client: httpx.Client, zoo_model: str, options: dict[str, Any], code: str, where: str, words: tuple[str, ...]
) -> None:
    status = 404 if code == "model-not-found" else 422
    response = shared_client.post("/v1/runs", json={"model": zoo_model} | options)
    document = check_problem(response, code, status, *words)
    assert document["where"] == where
    assert shared_client.get("/v1/runs").json()["items"] == []


def test_layers_that_share_an_accelerator_take_lengths(client: httpx.Client) -> None:
    model = client.post("/v1/models", json={"reference": "zoo:gpt2_text#h"}).json()["id"]
    refused = client.post("/v1/runs", json={"model": model, "dims": ["seq=1..4"]})
    check_problem(refused, "bad-length", 422, "gpt2_text has no option 'seq'", "chunk")
    taken = client.post("/v1/runs", json={"model": model, "dims": ["chunk=1..4", "cache=1..8"]})
    assert taken.status_code == 202
    assert taken.json()["options"]["dims"] == ["chunk=1..4", "cache=1..8"]


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"", 422), (b"null", 422), (b"[]", 422), (b'"x"', 422), (b"{", 400), (b"\xff\xfe", 400), (b"NaN", 422),
     (b'{"model": NaN}', 422), (b'{"model": "\\ud800"}', 422), (b"[" * 100_000, 400), (b'{"seed": 1e999}', 422)],
)  # fmt: skip
def test_bodies_that_are_no_runs(shared_client: httpx.Client, body: bytes, status: int) -> None:
    response = shared_client.post("/v1/runs", content=body, headers={"Content-Type": "application/json"})
    check_problem(response, "malformed-body" if status == 400 else "invalid-request", status)


def test_a_body_of_another_type(shared_client: httpx.Client) -> None:
    response = shared_client.post("/v1/runs", content=b"model=1", headers={"Content-Type": "text/plain"})
    assert response.status_code in (415, 422)
    check_problem(response, "unsupported-media-type" if response.status_code == 415 else "invalid-request",
                  response.status_code)  # fmt: skip


def test_the_list_is_paged_and_filtered(client: httpx.Client, seeder: Seeder) -> None:
    model = seeder.model()
    queued = [seeder.run(model).id for _ in range(5)]
    failed = seeder.run(model)
    seeder.fail(failed, "import", code="export-failed", what="torch cannot export it", hint="use torch.where")
    first = client.get("/v1/runs", params={"limit": 4}).json()
    second = client.get("/v1/runs", params={"limit": 4, "cursor": first["next_cursor"]}).json()
    ids = [run["id"] for run in first["items"] + second["items"]]
    assert ids == [failed.id, *reversed(queued)]
    assert second["next_cursor"] is None
    only = client.get("/v1/runs", params={"state": "failed"}).json()["items"]
    assert [run["id"] for run in only] == [failed.id]
    assert only[0]["error"]["what"] == "torch cannot export it"
    both = client.get("/v1/runs", params={"state": ["failed", "queued"], "model": model.id}).json()["items"]
    assert len(both) == 6
    assert client.get("/v1/runs", params={"model": seeder.model().id}).json()["items"] == []


def test_queries_that_are_refused(shared_client: httpx.Client) -> None:
    get = shared_client.get
    check_problem(get("/v1/runs?cursor=abc"), "bad-cursor", 422, "'abc'")
    check_problem(get(f"/v1/runs?cursor={new_id('mdl')}"), "bad-cursor", 422)
    check_problem(get("/v1/runs?limit=0"), "invalid-request", 422, "query.limit")
    check_problem(get("/v1/runs?limit=1000"), "invalid-request", 422, "100")
    check_problem(get("/v1/runs?state=lost"), "invalid-request", 422, "query.state[0]", "queued")
    check_problem(get("/v1/runs?model=mdl_x"), "model-not-found", 404, "mdl_x")
    for run in ("run_0", new_id("run"), "%00", "a" * 60):
        for address in (f"/v1/runs/{run}", f"/v1/runs/{run}/trials", f"/v1/runs/{run}/artifacts",
                        f"/v1/runs/{run}/events", f"/v1/runs/{run}/history"):  # fmt: skip
            check_problem(get(address), "run-not-found", 404, "penstock runs")
    check_problem(shared_client.post(f"/v1/runs/{new_id('run')}/cancel"), "run-not-found", 404)
    check_problem(get("/v1/runs/" + "a" * 100), "invalid-request", 422, "64")


def test_one_run_tells_steps_progress_and_the_best_trial(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run(trials=6)
    seeder.explore(run, 6)
    for number in range(3):
        seeder.trial(run, number)
    seeder.fail(run, "trial/0003", code="csim-failed", what="g++ ended with code 1")
    seeder.claim(run, "trial/0004")
    seen = client.get(f"/v1/runs/{run.id}").json()
    assert seen["state"] == "running"
    assert seen["progress"].pop("trials_per_minute") > 0
    assert seen["progress"].pop("seconds_left") >= 0, "rounded to a tenth, and a fast machine seeds trials in less"
    assert seen["progress"] == {
        "steps_done": 2, "steps_total": 5, "trials_done": 4, "trials_failed": 1, "trials_running": 1, "trials_total": 6,
        "trials_infeasible": 0,
    }  # fmt: skip
    fitting = [summary_of(number) for number in range(3) if summary_of(number).state == "complete"]
    best = min(fitting, key=lambda summary: summary.figures["latency_cycles"])
    assert seen["best"]["trial"] == best.number
    assert seen["best"]["latency"] == best.figures["latency_cycles"]
    assert seen["best"]["evidence"] == "modelled"
    assert [step["key"] for step in seen["steps"]] == ["import", "explore", "select", "verify", "package"]
    assert seen["steps"][0]["attempts"][0]["outcome"] == "succeed"
    listed = client.get("/v1/runs").json()["items"][0]
    for moving in ("trials_per_minute", "seconds_left"):
        assert listed["progress"].pop(moving) >= 0
    assert {name: seen[name] for name in listed} == listed


def test_a_failed_run_tells_what_where_limit_hint_and_log(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run()
    error = {
        "code": "export-failed", "what": "torch cannot export it", "where": "lstm.py:41", "limit": "no branches",
        "hint": "use torch.where", "log_tail": "UserError: dynamic control flow",
    }  # fmt: skip
    seeder.fail(run, "import", **error)
    seen = client.get(f"/v1/runs/{run.id}").json()
    assert seen["state"] == "failed"
    assert seen["error"] == {**error, "others": []}
    assert seen["steps"][0]["error"] == {**error, "others": []}
    assert [step["state"] for step in seen["steps"]] == ["failed"] + ["cancelled"] * 4


def test_cancel(client: httpx.Client, seeder: Seeder) -> None:
    queued = seeder.run()
    response = client.post(f"/v1/runs/{queued.id}/cancel")
    assert (response.status_code, response.json()["state"]) == (202, "cancelled")
    assert client.post(f"/v1/runs/{queued.id}/cancel").json()["state"] == "cancelled"
    running = seeder.run()
    seeder.claim(running, "import")
    assert client.post(f"/v1/runs/{running.id}/cancel").json()["state"] == "cancelling"
    done = seeder.finished_run(2)
    check_problem(client.post(f"/v1/runs/{done.id}/cancel"), "run-finished", 409, "already succeeded")


def test_a_long_poll_answers_at_news_and_at_the_end(client: httpx.Client, seeder: Seeder) -> None:
    run = seeder.run()
    before = client.get(f"/v1/runs/{run.id}").json()
    later = threading.Timer(0.5, seeder.claim, (run, "import"))
    began, wait = time.monotonic(), 30
    later.start()
    seen = client.get(f"/v1/runs/{run.id}", params={"wait": wait, "after": before["last_event_id"]}).json()
    assert time.monotonic() - began < wait, "it answered at the news and not when the wait was over"
    later.join()
    assert seen["state"] == "running"
    assert seen["last_event_id"] > before["last_event_id"]
    quiet = client.get(f"/v1/runs/{run.id}", params={"wait": 1, "after": seen["last_event_id"]}).json()
    assert quiet["last_event_id"] == seen["last_event_id"]
    done = seeder.finished_run(1)
    assert client.get(f"/v1/runs/{done.id}", params={"wait": 60}).json()["state"] == "succeeded"
    check_problem(client.get(f"/v1/runs/{run.id}?wait=61"), "invalid-request", 422, "60")
    check_problem(client.get(f"/v1/runs/{run.id}?wait=1&after=-1"), "invalid-request", 422, "query.after")


def test_a_service_takes_so_many_runs_and_trials_and_no_more(make_client: MakeClient, seeder: Seeder) -> None:
    client = make_client(max_waiting_runs=2, max_trials=50)
    model = seeder.model()
    check_problem(client.post("/v1/runs", json={"model": model.id, "trials": 51}), "invalid-request", 422, "at most 50")
    for _ in range(2):
        assert client.post("/v1/runs", json={"model": model.id}).status_code == 202
    refused = client.post("/v1/runs", json={"model": model.id})
    check_problem(refused, "too-many-runs", 429, "at most 2")
    assert refused.headers["retry-after"] == "60"


def test_owners_have_quotas(make_client: MakeClient, seeder: Seeder) -> None:
    model = seeder.model()
    client = make_client(quotas=Quotas(runs=2, trials=30))
    assert client.post("/v1/runs", json={"model": model.id, "trials": 20}).status_code == 202
    seeder.explore(seeder.run(trials=20), 20)
    check_problem(client.post("/v1/runs", json={"model": model.id}), "quota-exceeded", 429, "at most 2", "2 runs")
    wider = make_client(quotas=Quotas(runs=9, trials=30))
    check_problem(wider.post("/v1/runs", json={"model": model.id, "trials": 11}), "quota-exceeded", 429, "20 trials")
    assert wider.post("/v1/runs", json={"model": model.id, "trials": 10}).status_code == 202
    full = make_client(quotas=Quotas(gb=0.0))
    refused = full.post("/v1/models", json={"zoo": "mlp"})
    check_problem(refused, "quota-exceeded", 429, "GB of files")
    assert refused.headers["retry-after"] == "300"


def test_a_silent_worker_and_an_unserved_queue_are_told(client: httpx.Client, seeder: Seeder) -> None:
    silent, waiting = seeder.run(), seeder.run()
    step = seeder.claim(silent, "import")
    with seeder.database.begin() as tx:
        tx.steps.heartbeat({step.id: step.fence}, -20.0)
        tx.connection.exec_driver_sql(
            "UPDATE penstock.steps SET queued_at = now() - interval '90 s' WHERE state = 'queued'"
        )
    assert "silent for 2" in client.get(f"/v1/runs/{silent.id}").json()["waiting_for"]
    told = client.get(f"/v1/runs/{waiting.id}").json()["waiting_for"]
    assert told.startswith("step import has waited for 9")
    assert "queue 'import'" in told
