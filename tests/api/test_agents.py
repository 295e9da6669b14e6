"""Agents in a search: what they may ask and tell, and what is refused by name."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from penstock.compiler.search_space import ParameterInfo, SpaceInfo
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import Run
from penstock.services.step_kinds import SPACE, TOLD
from penstock.services.steps.graph import trial_steps
from tests.api.conftest import MakeClient, check_problem
from tests.api.seeding import Seeder

PARAMETERS = (
    ParameterInfo(name="lanes", values=(1, 2, 4), usual=2, needs={}),
    ParameterInfo(name="connect", values=(False, True), usual=False, needs={}),
)
A_SPACE = SpaceInfo(
    model="m", platform="u55c", clock_mhz=300.0, quantize=None, objectives=("latency_cycles",), limits=(), may_use={},
    parameters=PARAMETERS, guess={"lanes": 2, "connect": False}, bound=10.0, bound_reason="operators",
)  # fmt: skip


@pytest.fixture
def searching(seeder: Seeder) -> Run:
    """A run whose search has begun, with two trials of its own."""
    run = seeder.run(trials=2)
    seeder.finish(run, "import")
    outcome = StepOutcome({SPACE: A_SPACE.model_dump(mode="json")}, new_steps=trial_steps(2, run.options))
    seeder.finish(run, "explore", outcome)
    return run


def ask(client: httpx.Client, run: Run, trials: int = 2) -> list[int]:
    answer = client.post(f"/v1/runs/{run.id}/ask", json={"trials": trials})
    assert answer.status_code == 201, answer.text
    return answer.json()["trials"]


def tell(client: httpx.Client, run: Run, number: int, params: Any) -> httpx.Response:
    body = json.dumps({"params": params})  # which writes NaN as Python's own
    return client.post(
        f"/v1/runs/{run.id}/trials/{number}/tell", content=body, headers={"Content-Type": "application/json"}
    )


def test_what_is_asked_for_waits_until_it_is_told(client: httpx.Client, seeder: Seeder, searching: Run) -> None:
    assert client.get(f"/v1/runs/{searching.id}/space").json() == A_SPACE.model_dump(mode="json")
    assert ask(client, searching) == [2, 3]
    seeder.trial(searching, 0)
    seeder.trial(searching, 1)
    steps = {s["key"]: s for s in client.get(f"/v1/runs/{searching.id}").json()["steps"]}
    assert steps["select"]["state"] == "blocked", "the run waits for the agent"
    with seeder.database.begin() as tx:
        assert tx.queues.ready({"explore": 10})["explore"] == 0, "no worker takes what was not told"
    told = tell(client, searching, 3, {"lanes": 4})
    assert (told.status_code, told.json()["state"]) == (202, "queued")
    assert tell(client, searching, 2, None).status_code == 202
    with seeder.database.begin() as tx:
        assert tx.queues.ready({"explore": 10})["explore"] == 2
        step = tx.steps.by_key(searching.id, "trial/0003")
    assert step is not None
    assert step.payload == {"number": 3, TOLD: {"lanes": 4}}


def test_nonsense_is_refused_by_name(client: httpx.Client, seeder: Seeder, searching: Run) -> None:
    [number] = ask(client, searching, 1)
    check_problem(tell(client, searching, number, {"lanes": float("nan")}), "bad-parameter", 422, "lanes", "1, 2, 4")
    check_problem(tell(client, searching, number, {"lanes": True}), "bad-parameter", 422)
    check_problem(tell(client, searching, number, {"lanes": [1]}), "bad-parameter", 422)
    check_problem(tell(client, searching, number, {"lanes": "1"}), "bad-parameter", 422, "lanes cannot be '1'")
    check_problem(tell(client, searching, number, {"lanes": "\ud800"}), "bad-parameter", 422, "1, 2, 4")
    check_problem(tell(client, searching, number, {"lane": 1}), "unknown-parameter", 422, "lanes")
    check_problem(tell(client, searching, number, [1]), "invalid-request", 422)
    check_problem(tell(client, searching, 0, {"lanes": 1}), "trial-not-asked", 409)
    check_problem(tell(client, searching, 77, {"lanes": 1}), "trial-not-found", 404)
    assert tell(client, searching, number, {"lanes": 1}).status_code == 202
    check_problem(tell(client, searching, number, {"lanes": 2}), "trial-told", 409, "first answer stands")


def test_a_run_without_a_search_is_asked_in_vain(client: httpx.Client, seeder: Seeder, searching: Run) -> None:
    early = seeder.run(trials=1)
    check_problem(client.get(f"/v1/runs/{early.id}/space"), "no-search-yet", 409)
    check_problem(client.post(f"/v1/runs/{early.id}/ask", json={"trials": 1}), "no-search-yet", 409)
    [number] = ask(client, searching, 1)
    seeder.cancel(searching)
    check_problem(tell(client, searching, number, {"lanes": 1}), "run-finished", 409)


def test_an_agent_has_no_more_trials_than_others(make_client: MakeClient, searching: Run) -> None:
    few = make_client(max_trials=5)
    check_problem(few.post(f"/v1/runs/{searching.id}/ask", json={"trials": 4}), "invalid-request", 422, "at most 5")
