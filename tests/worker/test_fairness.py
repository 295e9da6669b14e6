"""Beside another owner's run of ten thousand trials, a run of four takes no longer than three times its time alone.

Time is counted in steps, all of which take the same here: a busy machine makes them longer, and their number no other.
"""

from __future__ import annotations

import pytest

from benchmarks.service_load import SLOW
from penstock.db import lifecycle
from penstock.db.schema.records import Run
from penstock.db.schema.states import RunState, StepState
from penstock.services.steps.graph import run_steps
from tests.fixtures.service import Service

pytestmark = pytest.mark.slow

BODIES = "benchmarks.service_load.noop"
MANY, FEW, SLOTS = 10_000, 4, 2


def submit(service: Service, owner: str, trials: int) -> Run:
    options = {"platform": "u55c", "trials": trials}
    with service.database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:mlp")
        return lifecycle.submit(
            tx, model_id=model.id, name=f"{SLOW} {trials}", steps=run_steps(model, options), options=options,
            owner=owner,
        )  # fmt: skip


def claimed(service: Service, run: Run) -> int:
    return sum(event.kind == "step.claim" for event in service.events(run))


def test_a_small_run_beside_a_large_one_takes_its_share(service: Service) -> None:
    large = submit(service, "ann", MANY)
    service.dispatcher()
    service.worker(PENSTOCK_CONCURRENCY=str(SLOTS))

    def trials_run() -> bool:
        page = service.database.run(lambda tx: tx.steps.list(large.id, kinds=["trial"], states=[StepState.RUNNING]))
        return len(page.items) == SLOTS

    service.until(trials_run, lambda: service.explain(large))
    before = claimed(service, large)
    small = submit(service, "ben", FEW)
    assert service.wait(small).state == RunState.SUCCEEDED, service.explain(small)
    own, others = claimed(service, small), claimed(service, large) - before
    service.cancel(large)
    assert own == FEW + 5
    assert others <= 2 * own + SLOTS, f"{others} steps of the large run were begun during the {own} of the small one"
