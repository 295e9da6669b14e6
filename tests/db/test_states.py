"""The state machine: its table is sound, the database enforces the same one, and no history breaks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from penstock.db import Database, lifecycle
from penstock.db.lifecycle import StepOutcome
from penstock.db.repositories.queues import Portion, Wanted
from penstock.db.schema.records import NewStep, Run, Step, TrialSummary
from penstock.db.schema.states import (
    RUN_TERMINAL,
    RUN_TRANSITIONS,
    STEP_TERMINAL,
    STEP_TRANSITIONS,
    RunState,
    StepState,
    Transition,
    TransitionRefusedError,
)
from penstock.services.supervisor.postgres import EmbeddedPostgres
from tests.fixtures.servers import fresh_database
from tests.fixtures.service import assert_legal

MACHINES = {
    "step": (STEP_TRANSITIONS, (StepState.BLOCKED, StepState.QUEUED), STEP_TERMINAL, StepState),
    "run": (RUN_TRANSITIONS, (RunState.QUEUED,), RUN_TERMINAL, RunState),
}


def moves(table: dict[str, Transition]) -> set[tuple[str, str]]:
    return {(source, move.target) for move in table.values() for source in move.sources}


@pytest.mark.parametrize("name", MACHINES)
def test_every_state_can_be_reached_and_left_unless_it_is_an_end(name: str) -> None:
    table, initial, terminal, states = MACHINES[name]
    reached = set(initial)
    while grown := {target for source, target in moves(table) if source in reached} - reached:
        reached |= grown
    assert reached == set(states)
    left = {source for name, move in table.items() if name != "extend" for source in move.sources}
    assert set(states) - left == set(terminal), "only whoever extends a run has it leave an end"


@pytest.mark.parametrize("name", MACHINES)
def test_the_database_enforces_exactly_this_table(database: Database, name: str) -> None:
    """Every pair of states is tried against the trigger, without our code in between."""
    table, _, _, states = MACHINES[name]
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        run = lifecycle.submit(
            tx, model_id=model.id, name="r", steps=[NewStep("k", "a", "explore")], options={}, owner=None
        )
        subject = run.id if name == "run" else tx.steps.list(run.id).items[0].id
    allowed: set[tuple[str, str]] = set()
    for source in states:
        for target in states:
            if source != target and _try(database, name, subject, source, target):
                allowed.add((source, target))
    assert allowed == moves(table)


def _try(database: Database, name: str, subject: str, source: str, target: str) -> bool:
    with database.engine.connect() as connection:
        # replica mode switches triggers off, to bring the row into the state to start from
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        update = text(f"UPDATE penstock.{name}s SET state = :state WHERE id = :id")
        connection.execute(update, {"state": source, "id": subject})
        connection.execute(text("SET LOCAL session_replication_role = origin"))
        try:
            connection.execute(update, {"state": target, "id": subject})
        except DBAPIError as error:
            if "illegal transition" not in str(error.orig):
                raise
            return False
        finally:
            connection.rollback()
    return True


def test_events_cannot_be_changed(database: Database) -> None:
    with database.begin() as tx:
        model = tx.models.create(name="m", kind="zoo", source="zoo:m")
        tx.runs.create(model_id=model.id, name="r")
    with pytest.raises(DBAPIError, match="append-only"), database.begin() as tx:
        tx.connection.execute(text("UPDATE penstock.events SET kind = 'other'"))


class Histories(RuleBasedStateMachine):
    """Workers, janitors and users do things in any order, with leases that they may have lost long ago."""

    database: Database

    @initialize()
    def submit(self) -> None:
        graph = [
            NewStep("k", "a", "explore"),
            NewStep("k", "b", "explore", needs=("a",)),
            NewStep("k", "c", "explore", needs=("a",), may_fail=True),
            NewStep("k", "d", "explore", needs=("b", "c")),
        ]
        with self.database.begin() as tx:
            model = tx.models.create(name="m", kind="zoo", source="zoo:m")
            self.run: Run = lifecycle.submit(tx, model_id=model.id, name="r", steps=graph, options={}, owner=None)
        self.claims: list[Step] = []
        self.succeeded: set[str] = set()
        self.parts = 0

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        step = data.draw(st.sampled_from(self.steps()))
        with self.database.begin() as tx:
            claimed = lifecycle.claim(tx, step.id, worker=f"w{len(self.claims)}", lease_seconds=60)
        assert (claimed is not None) == (step.state == StepState.QUEUED)
        if claimed is not None:
            self.claims.append(claimed)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), how=st.sampled_from(["finish", "fan", "fail", "retry", "hand_back", "stop"]))
    def end(self, data: st.DataObject, how: str) -> None:
        """By any claim ever made, the lost ones too."""
        claim = data.draw(st.sampled_from(self.claims))
        now = next(step for step in self.steps() if step.id == claim.id)
        holds = now.state == StepState.RUNNING and now.fence == claim.fence
        error = {"code": "x", "what": "y"}
        try:
            with self.database.begin() as tx:
                if how == "finish":
                    summary = TrialSummary(len(self.succeeded), "complete", {}, {}, "modelled", None, 0.0)
                    lifecycle.finish(tx, claim, StepOutcome({}, trial=summary))
                elif how == "fan":
                    self.parts += 1
                    new = NewStep("k", f"part/{self.parts}", "explore", may_fail=self.parts % 2 == 0)
                    lifecycle.finish(tx, claim, StepOutcome({}, new_steps=[new]))
                elif how == "stop":
                    lifecycle.stop(tx, claim)
                else:
                    move = {"fail": lifecycle.fail, "retry": lifecycle.retry, "hand_back": lifecycle.hand_back}
                    move[how](tx, claim, error)
        except TransitionRefusedError:
            assert not holds
        else:
            assert holds
            if how in ("finish", "fan"):
                assert claim.id not in self.succeeded, "a step succeeded twice"
                self.succeeded.add(claim.id)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), seen=st.booleans())
    def lose(self, data: st.DataObject, seen: bool) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        past = text("UPDATE penstock.steps SET lease_until = now() - interval '1 s' WHERE id = :id AND fence = :f")
        with self.database.begin() as tx:
            tx.connection.execute(past, {"id": claim.id, "f": claim.fence})
        with self.database.begin() as tx:
            if seen:
                lifecycle.lose(tx, claim.id, claim.fence, {"code": "worker-crashed", "what": "y"})
            else:
                lifecycle.reap(tx, claim)

    @rule(really=st.integers(0, 9))
    def cancel(self, really: int) -> None:
        if really == 0:
            with self.database.begin() as tx:
                lifecycle.cancel_run(tx, self.run.id)

    @invariant()
    def rows_agree(self) -> None:
        with self.database.begin() as tx:
            run = tx.runs.get(self.run.id)
            tx.connection.execute(text("UPDATE penstock.steps SET due_at = now() WHERE due_at > now()"))
            tx.runs.lock(self.run.id)
            trial = tx.connection.begin_nested()
            one = Portion()
            offered = tx.steps.claim(self.run.id, Wanted(("explore",)), worker="w", lease_seconds=60, portion=one)
            trial.rollback()
        assert run is not None
        steps = self.steps()
        queued = {step.id for step in steps if step.state == StepState.QUEUED}
        assert [step.id for step in offered] == sorted(queued)[:1], "what is queued is offered, and nothing else"
        still_open = [step for step in steps if step.state not in STEP_TERMINAL]
        assert bool(still_open) != (run.state in RUN_TERMINAL), "a run is over exactly when none of its steps is open"
        if run.state in (RunState.SUCCEEDED, RunState.RUNNING):
            assert all(s.may_fail for s in steps if s.state == StepState.FAILED)
        if run.state == RunState.RUNNING:
            assert any(s.state != StepState.BLOCKED for s in still_open), "a running run can go on"

    def teardown(self) -> None:
        if hasattr(self, "run"):
            with self.database.begin() as tx:
                assert_legal(tx.events.after(self.run.id))

    def steps(self) -> list[Step]:
        with self.database.begin() as tx:
            return list(tx.steps.list(self.run.id, limit=500).items)


@pytest.fixture(scope="module")
def shared_database(postgres: EmbeddedPostgres) -> Iterator[Database]:
    with fresh_database(postgres) as url:
        database = Database(url)
        yield database
        database.close()


def test_no_history_breaks_the_state_machine(shared_database: Database) -> None:
    class OnDatabase(Histories):
        database = shared_database

    run_state_machine_as_test(
        OnDatabase,
        settings=settings(
            max_examples=20, stateful_step_count=25, phases=[Phase.generate],
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], derandomize=True,
        ),
    )  # fmt: skip
