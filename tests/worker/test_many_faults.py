"""Faults by lot, round after round, while twenty runs of four owners and one of many trials are under way.

Whatever happens: nothing is lost, nothing counts twice, no move is illegal, nothing is left behind. Twenty short rounds
are always played. Of the long ones `--rounds 200` plays as many; `--trials 10000` makes the large run as large, and
`--seed` draws others.
"""

from __future__ import annotations

import random
import shutil
import socket
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import text

from benchmarks.service_load import SLOW
from penstock.db import Database, lifecycle
from penstock.db.migrate import migrate
from penstock.db.schema.records import Run
from penstock.db.schema.states import RUN_TERMINAL, RunState
from penstock.services.steps.graph import run_steps
from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.fixtures.processes import working_in
from tests.fixtures.service import Service, assert_legal
from tests.worker.faults import Faults

BODIES = "benchmarks.service_load.noop"
OWNERS = ("ann", "ben", "cem", "dot")
IN_FLIGHT, FEW_TRIALS = 20, 4
SHORT_ROUNDS, SHORT_SECONDS, LONG_SECONDS, TRIALS_BESIDE_SHORT = 20, (0.05, 0.3), 2.5, 60
"""A lease is 2 s: of the short rounds every seventh outlasts it."""


@pytest.fixture(params=[2])
def faults(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Faults]:
    """Postgres is started as in production, since a kill -9 must not cost it a commit. The parameter is how many
    workers there are beside the one behind the wire."""
    folder = open_folder()
    postgres = EmbeddedPostgres(folder / "pg", folder / "p")
    redis = EmbeddedRedis(folder / "redis", folder / "r")
    listener = socket.create_server(("127.0.0.1", 0))
    service: Service | None = None
    try:
        postgres.start()
        redis.start()
        migrate(postgres.url)
        service = Service(tmp_path_factory.mktemp("home"), Database(postgres.url), redis, BODIES)
        yield Faults(service, postgres, redis, listener, request.param)
    finally:
        if service is not None:
            service.end()
            service.database.close()
        listener.close()
        redis.stop()
        postgres.stop()
        shutil.rmtree(folder)


class Runs:
    """Those under way, and all that there were."""

    def __init__(self, service: Service, many: int) -> None:
        self.service = service
        self.asked: dict[str, int] = {}
        self.going: list[Run] = []
        self.large = self.submit("ann", many)

    def submit(self, owner: str, trials: int) -> Run:
        options = {"platform": "u55c", "trials": trials}
        database = self.service.database
        model = database.run(lambda tx: tx.models.create(name="m", kind="zoo", source="zoo:mlp"))
        run = database.run(
            lambda tx: lifecycle.submit(
                tx, model_id=model.id, name=f"{SLOW} {trials}", steps=run_steps(model, options), options=options,
                owner=owner,
            )
        )  # fmt: skip
        self.asked[run.id] = trials
        return run

    def fill(self, rng: random.Random) -> None:
        """Others begin where some have ended."""
        self.going = [run for run in self.going if self.service.run_of(run).state not in RUN_TERMINAL]
        while len(self.going) < IN_FLIGHT:
            self.going.append(self.submit(rng.choice(OWNERS), FEW_TRIALS))

    def open(self) -> bool:
        """Whether any is under way."""
        return any(self.service.run_of(run).state not in RUN_TERMINAL for run in (*self.going, self.large))


@pytest.mark.slow
def test_faults_by_lot_cost_nothing(faults: Faults, request: pytest.FixtureRequest) -> None:
    rounds, many, seed = (int(request.config.getoption(name) or 0) for name in ("--rounds", "--trials", "--seed"))
    rng = random.Random(seed)
    _play_rounds(faults, rng, rounds, many, lambda: faults.play(rng))


@pytest.mark.parametrize("faults", [1], indirect=True)
def test_twenty_short_faults_cost_nothing(faults: Faults) -> None:
    """Every kind of fault at least once, each for a moment."""
    rng = random.Random(20)
    kinds = faults.shuffled(rng)

    def play() -> None:
        outlasts = len(faults.played) % 7 == 6
        faults.cause(next(kinds), rng, LONG_SECONDS if outlasts else rng.uniform(*SHORT_SECONDS))

    _play_rounds(faults, rng, SHORT_ROUNDS, TRIALS_BESIDE_SHORT, play)
    assert set(faults.played) == {fault.__name__ for fault in faults.all}


def _play_rounds(faults: Faults, rng: random.Random, rounds: int, many: int, play: Callable[[], None]) -> None:
    """After each fault something must happen again; at the end every run has succeeded, and nothing is left."""
    service = faults.service
    runs = Runs(service, many)
    for _ in range(rounds):
        runs.fill(rng)
        play()
        before = service.last_event()
        service.until(lambda before=before: service.last_event() > before or not runs.open(), lambda: _explain(faults))
    for run_id in runs.asked:
        run = service.database.run(lambda tx, run_id=run_id: tx.runs.get(run_id))
        assert run is not None
        service.until(lambda run=run: service.run_of(run).state in RUN_TERMINAL, lambda: _explain(faults))
        assert service.run_of(run).state == RunState.SUCCEEDED, service.explain(run)
    for run_id, asked in runs.asked.items():
        _assert_whole(service, run_id, asked)
    _assert_nothing_left(service)


def _assert_whole(service: Service, run_id: str, asked: int) -> None:
    """Each trial once, each step's end once, and every move a legal one."""
    with service.database.begin() as tx:
        run = tx.runs.get(run_id)
        numbers = tx.connection.execute(
            text("SELECT number FROM penstock.trials WHERE run_id = :run ORDER BY number"), {"run": run_id}
        )
        assert list(numbers.scalars()) == list(range(asked))
    assert run is not None
    events = service.events(run)
    assert_legal(events)
    ended = [event.data["key"] for event in events if event.kind in ("step.succeed", "step.reuse")]
    assert len(ended) == len(set(ended)) == asked + 5


def _assert_nothing_left(service: Service) -> None:
    with service.database.begin() as tx:
        counts = [
            tx.connection.execute(text(f"SELECT count(*) FROM penstock.{what}")).scalar_one()
            for what in ("attempts WHERE outcome IS NULL", "steps WHERE state IN ('blocked', 'queued', 'running')")
        ]
    assert counts == [0, 0]
    assert working_in(service.home / "work") == []


def _explain(faults: Faults) -> str:
    logs = [
        f"--- {log.name}\n" + "\n".join(log.read_text().splitlines()[-20:]) for log in faults.service.home.glob("*.log")
    ]
    return f"after {len(faults.played)} faults, at last {faults.played[-5:]}\n" + "\n".join(logs)
