"""Beside another owner's run of ten thousand trials, a run of four takes no longer than three times its time alone.

Time is counted in turns: a turn is what a worker claims at once, which takes a tenth of a second or a single step. A
busy machine makes turns longer, and their number no other. `penstock bench service` has the same in seconds.
"""

from __future__ import annotations

import pytest

from benchmarks.service_load import SLOW
from penstock.db import lifecycle
from penstock.db.schema.records import Event, Run
from penstock.db.schema.states import RunState, StepState
from penstock.services.steps.graph import run_steps
from tests.fixtures.service import Service

pytestmark = pytest.mark.slow

BODIES = "benchmarks.service_load.noop"
MANY, FEW, SLOTS = 10_000, 4, 2


def submit(service: Service, owner: str, trials: int, name: str) -> Run:
    options = {"platform": "u55c", "trials": trials}
    with service.database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:mlp")
        return lifecycle.submit(
            tx, model_id=model.id, name=name, steps=run_steps(model, options), options=options, owner=owner
        )


def claims(service: Service, run: Run) -> list[Event]:
    return [event for event in service.events(run) if event.kind == "step.claim"]


@pytest.mark.parametrize("name", [SLOW, "quick"])
def test_a_small_run_beside_a_large_one_takes_its_share(service: Service, name: str) -> None:
    large = submit(service, "ann", MANY, name)
    service.dispatcher()
    service.worker(PENSTOCK_CONCURRENCY=str(SLOTS))

    def trials_run() -> bool:
        page = service.database.run(lambda tx: tx.steps.list(large.id, kinds=["trial"], states=[StepState.RUNNING]))
        return len({step.owner for step in page.items}) == SLOTS

    service.until(trials_run, lambda: service.explain(large))
    small = submit(service, "ben", FEW, name)
    assert service.wait(small).state == RunState.SUCCEEDED, service.explain(small)
    own, others = claims(service, small), claims(service, large)
    service.cancel(large)
    assert len(own) == FEW + 5
    meanwhile = [event for event in others if event.id > service.events(small)[0].id and event.id < own[-1].id]
    turns, of_others = ({event.data["worker"] for event in found} for found in (own, meanwhile))
    assert len(of_others) <= 2 * len(turns) + SLOTS, timeline(own, meanwhile)


def timeline(own: list[Event], others: list[Event]) -> str:
    """Who claimed what, and when: for whoever has to find out why."""
    told = sorted([*own, *others], key=lambda event: event.id)
    return "\n".join(
        f"{event.at:%S.%f} {event.run_id[-4:]} {event.data['key']} {event.data['worker']}" for event in told[-200:]
    )
