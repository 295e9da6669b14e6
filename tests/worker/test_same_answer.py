"""One submission, again and again: by one worker, two, and four, some of them killed in the middle.

All choose the same design and make the same package. `--submissions 20` makes as many.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from penstock.db.schema.records import Run
from penstock.db.schema.states import RUN_TERMINAL, RunState, StepState
from penstock.services.steps.graph import IMPORT
from penstock.services.store import ContentStore
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.service import Service, assert_legal, fresh_service
from tests.worker.test_chaos import holder
from tests.worker.test_run import MODEL, submit

pytestmark = pytest.mark.slow

WORKERS = (1, 2, 4)


def test_one_submission_has_one_answer_whoever_works_at_it_and_dies(
    tmp_path: Path, postgres: EmbeddedPostgres, request: pytest.FixtureRequest
) -> None:
    wanted = int(request.config.getoption("--submissions") or 0)
    answers: dict[tuple[str, str, str], list[str]] = {}
    lost = 0
    for n, workers in enumerate(WORKERS):
        home = tmp_path / str(workers)
        home.mkdir()
        with fresh_service(home, postgres, "tests.worker.slow_trials") as service:
            service.environment["PENSTOCK_LEASE_SECONDS"] = "8"  # a busy machine is no kill
            service.dispatcher()
            there = [service.worker(PENSTOCK_CONCURRENCY="1") for _ in range(workers)]
            for number in range(n, wanted, len(WORKERS)):
                run = submit(service, MODEL, trials=10, warm_start=False)
                if number >= len(WORKERS) or workers > 1:  # the very first is left alone
                    kill_some(service, run, there, random.Random(number))
                assert service.wait(run).state == RunState.SUCCEEDED, service.explain(run)
                assert_legal(service.events(run))
                lost += sum(event.kind == "step.lose" for event in service.events(run))
                answers.setdefault(answer(service, run), []).append(f"{workers} workers, run {number}")
    assert len(answers) == 1, answers
    assert wanted < len(WORKERS) or lost, "no kill met a step: nothing is shown"


def kill_some(service: Service, run: Run, workers: list[subprocess.Popen[bytes]], rng: random.Random) -> None:
    """Two kills -9, each of a worker that has a step of the run; another starts in its place."""
    for _ in range(2):
        service.until(lambda: holders(service, run, workers) or service.run_of(run).state in RUN_TERMINAL)
        time.sleep(rng.uniform(0.0, 1.5))
        busy = holders(service, run, workers)
        if busy:
            victim = rng.choice(busy)
            workers.remove(victim)
            service.kill(victim)
            workers.append(service.worker(PENSTOCK_CONCURRENCY="1"))


def holders(service: Service, run: Run, workers: list[subprocess.Popen[bytes]]) -> list[subprocess.Popen[bytes]]:
    """Those of the workers that search, choose, check or pack it now; its import is only waited for."""
    page = service.database.run(lambda tx: tx.steps.list(run.id, states=[StepState.RUNNING]))
    busy = {holder(step) for step in page.items if step.kind != IMPORT}
    return [one for one in workers if busy.intersection(child.pid for child in psutil.Process(one.pid).children())]


def answer(service: Service, run: Run) -> tuple[str, str, str]:
    """The package, the design, and all trials with their settings and figures."""
    summary = service.run_of(run).summary
    with service.database.begin() as tx:
        trials = tx.trials.list(run.id).items
        report = next(one for one in tx.artifacts.list(run.id).items if one.name == "report.json")
    design = json.loads(ContentStore(service.home / "store").read_bytes(report.sha256))["design"]
    tried = [(trial.number, trial.params, trial.figures) for trial in trials]
    return summary["digest"], json.dumps(design, sort_keys=True), json.dumps(tried, sort_keys=True, default=str)
