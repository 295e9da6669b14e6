"""Who is served next: owners share the workers, runs share what their owner has, and no size changes that."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest
from sqlalchemy import text

from penstock.db import Database, Transaction, claiming, lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.schema.records import NewStep, Run, Step
from penstock.db.schema.states import RunState, StepState

DONE = StepOutcome({})
MANY = 10_000
_A_SECOND_LONG = text("UPDATE penstock.attempts SET started_at = now() - interval '1 s' WHERE step_id = :step")


def submit(tx: Transaction, owner: str, count: int, *, kind: str = "trial", priority: int = 0, **fields: Any) -> Run:
    model = tx.models.create(name="m", kind="zoo", source="zoo:m")
    steps = [NewStep(kind, f"{kind}/{i}", "explore", may_fail=True, **fields) for i in range(count)]
    return lifecycle.submit(
        tx, model_id=model.id, name="r", steps=steps, options={}, owner=owner, priority=priority
    )  # fmt: skip


class Lab:
    """Workers with so many hands in all; every step takes the same time."""

    def __init__(self, database: Database, hands: int, licences: dict[str, int] | None = None) -> None:
        self.database = database
        self.hands = hands
        self.licences = licences or {}
        self.working: list[Step] = []
        self.claims = 0

    def claim(self) -> Step | None:
        self.claims += 1
        with self.database.begin() as tx:
            taken = claiming.claim_next(
                tx, ("explore",), worker=f"w{self.claims}", lease_seconds=60, licences=self.licences
            )
        return taken[0] if taken else None

    def round(self) -> list[Step]:
        """All hands take what they get, and end it."""
        taken = [step for _ in range(self.hands) if (step := self.claim()) is not None]
        for step in taken:
            with self.database.begin() as tx:
                tx.connection.execute(_A_SECOND_LONG, {"step": step.id})
                lifecycle.finish(tx, step, DONE)
        return taken

    def rounds_of(self, run: Run) -> int:
        """How many rounds until the run is over."""
        for count in range(1, 100):
            self.round()
            with self.database.begin() as tx:
                found = tx.runs.get(run.id)
            assert found is not None
            if found.state == RunState.SUCCEEDED:
                return count
        raise AssertionError("it never ends")


@pytest.mark.parametrize("hands", [1, 2, 3])
def test_beside_a_huge_run_a_small_one_of_another_owner_takes_at_most_three_times_its_time(
    database: Database, hands: int
) -> None:
    lab = Lab(database, hands)
    with database.begin() as tx:
        alone = submit(tx, "ada", 4)
    needed = lab.rounds_of(alone)
    with database.begin() as tx:
        huge = submit(tx, "bob", 500 if hands > 1 else MANY)
    for _ in range(3):
        assert {step.run_id for step in lab.round()} == {huge.id}
    with database.begin() as tx:
        small = submit(tx, "ada", 4)
    assert lab.rounds_of(small) <= 3 * needed


def test_owners_share_whatever_the_number_of_their_runs(database: Database) -> None:
    lab = Lab(database, 2)
    with database.begin() as tx:
        runs = {submit(tx, "ada", 40).id: "ada"} | {submit(tx, "bob", 40).id: "bob" for _ in range(5)}
    served = Counter(runs[step.run_id] for _ in range(15) for step in lab.round())
    assert served == {"ada": 15, "bob": 15}


def test_the_runs_of_an_owner_share_and_a_higher_priority_goes_first(database: Database) -> None:
    lab = Lab(database, 1)
    with database.begin() as tx:
        first, second = submit(tx, "ada", 10), submit(tx, "ada", 10)
    assert Counter(step.run_id for _ in range(8) for step in lab.round()) == {first.id: 4, second.id: 4}
    with database.begin() as tx:
        urgent = submit(tx, "ada", 3, priority=5)
    assert [step.run_id for _ in range(3) for step in lab.round()] == [urgent.id] * 3


def test_long_steps_count_by_their_time(database: Database) -> None:
    """One hand: after a step of an hour its owner waits until the others had as much."""
    lab = Lab(database, 1)
    with database.begin() as tx:
        slow = submit(tx, "ada", 10)
    step = lab.claim()
    assert step is not None
    with database.begin() as tx:
        quick = submit(tx, "bob", 10)
        tx.connection.exec_driver_sql("UPDATE penstock.attempts SET started_at = now() - interval '1 hour'")
    with database.begin() as tx:
        lifecycle.finish(tx, step, DONE)
    assert {step.run_id for _ in range(10) for step in lab.round()} == {quick.id}
    assert [step.run_id for step in lab.round()] == [slow.id]


def test_nobody_saves_up_a_share_by_being_idle(database: Database) -> None:
    lab = Lab(database, 1)
    with database.begin() as tx:
        busy = submit(tx, "ada", 200)
    for _ in range(60):
        lab.round()
    with database.begin() as tx:
        late = submit(tx, "bob", 40)
    served = Counter(step.run_id for _ in range(20) for step in lab.round())
    assert abs(served[busy.id] - served[late.id]) <= 2


def test_a_pause_takes_effect_at_the_next_claim_and_a_resume_too(database: Database) -> None:
    lab = Lab(database, 1)
    with database.begin() as tx:
        run = submit(tx, "ada", 500)
    assert len(lab.round()) == 1
    with database.begin() as tx:
        lifecycle.pause_run(tx, run.id)
    assert lab.round() == []
    with database.begin() as tx:
        lifecycle.resume_run(tx, run.id)
    assert len(lab.round()) == 1


def test_cancelling_ten_thousand_trials_is_one_statement(database: Database) -> None:
    with database.begin() as tx:
        run = submit(tx, "ada", MANY)
    began = time.monotonic()
    with database.begin() as tx:
        cancelled = lifecycle.cancel_run(tx, run.id)
    seconds = time.monotonic() - began
    assert cancelled is not None
    assert cancelled.state == RunState.CANCELLED
    with database.begin() as tx:
        assert tx.steps.counts_by_kind([run.id])[run.id] == {("trial", StepState.CANCELLED): MANY}
        told = tx.connection.exec_driver_sql(
            "SELECT count(*) FROM penstock.events WHERE kind = 'step.cancel' AND run_id = %s"
            " AND data->>'from' = 'queued' AND data->>'to' = 'cancelled'", (run.id,)
        ).scalar_one()  # fmt: skip
    assert told == MANY
    assert seconds < 15, "a statement a row takes a minute on a busy machine, one for all a second"


def test_licences_are_counted_across_workers(database: Database) -> None:
    lab = Lab(database, 5, {"vitis_hls": 2})
    with database.begin() as tx:
        submit(tx, "ada", 4, kind="measure", licence="vitis_hls")
        plain = submit(tx, "bob", 2)
    taken = [step for _ in range(5) if (step := lab.claim()) is not None]
    assert Counter(step.licence for step in taken) == {"vitis_hls": 2, None: 2}
    assert {step.run_id for step in taken if step.licence is None} == {plain.id}
    first = next(step for step in taken if step.licence)
    with database.begin() as tx:
        lifecycle.finish(tx, first, DONE)
    again = lab.claim()
    assert again is not None
    assert again.licence == "vitis_hls"
    assert lab.claim() is None


def test_what_an_owner_used_is_counted(database: Database) -> None:
    lab = Lab(database, 1)
    with database.begin() as tx:
        submit(tx, "ada", 5)
    for _ in range(3):
        lab.round()
    with database.begin() as tx:
        usage = tx.shares.of_owner("ada")
        assert (usage.runs, usage.trials, usage.bytes) == (1, 5, 0)
        assert usage.seconds > 0
        assert tx.shares.of_owner("bob").seconds == 0
