"""kill -9 of a worker in the middle of a trial, the API, Redis (its data gone) and Postgres, in seeded order.

Whatever is killed when: the run completes, every trial counts exactly once in our tables and in the study's,
and no illegal move is recorded.
"""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psutil
import pytest
from sqlalchemy import text

from penstock.db import Database, lifecycle
from penstock.db.migrate import migrate
from penstock.db.schema.records import Event, Run, Step
from penstock.db.schema.states import RUN_TERMINAL, RunState, StepState
from penstock.services.steps.graph import TRIAL, run_steps
from penstock.services.store import ContentStore
from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.fixtures.processes import working_in
from tests.fixtures.service import Service, assert_legal
from tests.fixtures.waiting import QUIET_SECONDS
from tests.worker.test_run import MODEL

pytestmark = pytest.mark.slow

TRIALS = 12
ROUNDS = 7
MANY_TRIALS, MOST_KILLS = 40, 12


@dataclass
class Stack:
    """A service with servers of its own, each of which can be killed and started again."""

    service: Service
    postgres: EmbeddedPostgres
    redis: EmbeddedRedis
    listener: socket.socket
    workers: list[subprocess.Popen[bytes]]
    api: subprocess.Popen[bytes]
    current: Run | None = None

    def kill_worker(self, pause: float) -> None:
        """One that is in the middle of a trial: its pool child is frozen until that is certain."""
        found: list[subprocess.Popen[bytes]] = []
        self.service.until(lambda: found.extend(self.frozen_in_a_trial()) or found or self.is_over())
        victim = found[0] if found else self.workers[0]
        self.workers.remove(victim)
        self.service.kill(victim)
        time.sleep(pause)
        self.workers.append(self.service.worker())

    def frozen_in_a_trial(self) -> list[subprocess.Popen[bytes]]:
        for step in self.open_trials():
            pid = holder(step)
            for worker in self.workers:
                for child in psutil.Process(worker.pid).children():
                    if child.pid == pid:
                        child.suspend()
                        if any(s.id == step.id and s.fence == step.fence for s in self.open_trials()):
                            return [worker]
                        child.resume()
        return []

    def kill_any_worker(self, rng: random.Random) -> None:
        """Whichever it meets, however often the same step: kills from outside are not its fault."""
        victim = rng.choice(self.workers)
        self.workers.remove(victim)
        self.service.kill(victim)
        self.workers.append(self.service.worker(PENSTOCK_CONCURRENCY="1"))

    def open_trials(self) -> tuple[Step, ...]:
        """The round's trials that are running now."""
        assert self.current is not None, "a round sets it"
        run_id = self.current.id
        page = self.service.database.run(lambda tx: tx.steps.list(run_id, kinds=[TRIAL], states=[StepState.RUNNING]))
        return page.items

    def is_over(self) -> bool:
        assert self.current is not None, "a round sets it"
        return self.service.run_of(self.current).state in RUN_TERMINAL

    def kill_api(self, pause: float) -> None:
        self.service.kill(self.api)
        time.sleep(pause)
        self.api = start_api(self.service, self.listener)

    def kill_redis(self, pause: float) -> None:
        kill(self.redis.pid)
        time.sleep(pause)
        self.redis.start()  # it keeps nothing on disk: all messages are gone

    def kill_postgres(self, pause: float) -> None:
        kill(self.postgres.pid)
        time.sleep(pause)
        self.postgres.start()

    def submit(self, trials: int = TRIALS) -> Run:
        stored = ContentStore(self.service.home / "store").put_bytes(MODEL)
        options = {"platform": "u55c", "trials": trials, "quantize": "w8a8"}

        def work(tx: Any) -> Run:
            model = tx.models.create(
                name="tiny", kind="python", source="tiny.py:model", sha256=stored.sha256, size=stored.size,
                details={"file": "tiny.py", "function": "model"},
            )  # fmt: skip
            return lifecycle.submit(
                tx, model_id=model.id, name="tiny", steps=run_steps(model, options), options=options, owner=None
            )

        return self.service.database.run(work)

    def api_says(self, run: Run) -> str:
        port = self.listener.getsockname()[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/runs/{run.id}", timeout=600) as answer:
            return json.load(answer)["state"]


def holder(step: Step) -> int:
    """The process that works on it, 0 for none."""
    return int((step.owner or "::").split(":")[1] or 0)


def kill(pid: int) -> None:
    process = psutil.Process(pid)
    process.kill()
    process.wait(QUIET_SECONDS)


def start_api(service: Service, listener: socket.socket) -> subprocess.Popen[bytes]:
    return service.start(
        "penstock.services.supervisor.serve_api",
        str(listener.fileno()),
        files=(listener.fileno(),),
        PENSTOCK_AUTH="off",
    )


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Postgres is started as in production, since a kill -9 must not cost it a commit."""
    folder = open_folder()
    postgres = EmbeddedPostgres(folder / "pg", folder / "p")
    redis = EmbeddedRedis(folder / "redis", folder / "r")
    listener = socket.create_server(("127.0.0.1", 0))
    database: Database | None = None
    service: Service | None = None
    try:
        postgres.start()
        redis.start()
        migrate(postgres.url)
        database = Database(postgres.url)
        service = Service(tmp_path_factory.mktemp("home"), database, redis, "tests.worker.slow_trials")
        service.dispatcher()
        workers = [service.worker(), service.worker()]
        stack = Stack(service, postgres, redis, listener, workers, start_api(service, listener))
        service.wait(stack.submit())  # the import is known from here on: rounds meet trials soon
        yield stack
    finally:
        if service is not None:
            service.end()
        if database is not None:
            database.close()
        listener.close()
        redis.stop()
        postgres.stop()
        shutil.rmtree(folder)


def play_round(stack: Stack, seed: int) -> None:
    service = stack.service
    rng = random.Random(seed)
    victims: list[Callable[[float], None]] = [stack.kill_api, stack.kill_redis, stack.kill_postgres]
    rng.shuffle(victims)
    victims.insert(rng.randrange(2), stack.kill_worker)  # early: a quick machine is through with the trials soon
    run = stack.current = stack.submit()
    for victim in victims:
        service.until(lambda: stack.open_trials() or stack.is_over(), lambda: service.explain(run))
        time.sleep(rng.uniform(0.0, 0.3))
        victim(rng.uniform(0.0, 0.8))
    ended = service.wait(run)
    assert ended.state == RunState.SUCCEEDED, service.explain(run)
    events = service.events(run)
    assert_legal(events)
    assert_counted_once(stack, run)
    assert worker_was_lost(events), "the kill met no step: the round shows nothing"
    assert stack.api_says(run) == RunState.SUCCEEDED


def worker_was_lost(events: tuple[Event, ...]) -> bool:
    return any(event.kind == "step.lose" for event in events)


def assert_counted_once(stack: Stack, run: Run, asked: int = TRIALS) -> None:
    """Each trial once: in our tables, in the study, and as successes in the record of what happened."""
    service = stack.service
    states = text(
        "SELECT state::text, count(*) FROM optuna.trials JOIN optuna.studies USING (study_id) "
        "WHERE study_name = :name GROUP BY state"
    )
    with service.database.begin() as tx:
        ours = [trial.number for trial in tx.trials.list(run.id).items]
        study = {state: count for state, count in tx.connection.execute(states, {"name": run.id})}  # noqa: C416
    assert ours == list(range(asked))
    assert study["COMPLETE"] == asked
    assert "RUNNING" not in study
    succeeded = [event.data["key"] for event in service.events(run) if event.kind == "step.succeed"]
    assert len(succeeded) == len(set(succeeded))
    assert sum(key.startswith(TRIAL) for key in succeeded) == asked


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_runs_survive_the_kill_of_everything(stack: Stack, seed: int) -> None:
    play_round(stack, seed)


@pytest.mark.parametrize("seed", range(2))
def test_a_study_of_four_workers_survives_their_random_ends(stack: Stack, seed: int) -> None:
    """Every few seconds one of four workers is killed, until the trials are done: none too many, none too few.

    That nothing is stuck after the last kill is what the wait for the end shows, which is given up when nothing moves.
    """
    service, rng = stack.service, random.Random(1000 + seed)
    while len(stack.workers) < 4:
        stack.workers.append(service.worker(PENSTOCK_CONCURRENCY="1"))
    run = stack.current = stack.submit(MANY_TRIALS)
    service.until(lambda: stack.open_trials() or stack.is_over(), lambda: service.explain(run))
    kills = 0
    while not stack.is_over() and kills < MOST_KILLS:
        stack.kill_any_worker(rng)
        kills += 1
        time.sleep(rng.uniform(1.0, 3.0))
    assert service.wait(run).state == RunState.SUCCEEDED, service.explain(run)
    assert kills > 2, "the run was over before anything was killed"
    assert_legal(service.events(run))
    assert_counted_once(stack, run, MANY_TRIALS)


def test_nothing_is_left_running_in_the_work_folders(stack: Stack) -> None:
    """After all rounds: no tool, no step process but the pool's own."""
    assert working_in(stack.service.home / "work") == []
