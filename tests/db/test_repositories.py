"""Lists, cursors, tokens, idempotency keys: what the API relies on beside the lifecycle."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from penstock.db import Database, lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.repositories.base import BadCursorError
from penstock.db.repositories.queues import Wanted
from penstock.db.schema.ids import is_id, new_id
from penstock.db.schema.records import NewArtifact, NewStep, Run, TrialSummary


def make_run(database: Database, *steps: NewStep, name: str = "r") -> Run:
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        return lifecycle.submit(tx, model_id=model.id, name=name, steps=steps, options={"a": 1}, owner=None)


def echo(key: str) -> NewStep:
    return NewStep("echo", key, "explore")


def test_ids_sort_by_the_time_of_their_making() -> None:
    ids = [new_id("run") for _ in range(5000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
    assert all(is_id(i, "run") for i in ids)
    assert not is_id(ids[0], "stp")
    assert not is_id("run_'; drop table runs; --0000", "run")


def test_pages_list_every_run_once_newest_first_while_new_ones_come(database: Database) -> None:
    first = [make_run(database, echo("a"), name=str(i)).name for i in range(7)]
    seen: list[str] = []
    cursor: str | None = None
    while True:
        with database.begin() as tx:
            page = tx.runs.list(cursor=cursor, limit=3)
        seen += [run.name for run in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
        make_run(database, echo("a"), name="later")
    assert seen == first[::-1]


@pytest.mark.parametrize("cursor", ["", "x", "run_zzz", "1; --", "run_" + "u" * 26])
def test_a_foreign_cursor_is_refused(database: Database, cursor: str) -> None:
    with database.begin() as tx, pytest.raises(BadCursorError):
        tx.runs.list(cursor=cursor)
    with database.begin() as tx, pytest.raises(BadCursorError):
        tx.trials.list("run", cursor=cursor)


def test_runs_are_found_by_state_and_counted_with_their_steps(database: Database) -> None:
    run = make_run(database, echo("a"), echo("b"))
    other = make_run(database, echo("a"))
    with database.begin() as tx:
        lifecycle.cancel_run(tx, other.id)
        assert [r.id for r in tx.runs.list(states=["queued"]).items] == [run.id]
        assert tx.runs.count_by_state() == {"queued": 1, "cancelled": 1}
        counts = tx.steps.counts_by_kind([run.id, other.id])
        assert counts == {run.id: {("echo", "queued"): 2}, other.id: {("echo", "cancelled"): 1}}
        assert tx.queues.depths() == {"explore": 2}


def test_a_summary_is_merged_and_options_are_kept(database: Database) -> None:
    run = make_run(database, echo("a"))
    with database.begin() as tx:
        tx.runs.merge_summary(run.id, {"x": 1, "y": 1})
        tx.runs.merge_summary(run.id, {"y": 2})
        found = tx.runs.get(run.id)
    assert found is not None
    assert found.summary == {"x": 1, "y": 2}
    assert found.options == {"a": 1}


def test_trials_and_artifacts_come_with_the_end_of_their_step_or_not_at_all(database: Database) -> None:
    run = make_run(database, echo("a"), echo("b"))
    with database.begin() as tx:
        steps = tx.steps.list(run.id).items
        claims = [lifecycle.claim(tx, step.id, worker="w", lease_seconds=60) for step in steps]
    summary = TrialSummary(0, "complete", {"p": 2}, {"latency_cycles": 1.5}, "modelled", {"d": 1}, 0.2)
    artifact = NewArtifact("f", "a" * 64, 1, "text/plain")
    for claim in claims:
        assert claim is not None
    first, second = (claim for claim in claims if claim is not None)
    with database.begin() as tx:
        lifecycle.finish(tx, first, StepOutcome({}, [artifact], trial=summary))
    # the second trial claims the same number: a defect that must leave no half-written end behind
    with pytest.raises(Exception, match="unique"), database.begin() as tx:
        lifecycle.finish(tx, second, StepOutcome({}, [artifact], trial=summary))
    with database.begin() as tx:
        [trial] = tx.trials.list(run.id).items
        assert (trial.params, trial.figures, trial.design) == ({"p": 2}, {"latency_cycles": 1.5}, {"d": 1})
        assert [a.step_id for a in tx.artifacts.list(run.id).items] == [first.id]
        after = tx.steps.get(second.id)
    assert after is not None
    assert after.state == "running"


def test_tokens_are_found_while_they_may_be_used(database: Database) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    with database.begin() as tx:
        good = tx.tokens.create(name="ci", prefix="pst_aaaa", digest=b"d" * 32, owner="ada", scope="submit")
        tx.tokens.create(name="old", prefix="pst_bbbb", digest=b"d" * 32, owner="ada", scope="read", expires_at=past)
        assert tx.tokens.by_prefix("pst_aaaa") == good
        assert tx.tokens.by_prefix("pst_bbbb") is None
        assert tx.tokens.revoke(good.id)
        assert not tx.tokens.revoke(good.id)
        assert tx.tokens.by_prefix("pst_aaaa") is None


def test_the_same_request_twice_waits_for_the_first_and_gets_its_answer(database: Database) -> None:
    answers: list[object] = []

    def second() -> None:
        with database.begin() as tx:
            answers.append(tx.idempotency.begin("token", "key", "hash"))

    with database.begin() as tx:
        assert tx.idempotency.begin("token", "key", "hash") is None
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        assert thread.is_alive(), "it waits while the first is in flight"
        tx.idempotency.complete("token", "key", status=202, headers={"Location": "/x"}, body={"id": 1})
    thread.join(5)
    [known] = answers
    assert getattr(known, "status", None) == 202
    assert getattr(known, "body", None) == {"id": 1}


def test_a_delayed_step_is_not_due_before_its_time(database: Database) -> None:
    run = make_run(database, echo("a"))
    with database.begin() as tx:
        step = lifecycle.claim(tx, tx.steps.list(run.id).items[0].id, worker="w", lease_seconds=60)
    assert step is not None
    with database.begin() as tx:
        lifecycle.retry(tx, step, {"code": "x", "what": "y"}, delay_seconds=60)
    with database.begin() as tx:
        assert tx.queues.next_run(Wanted(("explore",))) is None
        tx.connection.execute(text("UPDATE penstock.steps SET due_at = now()"))
        assert tx.queues.next_run(Wanted(("explore",))) == run.id
