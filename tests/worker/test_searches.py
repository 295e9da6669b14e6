"""Searches after their start: paused, extended while they run and after their end, begun warm, replayed, robbed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text

from penstock.db import Transaction, lifecycle
from penstock.db.schema.records import Run, Trial
from penstock.db.schema.states import RunState, StepState
from penstock.dse.search.forgetting import forget_study
from penstock.dse.search.study import AGENT
from penstock.services.api.plumbing.options import ApiOptions
from penstock.services.jobs.agents import ask_trials, tell_trial
from penstock.services.jobs.runs import further_steps
from penstock.services.step_kinds import SPACE
from penstock.services.steps.bodies.candidates import first_of_each
from penstock.services.steps.graph import EXPLORE, replay_steps
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.service import Service, assert_legal, fresh_service
from tests.worker.test_run import MODEL, complete_in_study, submit

SLOWLY = "tests.worker.slow_trials"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres) -> Iterator[Service]:
    """One worker whose trials take a moment, so that there is a middle to meet them in."""
    home = tmp_path_factory.mktemp("searches") / "home"
    home.mkdir()
    with fresh_service(home, postgres, SLOWLY) as made:
        made.dispatcher()
        made.worker()
        yield made


def trials_of(service: Service, run: Run) -> list[Trial]:
    return list(service.database.run(lambda tx: tx.trials.list(run.id, limit=500)).items)


def extend(service: Service, run: Run, count: int) -> None:
    """As the API does it."""

    def work(tx: Transaction) -> None:
        locked = tx.runs.lock(run.id)
        assert locked is not None
        model = tx.models.get(locked.model_id)
        assert model is not None
        lifecycle.extend_run(tx, run.id, further_steps(tx, locked, model, count, ApiOptions().max_trials))

    service.database.run(work)


def until_searching(service: Service, run: Run) -> None:
    service.until(lambda: service.steps(run)[EXPLORE].state == StepState.SUCCEEDED, lambda: service.explain(run))


@pytest.mark.slow
def test_a_paused_run_waits_and_an_extended_one_chooses_again(running: Service) -> None:
    run = submit(running, MODEL, trials=6)
    until_searching(running, run)
    running.database.run(lambda tx: lifecycle.pause_run(tx, run.id))
    running.until(lambda: not [s for s in running.steps(run).values() if s.state == StepState.RUNNING])
    held = len(trials_of(running, run))
    assert held < 6
    extend(running, run, 2)  # while it is held: these wait like the others
    running.database.run(lambda tx: lifecycle.resume_run(tx, run.id))
    ended = running.wait(run)
    assert ended.state == RunState.SUCCEEDED, running.explain(run)
    assert [t.number for t in trials_of(running, run)] == list(range(8))

    extend(running, run, 3)
    assert running.run_of(run).state == RunState.RUNNING
    assert running.run_of(run).finished_at is None
    again = running.wait(run)
    assert again.state == RunState.SUCCEEDED, running.explain(run)
    trials = trials_of(running, run)
    assert [t.number for t in trials] == list(range(11))
    assert complete_in_study(running, run) == 11
    steps = running.steps(run)
    assert {"select", "package", "select@2", "verify@2", "package@2"} <= set(steps)
    assert steps["select@2"].result["trials"] == 11
    chosen = trials[again.summary["chosen_trial"]]
    assert chosen.figures["latency_cycles"] == min(t.figures["latency_cycles"] for t in trials if t.state == "complete")
    assert_legal(running.events(run))


@pytest.mark.slow
def test_a_search_begins_with_what_earlier_ones_found_and_can_be_replayed(running: Service) -> None:
    first = submit(running, MODEL, trials=5)
    assert running.wait(first).state == RunState.SUCCEEDED, running.explain(first)
    cold = submit(running, MODEL, trials=4, warm_start=False)
    assert running.wait(cold).state == RunState.SUCCEEDED, running.explain(cold)
    assert not any(t.origin for t in trials_of(running, cold))
    warm = submit(running, MODEL, trials=4)
    ended = running.wait(warm)
    trials = trials_of(running, warm)
    known = [f"{k['run']} trial {k['trial']}" for k in ended.summary["warm_start"]]
    assert known
    # two at once: which of the steps gets which of the queued settings is nobody's business
    assert sorted(t.origin for t in trials) == sorted([*known, *[""] * (4 - len(known))])
    best = min(t.figures["latency_cycles"] for run in (first, cold) for t in trials_of(running, run))
    assert min(t.figures["latency_cycles"] for t in trials if t.origin) <= best

    for changed in (False, True):
        if changed:
            spoil(running, warm)
        replay = run_alone(running, warm, 0)
        ended = running.wait(replay)
        assert ended.state == RunState.SUCCEEDED, running.explain(replay)
        found = ended.summary["replay"]
        assert found["equal"] is not changed
        assert [row["figure"] for row in found["differs"]] == (["energy_uj"] if changed else [])
        assert [text.partition(" ")[0] for text in found["changed"]] == (["the"] if changed else [])


def spoil(service: Service, run: Run) -> None:
    """As if another version of the tables had found another energy."""
    change = text(
        "UPDATE penstock.trials SET figures = figures || '{\"energy_uj\": 1.5}', "
        "version = regexp_replace(version, 'tables=.*', 'tables=before') WHERE run_id = :run AND number = 0"
    )
    with service.database.begin() as tx:
        tx.connection.execute(change, {"run": run.id})


def run_alone(service: Service, run: Run, number: int) -> Run:
    options = dict(run.options)
    return service.database.run(
        lambda tx: lifecycle.submit(
            tx, model_id=run.model_id, name="again", steps=replay_steps(run.id, number), options=options, owner=None
        )
    )


@pytest.mark.slow
def test_an_agent_takes_part_and_the_run_chooses_what_it_found(running: Service) -> None:
    run = submit(running, MODEL, trials=2)
    until_searching(running, run)
    asked = running.database.run(lambda tx: ask_trials(tx, run.id, 2, 100))[1]
    guess = running.steps(run)[EXPLORE].result[SPACE]["guess"]
    running.database.run(lambda tx: tell_trial(tx, run.id, asked[0], guess | {"limit_share": 40}))
    running.database.run(lambda tx: tell_trial(tx, run.id, asked[1], None))
    ended = running.wait(run)
    assert ended.state == RunState.SUCCEEDED, running.explain(run)
    trials = {trial.number: trial for trial in trials_of(running, run)}
    assert set(asked) <= set(trials)
    assert trials[asked[0]].params["limit_share"] == 40
    assert trials[asked[0]].origin == AGENT
    assert trials[asked[1]].origin == ""
    result = running.steps(run)[f"trial/{asked[0]:04}"].result
    assert "sets the pace" in result["explanation"]
    assert max(result["constraints"].values()) <= 0
    again = running.database.run(lambda tx: ask_trials(tx, run.id, 1, 100))[1]
    running.database.run(lambda tx: tell_trial(tx, run.id, again[0], {}))
    assert running.wait(run).state == RunState.SUCCEEDED, running.explain(run)
    assert "package@2" in running.steps(run)


def test_what_is_equal_stands_where_its_best_does() -> None:
    """One setting may have been recorded twice with other figures, by other releases."""
    found = first_of_each([("a", 1.0), ("b", 1.1), ("a", 1.2), ("c", 1.3)], lambda one: {"setting": one[0]})
    assert found == [("a", 1.0), ("b", 1.1), ("c", 1.3)]


@pytest.mark.slow
def test_a_grid_tries_every_setting_once(running: Service) -> None:
    with pytest.raises(AssertionError, match="grid-too-large"):
        searched(running, sampler="grid")
    _, choices = searched(running, trials=1)
    fix = [f"{name}={values[0]}" for name, values in choices.items() if name not in ("unroll_along", "order")]
    run, choices = searched(running, trials=20, sampler="grid", fix=fix)
    settings = [tuple(sorted(t.params.items())) for t in trials_of(running, run)]
    assert len(settings) == len(set(settings)) == len(choices["unroll_along"]) * len(choices["order"])


def searched(service: Service, **options: Any) -> tuple[Run, dict[str, list[Any]]]:
    """A run that succeeded, and the space that it searched."""
    run = submit(service, MODEL, **options)
    ended = service.wait(run)
    assert ended.state == RunState.SUCCEEDED, dict(ended.error or {})
    space = service.steps(run)[EXPLORE].result[SPACE]
    return run, {one["name"]: one["values"] for one in space["parameters"]}


@pytest.mark.slow
def test_limits_that_no_design_keeps_name_the_nearest_miss_or_the_contradiction(running: Service) -> None:
    run = submit(running, MODEL, trials=3, limits=["latency_us<=0.02"])
    ended = running.wait(run)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["code"] in ("nothing-fits", "contradictory-limits")
    assert "latency_us" in ended.error["what"] + ended.error["limit"]
    limits = ["latency_us<=0.001", "dsp<=0.0001", "lut<=0.0001"]
    impossible = running.wait(submit(running, MODEL, trials=3, limits=limits))
    assert impossible.error is not None
    assert impossible.error["code"] == "contradictory-limits"
    assert sum(limit in impossible.error["what"] for limit in limits) == 2  # the two that exclude each other
    assert "latency_us is at least" in impossible.error["limit"]


@pytest.mark.slow
def test_a_deleted_study_costs_the_trials_to_come_and_nothing_else(running: Service) -> None:
    run = submit(running, MODEL, trials=8)
    until_searching(running, run)
    running.until(lambda: len(trials_of(running, run)) >= 2, lambda: running.explain(run))
    running.database.run(lambda tx: lifecycle.pause_run(tx, run.id))
    with running.database.begin() as tx:
        forget_study(tx.connection, "optuna", run.id)
    running.database.run(lambda tx: lifecycle.resume_run(tx, run.id))
    ended = running.wait(run)
    lost = [s for s in running.steps(run).values() if s.state == StepState.FAILED]
    assert lost
    assert {dict(step.error or {})["code"] for step in lost} == {"study-gone"}, [step.error for step in lost]
    assert ended.state == RunState.SUCCEEDED, running.explain(run)
    assert ended.summary["trials"] == 8


@pytest.mark.slow
def test_a_model_whose_content_is_gone_says_so(running: Service) -> None:
    run = submit(running, MODEL, trials=8)
    until_searching(running, run)
    with running.database.begin() as tx:
        explored = tx.steps.by_key(run.id, EXPLORE)
        assert explored is not None
        prepared = tx.artifacts.by_name(explored.id, "prepared")
    assert prepared is not None
    path = running.home / "store"
    [content] = [p for p in path.rglob("*") if p.name == prepared.sha256 or p.name == prepared.sha256[2:]]
    kept = content.read_bytes()
    content.unlink()
    try:
        ended = running.wait(run)
    finally:
        content.write_bytes(kept)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["code"] == "content-gone", dict(ended.error)
