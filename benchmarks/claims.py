"""How many steps a second can be claimed and finished: the state machine's own speed, on an embedded Postgres.

No broker and no bodies: processes claim what comes next and record its end, each in a transaction that locks the run,
writes the attempt and the events, and counts the fan-in.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Mapping

from benchmarks.registry import WALL_CLOCK, Figures, Value
from penstock.db import Database, claiming, lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.migrate import migrate
from penstock.db.schema.records import NewStep
from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.postgres import EmbeddedPostgres

STEPS = 600
# processes, runs that the steps are spread over: one run's steps wait for its lock, those of many do not
CASES = ((1, 1), (2, 1), (2, 8))


def run() -> Figures:
    folder = open_folder()
    server = EmbeddedPostgres(folder / "pg", folder / "s")
    try:
        server.start()
        migrate(server.url)
        rows = [_measure(server.url, processes, runs) for processes, runs in CASES]
    finally:
        server.stop()
        shutil.rmtree(folder)
    fastest = max(float(str(row["claims_per_s"])) for row in rows)
    return Figures(WALL_CLOCK, rows, {"claims_per_s": fastest, "claims_per_s_one_process": rows[0]["claims_per_s"]})


def _measure(url: str, processes: int, runs: int) -> Mapping[str, Value]:
    _submit(url, runs)
    context = multiprocessing.get_context("spawn")
    with context.Pool(processes) as pool:
        pool.map(_work, [(url, 0)] * processes)  # start-up and imports are not what is measured
        began = time.monotonic()
        done = sum(pool.map(_work, [(url, STEPS)] * processes, chunksize=1))
        seconds = time.monotonic() - began
    if done != STEPS:
        raise RuntimeError(f"{done} of {STEPS} steps were claimed")
    return {"processes": processes, "runs": runs, "steps": done, "claims_per_s": round(done / seconds, 1)}


def _submit(url: str, runs: int) -> None:
    database = Database(url)
    for _ in range(runs):
        with database.begin() as tx:
            model = tx.models.create(name="m", kind="zoo", source="zoo:mlp")
            steps = [NewStep("k", f"s{i}", "explore") for i in range(STEPS // runs)]
            made = lifecycle.submit(tx, model_id=model.id, name="r", steps=steps, options={}, owner=None)
            assert made.state == "queued"
    database.close()


def _work(job: tuple[str, int]) -> int:
    url, most = job
    database = Database(url, pool_size=1)
    done = 0
    while done < most:
        name = f"bench:{os.getpid()}:{done}"
        with database.begin() as tx:
            steps = claiming.claim_next(tx, ("explore",), worker=name, lease_seconds=60, licences={})
        if not steps:
            break
        with database.begin() as tx:
            lifecycle.finish(tx, steps[0], StepOutcome({}))
        done += 1
    database.close()
    return done
