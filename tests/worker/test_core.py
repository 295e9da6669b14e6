"""The execution core with real Postgres, Redis and Celery workers: what a user of the queue relies on."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.db.schema.records import NewStep
from penstock.db.schema.states import RunState, StepState
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.worker.sign_of_life import connect, order_drain, signs
from tests.fixtures.processes import working_in
from tests.fixtures.service import Service, assert_legal, fresh_service
from tests.fixtures.waiting import QUIET_SECONDS

BODIES = "tests.worker.bodies"


def node(kind: str, key: str | None = None, *needs: str, **payload: Any) -> NewStep:
    return NewStep(kind, key or kind, "explore", payload, needs=needs)


def trace(service: Service, name: str = "trace") -> list[str]:
    path = service.home / f"{name}.txt"
    return path.read_text().splitlines() if path.exists() else []


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, postgres: EmbeddedPostgres) -> Iterator[Service]:
    with fresh_service(tmp_path_factory.mktemp("home"), postgres, BODIES) as service:
        service.worker(PENSTOCK_LEASE_SECONDS="30")  # so that who dies is told of before its lease is over
        service.dispatcher()
        yield service


@pytest.fixture
def running(shared: Service) -> Service:
    """One worker with two places, and a dispatcher, with a clean trace; for tests that hurt neither."""
    for path in shared.home.glob("*.txt"):
        path.unlink()
    return shared


def test_a_graph_runs_through_and_hands_content_on(running: Service) -> None:
    run = running.submit(node("make", say="hello"), node("read", None, "make"))
    assert running.wait(run).state == RunState.SUCCEEDED
    steps = running.steps(run)
    assert steps["read"].result == {"file": "hello", "tree": "hello", "length": 5}
    assert_legal(running.events(run))
    assert not any((running.home / "work").iterdir()), "private folders are removed"

    again = running.submit(node("make", say="hello"), node("read", None, "make"))
    assert running.wait(again).state == RunState.SUCCEEDED
    assert running.steps(again)["make"].reused_from == steps["make"].id
    assert running.steps(again)["read"].result == steps["read"].result
    assert trace(running) == ["make ran"], "the second run used the first one's outputs"
    other = running.submit(node("make", say="other"))
    assert running.wait(other).state == RunState.SUCCEEDED
    assert running.steps(other)["make"].reused_from is None


def test_a_step_fans_out_and_the_sum_waits_for_all_parts(running: Service) -> None:
    run = running.submit(node("fan", parts="trial", count=30), node("echo", "sum", "fan"))
    assert running.wait(run).state == RunState.SUCCEEDED
    lines = trace(running)
    assert Counter(lines) == Counter([f"part/{i} ran" for i in range(30)] + ["sum ran"])
    assert lines[-1] == "sum ran"
    with running.database.begin() as tx:
        assert [t.number for t in tx.trials.list(run.id).items] == list(range(30))


def test_an_error_for_the_user_fails_the_run_at_once(running: Service) -> None:
    run = running.submit(node("wrong"), node("echo", None, "wrong"))
    ended = running.wait(run)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["code"] == "bad-model"
    assert ended.error["step"] == "wrong"
    assert trace(running) == ["wrong ran"]


def test_an_unforeseen_error_is_tried_again_and_then_given_up(running: Service) -> None:
    good = running.submit(node("flaky", good_from=2, trace="good"))
    bad = running.submit(node("flaky", good_from=9, trace="bad"))
    assert running.wait(good).state == RunState.SUCCEEDED
    ended = running.wait(bad)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["code"] == "poison"
    assert [a["error"]["what"] for a in ended.error["attempts"]] == ["RuntimeError: fell over"] * 3
    assert (len(trace(running, "good")), len(trace(running, "bad"))) == (2, 3)


def test_what_cannot_be_done_now_does_not_use_up_attempts(running: Service) -> None:
    run = running.submit(node("licence"))
    assert running.wait(run).state == RunState.SUCCEEDED
    step = running.steps(run)["licence"]
    assert (step.attempt, step.fence) == (1, 5)


def test_a_step_that_crashes_its_worker_is_poison_with_evidence(running: Service) -> None:
    run = running.submit(node("crash"))
    after = running.submit(node("echo", trace="after"))
    ended = running.wait(run)
    assert ended.state == RunState.FAILED
    assert ended.error is not None
    assert ended.error["code"] == "poison"
    assert len(ended.error["attempts"]) == 3
    assert {a["error"]["code"] for a in ended.error["attempts"]} == {"worker-crashed"}
    assert "Segmentation fault" in ended.error["attempts"][0]["error"]["what"]
    assert running.wait(after).state == RunState.SUCCEEDED, "the worker itself lives on"
    assert_legal(running.events(run))


def test_what_is_claimed_with_a_step_that_crashes_is_not_blamed(running: Service) -> None:
    calm = [NewStep("crash", f"c{i:02}", "explore", {"calm": i != 40}, may_fail=True) for i in range(60)]
    run = running.submit(*calm)
    assert running.wait(run).state == RunState.SUCCEEDED
    steps = running.steps(run)
    assert {key for key, step in steps.items() if step.state != StepState.SUCCEEDED} == {"c40"}
    assert {step.attempt for key, step in steps.items() if key != "c40"} == {1}
    assert steps["c40"].attempt == 3
    assert_legal(running.events(run))


def test_what_is_claimed_with_a_long_step_goes_to_others(running: Service) -> None:
    """Short steps are claimed several at once; the long one among them is the 41st."""
    run = running.submit(*(node("sleep", f"s{i:02}", seconds=4 if i == 40 else 0) for i in range(80)))
    assert running.wait(run).state == RunState.SUCCEEDED
    steps, events = running.steps(run), running.events(run)
    assert max(Counter(e.data["worker"] for e in events if e.kind == "step.claim").values()) > 1
    ends = {key: step.finished_at for key, step in steps.items() if step.finished_at is not None}
    assert max(ends, key=lambda key: ends[key]) == "s40"
    assert Counter(trace(running)) == Counter(f"{key} {word}" for key in steps for word in ("started", "ended"))
    assert {step.attempt for step in steps.values()} == {1}
    assert_legal(events)


def test_kills_from_outside_are_not_the_steps_fault(running: Service) -> None:
    """More of them than a step has attempts."""
    run = running.submit(node("sleep", seconds=1.5))
    for kills in range(1, 5):
        running.until(lambda kills=kills: len(trace(running)) == kills)  # pyright: ignore[reportUnknownLambdaType]
        step = running.steps(run)["sleep"]
        psutil.Process(int((step.owner or "::").split(":")[1])).kill()
    assert running.wait(run).state == RunState.SUCCEEDED
    step = running.steps(run)["sleep"]
    assert (step.attempt, step.fence) == (1, 5)
    lost = [event.data["error"]["code"] for event in running.events(run) if event.kind == "step.lose"]
    assert lost == ["worker-lost"] * 4
    assert_legal(running.events(run))


def test_cancel_ends_a_step_that_looks_and_one_that_does_not(running: Service) -> None:
    run = running.submit(node("sleep", seconds=1000), node("deaf"))
    running.until(lambda: len(trace(running)) == 2)
    running.cancel(run)
    assert running.wait(run).state == RunState.CANCELLED
    assert {s.state for s in running.steps(run).values()} == {StepState.CANCELLED}
    [pid] = [int(line.split()[1]) for line in trace(running) if line.startswith("deaf")]
    running.until(lambda: not psutil.pid_exists(pid))
    after = running.submit(node("echo", trace="after"))
    assert running.wait(after).state == RunState.SUCCEEDED
    assert_legal(running.events(run))


def test_cancel_kills_a_tool_that_traps_term_with_its_grandchild(running: Service, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    run = running.submit(node("tool", place=str(place)))
    running.until((place / "grandchild").exists)
    assert len(working_in(place)) >= 2
    running.cancel(run)
    running.until(lambda: not working_in(place))
    assert running.wait(run).state == RunState.CANCELLED


def test_kill_9_of_the_worker_kills_its_tool_and_another_worker_takes_the_step(
    service: Service, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    service.dispatcher()
    first = service.worker()
    run = service.submit(node("tool", place=str(place)))
    service.until((place / "grandchild").exists)
    first.kill()  # its main process alone: the pool child with the step has to notice
    service.until(lambda: not working_in(place))
    (place / "grandchild").unlink()
    service.worker()
    service.until((place / "grandchild").exists)
    step = service.steps(run)["tool"]
    assert (step.attempt, step.fence) == (1, 2), "nobody can say why its worker died"
    service.cancel(run)
    assert service.wait(run).state == RunState.CANCELLED
    assert not working_in(place)
    assert_legal(service.events(run))


def test_a_soft_end_hands_the_step_back_without_counting(service: Service) -> None:
    service.dispatcher()
    first = service.worker()
    run = service.submit(node("sleep", seconds=3))
    service.until(lambda: trace(service))
    first.send_signal(signal.SIGTERM)
    assert first.wait(QUIET_SECONDS) == 0
    service.until(lambda: service.steps(run)["sleep"].state == StepState.QUEUED)
    service.worker()
    assert service.wait(run).state == RunState.SUCCEEDED
    step = service.steps(run)["sleep"]
    assert step.attempt == 1
    assert step.fence >= 2, "a worker that is about to end may take it once more, and hands it back again"
    assert_legal(service.events(run))


def test_steps_queued_while_nobody_runs_are_done_later_once_by_several_workers(service: Service) -> None:
    run = service.submit(*(node("echo", f"e{i}") for i in range(100)))
    service.dispatcher()
    time.sleep(0.5)
    assert service.run_of(run).state == RunState.QUEUED
    service.dispatcher()
    for _ in range(2):
        service.worker()
    assert service.wait(run).state == RunState.SUCCEEDED
    assert Counter(trace(service)) == Counter(f"e{i} ran" for i in range(100))
    assert all(step.fence == 1 for step in service.steps(run).values())


def test_a_worker_takes_only_its_queues(service: Service) -> None:
    service.dispatcher()
    service.worker(PENSTOCK_QUEUES="build")
    run = service.submit(node("echo"))
    time.sleep(2)
    assert service.steps(run)["echo"].state == StepState.QUEUED
    service.worker(PENSTOCK_QUEUES="import,explore")
    assert service.wait(run).state == RunState.SUCCEEDED


def test_a_busy_worker_leaves_the_next_step_to_an_idle_one(service: Service) -> None:
    service.dispatcher()
    for _ in range(2):
        service.worker(PENSTOCK_CONCURRENCY="1")
    long = service.submit(node("sleep", "long", seconds=1000))
    service.until(lambda: "long started" in trace(service))
    run = service.submit(*(node("echo", f"e{i}") for i in range(6)))
    assert service.wait(run).state == RunState.SUCCEEDED
    service.cancel(long)
    assert service.wait(long).state == RunState.CANCELLED


def test_a_drained_worker_ends_its_step_and_takes_no_other(service: Service) -> None:
    """Drained by a signal; then by an order the one that takes its place."""

    def drain_by_signal() -> None:
        worker.send_signal(signal.SIGUSR1)

    def drain_by_order() -> None:
        with connect(service.environment["PENSTOCK_REDIS_URL"]) as broker:
            order_drain(broker, next(sign.name for sign in signs(broker) if str(worker.pid) in sign.name))

    service.dispatcher()
    worker = service.worker(PENSTOCK_CONCURRENCY="1")
    for number, drain in enumerate((drain_by_signal, drain_by_order)):
        long = service.submit(node("sleep", seconds=8, trace=f"long{number}"))
        later = service.submit(node("echo", trace="later"))
        service.until(lambda number=number: trace(service, f"long{number}"))  # pyright: ignore[reportUnknownLambdaType]
        drain()
        assert worker.wait(QUIET_SECONDS) == 0
        assert service.run_of(long).state == RunState.SUCCEEDED
        assert service.steps(long)["sleep"].fence == 1
        assert service.run_of(later).state == RunState.QUEUED
        worker = service.worker(PENSTOCK_CONCURRENCY="1")
        assert service.wait(later).state == RunState.SUCCEEDED
