"""What if, over REST: what is asked becomes a step; a wrong name or number is refused at once, and named."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from penstock.compiler.design import Design, KernelDesign
from penstock.db.schema.records import NewArtifact, Run
from penstock.services.step_kinds import EXPLORE, SELECT, WHAT_IF
from penstock.services.steps.graph import GIVEN
from tests.api.conftest import check_problem
from tests.api.seeding import Seeder

DESIGN = Design(
    platform="u55c", clock_mhz=250.0, allocated_for="somebody",
    kernels={"fc1": KernelDesign((1, 8), (1, 4), (0, 1)), "fc2": KernelDesign((1, 4), (1, 2), (0, 1))},
    fifo_depths={"fc1__fc2": 4, "fc2__store_0": 2},
)  # fmt: skip


@pytest.fixture
def run(seeder: Seeder) -> Run:
    made = seeder.finished_run(2)
    record = seeder.file("design.json", json.dumps(DESIGN.to_json()).encode(), "application/json")
    for key, file in ((EXPLORE, seeder.file("prepared", b"a tar")), (SELECT, record)):
        add_file(seeder, made, key, file)
    return made


def add_file(seeder: Seeder, run: Run, key: str, file: NewArtifact) -> None:
    with seeder.database.begin() as tx:
        step = tx.steps.by_key(run.id, key)
        assert step is not None
        tx.artifacts.create(run.id, step.id, [file])


def asked(seeder: Seeder, answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code == 202, answer.text
    with seeder.database.begin() as tx:
        step = tx.steps.by_key(answer.json()["id"], WHAT_IF)
    assert step is not None
    return dict(step.payload)


def test_changes_add_up_and_are_asked_of_the_first_design(client: httpx.Client, seeder: Seeder, run: Run) -> None:
    first = client.post(f"/v1/runs/{run.id}/what-if", json={"kernels": {"fc1": {"unroll": [1, 2]}}})
    payload = asked(seeder, first)
    assert (payload["run"], payload["changes"]["kernels"]) == (run.id, {"fc1": {"unroll": [1, 2]}})
    more = {"kernels": {"fc1": {"tile": [1, 4]}}, "fifo_depths": {"fc1__fc2": 9}}
    second = asked(seeder, client.post(f"/v1/runs/{first.json()['id']}/what-if", json=more))
    assert second["changes"] == {"fifo_depths": {"fc1__fc2": 9}, "kernels": {"fc1": {"unroll": [1, 2], "tile": [1, 4]}}}
    assert (second["run"], second["design"]) == (run.id, payload["design"])
    assert first.json()["id"] not in client.get("/runs").text, "a question is not among the runs"
    assert first.json()["id"] in client.get("/runs?state=questions").text


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, ("nothing is to be different",)),
        ({"fifo_depths": {"fc1__fc3": 2}}, ("no channel 'fc1__fc3'", "did you mean 'fc1__fc2'?")),
        ({"fifo_depths": {"fc1__fc2": 0}}, ("body.fifo_depths.fc1__fc2",)),
        ({"fifo_depths": {"fc1__fc2": 1 << 40}}, ("body.fifo_depths.fc1__fc2",)),
        ({"kernels": {"<script>\u202e": {"tile": [1, 1]}}}, ("no kernel", "2 kernels")),
        ({"kernels": {"fc1": {"unroll": [1, 3]}}}, ("cannot unroll tile 8 of dim 1 by 3", "8 % 3 = 2")),
        ({"kernels": {"fc1": {"tile": [8]}}}, ("tile has 1 numbers", "2 loops")),
    ],
)
def test_what_cannot_be_is_named(client: httpx.Client, run: Run, body: dict[str, Any], words: tuple[str, ...]) -> None:
    answer = client.post(f"/v1/runs/{run.id}/what-if", json=body)
    check_problem(answer, "invalid-request", 422, *words)


def test_a_run_takes_the_design_and_searches_nothing(client: httpx.Client, seeder: Seeder, run: Run) -> None:
    answer = client.post(f"/v1/runs/{run.id}/take")
    assert answer.status_code == 202, answer.text
    document = answer.json()
    assert [step["kind"] for step in document["steps"]] == ["import", "explore", "select", "verify", "package"]
    assert "trials" not in document["options"]
    with seeder.database.begin() as tx:
        steps = [tx.steps.by_key(document["id"], key) for key in (EXPLORE, SELECT)]
    assert all(step is not None and step.payload[GIVEN]["run"] == run.id for step in steps)
    refused = client.post(f"/v1/runs/{document['id']}/extend", json={"trials": 2})
    check_problem(refused, "run-finished", 409, "was given its design")


def test_a_run_without_a_design_says_so(client: httpx.Client, seeder: Seeder) -> None:
    going = seeder.run()
    for what, body in (("what-if", {"fifo_depths": {"a": 1}}), ("take", None)):
        check_problem(client.post(f"/v1/runs/{going.id}/{what}", json=body), "no-design", 409, going.id)
