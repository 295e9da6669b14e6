"""How runs and steps move: claims, fences, fan-in, fan-out, cancellation, lost leases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.event import listen

from penstock.db import Database, claiming, lifecycle
from penstock.db.lifecycle import GraphError, StepOutcome
from penstock.db.repositories.base import RunNotLockedError
from penstock.db.repositories.queues import Portion, Wanted
from penstock.db.schema.records import NewArtifact, NewStep, Run, Step, TrialSummary
from penstock.db.schema.states import RunState, StepState, TransitionRefusedError

DONE = StepOutcome({})


def submit(database: Database, *steps: NewStep) -> Run:
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        return lifecycle.submit(tx, model_id=model.id, name="r", steps=steps, options={}, owner=None)


def node(key: str, *needs: str, **changes: Any) -> NewStep:
    return NewStep(kind="k", key=key, queue="explore", needs=needs, **changes)


def step_of(database: Database, run: Run, key: str) -> Step:
    with database.begin() as tx:
        step = tx.steps.by_key(run.id, key)
    assert step is not None
    return step


def claim(database: Database, run: Run, key: str, lease: float = 60.0) -> Step:
    step = step_of(database, run, key)
    with database.begin() as tx:
        claimed = lifecycle.claim(tx, step.id, worker="w", lease_seconds=lease)
    assert claimed is not None, f"{key} is {step.state}"
    return claimed


def end(database: Database, move: Callable[..., Step | None], step: Step, *rest: Any) -> Step | None:
    with database.begin() as tx:
        return move(tx, step, *rest)


def states(database: Database, run: Run) -> dict[str, str]:
    with database.begin() as tx:
        found = tx.runs.get(run.id)
        assert found is not None
        return {"run": found.state} | {step.key: step.state for step in tx.steps.list(run.id).items}


def expire(database: Database, step: Step) -> None:
    with database.begin() as tx:
        tx.connection.execute(
            text("UPDATE penstock.steps SET lease_until = now() - interval '1 s' WHERE id = :id"),
            {"id": step.id},
        )


def test_steps_claimed_together_end_each_under_its_fence(database: Database) -> None:
    """One is lost meanwhile, two were not begun: nothing is recorded of the first, nothing charged for the others."""
    run = submit(database, *(node(f"t{i}", licence="l" if i == 5 else None) for i in range(6)), node("sum", "t0", "t1"))
    several = Portion("k", 9)
    with database.begin() as tx:
        claimed = claiming.claim_next(
            tx, ("explore",), worker="w", lease_seconds=60, licences={}, portion_of=lambda _: several
        )
        assert [step.key for step in claimed] == [f"t{i}" for i in range(5)], "what is counted is claimed alone"
        assert tx.queues.held_by("w") == claimed
    expire(database, claimed[1])
    with database.begin() as tx:
        lifecycle.reap(tx, claimed[1])
    ends = [
        (step, StepOutcome({}, trial=TrialSummary(i, "complete", {}, {"x": i}, "modelled", None, 0.0), seconds=0.5))
        for i, step in enumerate(claimed[:3])
    ]
    with database.begin() as tx:
        assert lifecycle.finish_many(tx, run.id, ends) == {claimed[0].id, claimed[2].id}
        lifecycle.return_unbegun(tx, run.id, claimed[3:], {"code": "not-begun"})
        assert lifecycle.finish_many(tx, run.id, ends) == set(), "nothing ends twice"
    with database.begin() as tx:
        assert [trial.number for trial in tx.trials.list(run.id).items] == [0, 2]
        usage = tx.shares.totals()[""]
        assert usage[1] == pytest.approx(1.0, abs=0.5)
        assert {tx.attempts.list(step.id)[0].outcome for step in claimed[3:]} == {"hand_back"}
    assert states(database, run) == {
        "run": "running", "t0": "succeeded", "t1": "queued", "t2": "succeeded", "t3": "queued", "t4": "queued",
        "t5": "queued", "sum": "blocked",
    }  # fmt: skip
    again = claim(database, run, "t3")
    assert (again.attempt, again.fence) == (1, 2)
    with database.begin() as tx:
        lifecycle.cancel_run(tx, run.id)
        lifecycle.return_unbegun(tx, run.id, [again], {"code": "not-begun"})
    assert states(database, run)["run"] == "cancelled"


def test_a_chain_runs_in_order_and_ends_the_run(database: Database) -> None:
    run = submit(database, node("a"), node("b", "a"))
    assert states(database, run) == {"run": "queued", "a": "queued", "b": "blocked"}
    a = claim(database, run, "a")
    assert states(database, run)["run"] == "running"
    end(database, lifecycle.finish, a, StepOutcome({"x": 1}, [NewArtifact("f", "0" * 64, 3, "text/plain")]))
    assert states(database, run) == {"run": "running", "a": "succeeded", "b": "queued"}
    end(database, lifecycle.finish, claim(database, run, "b"), DONE)
    assert states(database, run) == {"run": "succeeded", "a": "succeeded", "b": "succeeded"}
    with database.begin() as tx:
        assert [a.name for a in tx.artifacts.list(run.id).items] == ["f"]
        assert tx.queues.ready({"explore": 9}) == {"explore": 0}


def test_a_step_is_claimed_once_however_many_messages_arrive(database: Database) -> None:
    run = submit(database, node("a"))
    step = step_of(database, run, "a")
    won: list[Step] = []
    start = threading.Barrier(4)

    def worker() -> None:
        name = threading.current_thread().name  # one name a claim: the same name may ask again
        start.wait()
        with database.begin() as tx:
            claimed = lifecycle.claim(tx, step.id, worker=name, lease_seconds=60)
        if claimed:
            won.append(claimed)

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [w.fence for w in won] == [1]


def test_two_last_needs_that_finish_at_once_release_their_dependent_once(database: Database) -> None:
    for _ in range(10):
        run = submit(database, node("a"), node("b"), node("c", "a", "b"))
        ready = threading.Barrier(2)

        def finish(step: Step, ready: threading.Barrier = ready) -> None:
            with database.begin() as tx:
                ready.wait()
                lifecycle.finish(tx, step, DONE)

        threads = [threading.Thread(target=finish, args=(claim(database, run, k),)) for k in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert states(database, run)["c"] == "queued"
        with database.begin() as tx:
            assert tx.queues.next_run(Wanted(("explore",))) == run.id
            lifecycle.cancel_run(tx, run.id)


def test_a_step_fans_out_into_steps_that_its_dependents_wait_for(database: Database) -> None:
    run = submit(database, node("explore"), node("select", "explore"))
    trials = [node(f"trial/{i}", needed_by=("select",)) for i in range(3)]
    end(database, lifecycle.finish, claim(database, run, "explore"), StepOutcome({}, new_steps=trials))
    assert states(database, run)["select"] == "blocked"
    for i in range(3):
        summary = TrialSummary(i, "complete", {}, {"latency": 5.0}, "modelled", None, 0.1)
        end(database, lifecycle.finish, claim(database, run, f"trial/{i}"), StepOutcome({}, trial=summary))
    assert states(database, run)["select"] == "queued"
    with database.begin() as tx:
        assert [t.number for t in tx.trials.list(run.id).items] == [0, 1, 2]


def test_a_lost_worker_cannot_write_any_more(database: Database) -> None:
    run = submit(database, node("a"))
    old = claim(database, run, "a")
    expire(database, old)
    assert end(database, lifecycle.reap, old) is not None
    new = claim(database, run, "a")
    assert (new.attempt, new.fence) == (1, 2)
    with database.begin() as tx:
        assert tx.steps.heartbeat({old.id: old.fence}, 60) == {}
        assert tx.steps.hold(old.id, old.fence) is False
    for move, rest in (
        (lifecycle.finish, [DONE]), (lifecycle.fail, [{}]), (lifecycle.retry, [{}]), (lifecycle.stop, []),
    ):  # fmt: skip
        with pytest.raises(TransitionRefusedError, match="under fence 2, not 1"):
            end(database, move, old, *rest)
    end(database, lifecycle.finish, new, DONE)
    assert states(database, run)["run"] == "succeeded"


def test_a_renewed_lease_is_not_reaped(database: Database) -> None:
    run = submit(database, node("a"))
    step = claim(database, run, "a")
    expire(database, step)
    with database.begin() as tx:
        assert tx.steps.heartbeat({step.id: step.fence}, 60) == {step.id: False}
        assert lifecycle.reap(tx, step) is None
    assert states(database, run)["a"] == "running"


def test_a_loss_without_evidence_gives_the_attempt_back_and_waits_longer_each_time(database: Database) -> None:
    run = submit(database, node("a"), node("b", "a"))
    waits: list[float] = []
    for _ in range(lifecycle.LOSSES_ALLOWED - 1):
        step = claim(database, run, "a")
        assert step.attempt == 1
        expire(database, step)
        end(database, lifecycle.reap, step)
        lost = step_of(database, run, "a")
        assert lost.queued_at is not None
        waits.append(round((lost.due_at - lost.queued_at).total_seconds()))
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
    step = claim(database, run, "a")
    expire(database, step)
    end(database, lifecycle.reap, step)
    assert states(database, run) == {"run": "failed", "a": "failed", "b": "cancelled"}
    error = step_of(database, run, "a").error
    assert error is not None
    assert error["code"] == "poison"
    assert {a["error"]["code"] for a in error["attempts"]} == {"worker-lost"}


def test_a_crash_of_its_own_uses_up_an_attempt(database: Database) -> None:
    run = submit(database, node("a"), node("b", "a"))
    crashed = {"code": "worker-crashed", "what": "its process crashed: Segmentation fault"}
    for number in (1, 2, 3):
        step = claim(database, run, "a")
        assert step.attempt == number
        with database.begin() as tx:
            assert lifecycle.lose(tx, step.id, step.fence - 1, crashed) is None, "an older claim"
            assert lifecycle.lose(tx, step.id, step.fence, crashed)
    assert states(database, run) == {"run": "failed", "a": "failed", "b": "cancelled"}
    error = step_of(database, run, "a").error
    assert error is not None
    assert [a["error"]["code"] for a in error["attempts"]] == ["worker-crashed"] * 3


def test_what_people_put_right_is_waited_for_however_long(database: Database) -> None:
    run = submit(database, node("a"))
    full = {"code": "storage-full", "what": "the disk of the worker is full"}
    for _ in range(60):
        step = claim(database, run, "a")
        with database.begin() as tx:
            lifecycle.hand_back(tx, step, full, delay_seconds=15, patient=True)
    assert states(database, run) == {"run": "running", "a": "queued"}


def test_handing_back_does_not_count_as_an_attempt_but_is_bounded(database: Database) -> None:
    run = submit(database, node("a"))
    for _ in range(49):
        end(database, lifecycle.hand_back, claim(database, run, "a"), {"code": "worker-ends", "what": "w"})
    step = claim(database, run, "a")
    assert (step.attempt, step.fence) == (1, 50)
    end(database, lifecycle.hand_back, step, {"code": "worker-ends", "what": "w"})
    assert states(database, run)["run"] == "failed"


def test_a_step_that_may_fail_does_not_stop_its_run(database: Database) -> None:
    run = submit(database, node("a", may_fail=True), node("b", "a"))
    end(database, lifecycle.fail, claim(database, run, "a"), {"code": "x", "what": "y"})
    assert states(database, run) == {"run": "running", "a": "failed", "b": "queued"}


def test_a_failure_stops_the_rest_and_ends_the_run_when_nothing_runs(database: Database) -> None:
    run = submit(database, node("a"), node("b"), node("c", "a"), node("d", "b"))
    a, b = claim(database, run, "a"), claim(database, run, "b")
    end(database, lifecycle.fail, a, {"code": "x", "what": "broken"})
    assert states(database, run) == {
        "run": "failing", "a": "failed", "b": "running", "c": "cancelled", "d": "cancelled",
    }  # fmt: skip
    with database.begin() as tx:
        assert tx.steps.heartbeat({b.id: b.fence}, 60) == {b.id: True}
    end(database, lifecycle.stop, b)
    assert states(database, run)["run"] == "failed"


def test_cancelling_stops_what_waits_at_once_and_asks_what_runs(database: Database) -> None:
    run = submit(database, node("a"), node("b", "a"), node("c"))
    a = claim(database, run, "a")
    with database.begin() as tx:
        lifecycle.cancel_run(tx, run.id)
    assert states(database, run) == {"run": "cancelling", "a": "running", "b": "cancelled", "c": "cancelled"}
    expire(database, a)
    end(database, lifecycle.reap, a)  # its worker died instead of stopping: it is not tried again
    assert states(database, run)["run"] == RunState.CANCELLED
    with database.begin() as tx:
        again = lifecycle.cancel_run(tx, run.id)
        assert again is not None
        assert again.state == RunState.CANCELLED
        assert tx.queues.ready({"explore": 9}) == {"explore": 0}


def test_a_queued_run_is_cancelled_at_once(database: Database) -> None:
    run = submit(database, node("a"))
    with database.begin() as tx:
        cancelled = lifecycle.cancel_run(tx, run.id)
    assert cancelled is not None
    assert cancelled.state == RunState.CANCELLED


def test_a_graph_with_a_need_that_does_not_exist_is_refused_whole(database: Database) -> None:
    with pytest.raises(GraphError, match="need nowhere"):
        submit(database, node("a", "nowhere"))
    with database.begin() as tx:
        assert tx.runs.list().items == ()


def test_new_needs_of_a_started_step_are_refused(database: Database) -> None:
    run = submit(database, node("a"), node("b"))
    a = claim(database, run, "a")
    with pytest.raises(GraphError, match=r"b of .* started"):
        end(database, lifecycle.finish, a, StepOutcome({}, new_steps=[node("c", needed_by=("b",))]))
    assert states(database, run)["a"] == "running"


def test_a_transition_without_the_lock_of_its_run_is_a_bug(database: Database) -> None:
    run = submit(database, node("a"))
    step = step_of(database, run, "a")
    with pytest.raises(RunNotLockedError), database.begin() as tx:
        tx.steps.transition("cancel", step)


def test_every_transition_is_an_event_and_ids_follow_commits(database: Database) -> None:
    run = submit(database, node("a"))
    end(database, lifecycle.finish, claim(database, run, "a"), DONE)
    with database.begin() as tx:
        events = tx.events.after(run.id)
        kinds = [event.kind for event in events]
        assert tx.events.after(run.id, events[2].id) == events[3:]
    assert kinds == ["run.create", "step.create", "step.claim", "run.start", "step.succeed", "run.succeed"]
    assert events[1].data["to"] == StepState.QUEUED, "what needs nothing is queued from the start"
    assert events[2].data["from"] == StepState.QUEUED
    assert events[2].data["worker"] == "w"


def test_a_fan_out_tells_of_its_steps_when_all_else_of_them_is_written(database: Database) -> None:
    """Nobody sees an event before its transaction ends: what comes after it in there makes all of them late."""
    run = submit(database, node("a"), node("b", "a"))
    a = claim(database, run, "a")
    said: list[str] = []
    listen(database.engine, "before_cursor_execute", lambda *given: said.append(given[2]))
    new = [node(f"trial/{number:04d}", needed_by=("b",)) for number in range(20)]
    end(database, lifecycle.finish, a, StepOutcome({}, new_steps=new))
    writing = [n for n, statement in enumerate(said) if "INSERT INTO penstock.step" in statement]
    telling = next(n for n, statement in enumerate(said) if "'step.create'" in statement)
    assert len(writing) == 2, "steps, and their edges"
    assert max(writing) < telling
    with database.begin() as tx:
        of_new = [event for event in tx.events.after(run.id) if event.data.get("key", "").startswith("trial/")]
    assert [event.kind for event in of_new] == ["step.create"] * 20
    assert {event.data["to"] for event in of_new} == {StepState.QUEUED}
