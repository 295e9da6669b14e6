"""What the service costs: start and stop of a private one, one run from submission to package, and what load does.

`--only run` and `--only load` do one half. What is measured under load is in service_load/.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from io import StringIO

from rich.console import Console

from benchmarks.registry import WALL_CLOCK, Figures, Value
from benchmarks.service_load.load import measure_load
from penstock.compiler.errors import PenstockError
from penstock.services.api.answers.schemas import RunDetail, StepOut
from penstock.services.cli.watching import follow
from penstock.services.client.blocking import Client
from penstock.services.supervisor.borrowed import borrowed_stack

MODEL = "zoo:mlp?inputs=64&hidden=32,32"
TRIALS = 60
TIMEOUT_SECONDS = 300.0


def run(only: str = "") -> Figures:
    rows: list[Mapping[str, Value]] = []
    summary: dict[str, Value] = {}
    for name, measure in (("run", _one_run), ("load", _load)):
        if only in ("", name):
            found = measure()
            rows += found.rows
            summary |= found.summary
    return Figures(WALL_CLOCK, rows, summary)


def _load() -> Figures:
    found = measure_load()
    return Figures(WALL_CLOCK, found.rows, found.summary)


def _one_run() -> Figures:
    began = time.monotonic()
    with borrowed_stack() as stack, Client(stack.url, stack.token) as service:
        ready = time.monotonic() - began
        model = service.submit_model(MODEL)
        submitted = service.submit_run(model.id, trials=TRIALS, quantize="w8a8", platform="u55c")
        done = follow(service, submitted.id, Console(file=StringIO()), timeout=TIMEOUT_SECONDS)
        ending = time.monotonic()
    stopped = time.monotonic() - ending
    if done.state != "succeeded":
        reason = done.error.what if done.error else "no reason was given"
        raise PenstockError(code="bench-failed", what=f"the run ended as {done.state}: {reason}", where="service")
    exploring = _seconds(_step(done, "explore").finished_at, _step(done, "select").queued_at)
    return Figures(
        evidence=WALL_CLOCK,
        rows=_rows(done),
        summary={
            "ready_seconds": round(ready, 2),
            "run_seconds": _seconds(done.created_at, _step(done, "package").finished_at),
            "trials_per_second": round(TRIALS / exploring, 2) if exploring else None,
            "stop_seconds": round(stopped, 2),
        },
    )


def _rows(done: RunDetail) -> list[Mapping[str, Value]]:
    """How long each step waited for a worker, and how long it took."""
    return [
        {
            "step": step.key,
            "waited_seconds": _seconds(step.queued_at, step.started_at),
            "seconds": _seconds(step.started_at, step.finished_at),
            "attempts": step.attempt,
        }
        for step in done.steps
    ]


def _step(done: RunDetail, key: str) -> StepOut:
    return next(step for step in done.steps if step.key == key)


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else round((end - start).total_seconds(), 3)
