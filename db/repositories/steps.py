"""Steps and their edges: guarded transitions, leases, fan-in counts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    cast,
    exists,
    func,
    select,
    text,
    update,
)

from penstock.db.repositories.base import Repository
from penstock.db.repositories.events import Events
from penstock.db.repositories.queues import CHANNEL, HELD_BY_PAUSE, Portion, Wanted
from penstock.db.repositories.step_moves import (
    BEGIN,
    CLAIM_NEXT,
    CLAIM_THIS,
    CREATE,
    MOVES_OF_MANY,
    OUTLOOK,
    RECORD,
    RETURN,
    SUCCEED,
    Sql,
    move_one,
    stamps,
)
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Json, MadeTrial, NewStep, Page, Step
from penstock.db.schema.states import STEP_TRANSITIONS, StepState, TransitionRefusedError
from penstock.db.schema.tables import step_edges, steps

_CONNECT = text("""
    INSERT INTO penstock.step_edges (step_id, needs_id)
    SELECT * FROM unnest(CAST(:ends AS text[]), CAST(:needs AS text[]))
""")
_HEARTBEAT = text("""
    UPDATE penstock.steps s SET lease_until = now() + make_interval(secs => :lease)
    FROM unnest(CAST(:steps AS text[]), CAST(:fences AS bigint[])) AS held (step, fence)
    WHERE s.id = held.step AND s.fence = held.fence AND s.state = 'running' RETURNING s.id, s.cancel_requested
""")
_FIELDS = tuple(field.name for field in fields(Step))
_OPEN = (StepState.BLOCKED, StepState.QUEUED, StepState.RUNNING)


@dataclass(frozen=True)
class Outlook:
    """What the end of a step means to its run."""

    releases: bool
    open: bool


class Steps(Repository):
    def create(
        self, run_id: str, new_steps: Sequence[NewStep], waiting: AbstractSet[str]
    ) -> tuple[dict[str, str], int]:
        """Insert steps; the keys of those that wait for others are given, whose edges penstock.db.lifecycle adds. The
        rest is queued.

        Returns their ids by key, and how many were queued. One statement for any number: a search has thousands of
        trials, and whoever waits for the run's lock waits for them. Their events are `Events.add_created`.
        """
        self.scope.require_lock(run_id)
        rows = [_row(step) | {"waits": step.key in waiting} for step in new_steps]
        values = {"run": run_id, "rows": json.dumps(rows), "actor": self.scope.actor}
        queued = int(self.connection.execute(CREATE, values).scalar_one()) if rows else 0
        return {str(row["key"]): str(row["id"]) for row in rows}, queued

    def begin(self, run_id: str, new_steps: Sequence[NewStep]) -> tuple[tuple[Step, ...], int]:
        """The steps that a run begins with, in one statement; with the id of the last event that tells of them.

        Their needs are among them, and what needs nothing is queued.
        """
        self.scope.require_lock(run_id)
        rows = [_row(step) for step in new_steps]
        ids = {str(row["key"]): str(row["id"]) for row in rows}
        pairs = [(ids[step.key], ids[key]) for step in new_steps for key in step.needs]
        pairs += [(ids[key], ids[step.key]) for step in new_steps for key in step.needed_by]
        waiting = {end for end, _ in pairs}
        given = {
            "run": run_id, "rows": json.dumps([row | {"waits": row["id"] in waiting} for row in rows]),
            "ends": [end for end, _ in pairs], "needs": [need for _, need in pairs], "channel": CHANNEL,
            "actor": self.scope.actor,
        }  # fmt: skip
        made = self.connection.execute(BEGIN, given).mappings().all()
        steps_made = tuple(Step(**{name: row[name] for name in _FIELDS}) for row in made)
        return steps_made, int(made[0]["last_event_id"]) if made else 0

    def add_edges(self, edges: Sequence[tuple[str, str]]) -> None:
        """Each pair is (step, step that it needs)."""
        if edges:
            ends, needs = [step for step, _ in edges], [need for _, need in edges]
            self.connection.execute(_CONNECT, {"ends": ends, "needs": needs})

    def get(self, step_id: str) -> Step | None:
        return self._first(Step, select(steps).where(steps.c.id == step_id))

    def blocked_keys(self, run_id: str, keys: Sequence[str]) -> set[str]:
        """Those of the steps that still wait for others."""
        statement = select(steps.c.key).where(
            steps.c.run_id == run_id, steps.c.key.in_(keys), steps.c.state == StepState.BLOCKED
        )
        return set(self.connection.execute(statement).scalars())

    def by_key(self, run_id: str, key: str) -> Step | None:
        return self._first(Step, select(steps).where(steps.c.run_id == run_id, steps.c.key == key))

    def by_ids(self, step_ids: Collection[str]) -> tuple[Step, ...]:
        return self._all(Step, select(steps).where(steps.c.id.in_(step_ids)))

    def ids_by_key(self, run_id: str, keys: Sequence[str]) -> dict[str, str]:
        statement = select(steps.c.key, steps.c.id).where(steps.c.run_id == run_id, steps.c.key.in_(keys))
        return self._pairs(statement)

    def list(
        self,
        run_id: str,
        *,
        kinds: Sequence[str] = (),
        states: Sequence[str] = (),
        cursor: str | None = None,
        limit: int = 200,
    ) -> Page[Step]:
        """A run's steps in the order of their making."""
        statement = select(steps).where(steps.c.run_id == run_id).order_by(steps.c.id)
        if kinds:
            statement = statement.where(steps.c.kind.in_(kinds))
        if states:
            statement = statement.where(steps.c.state.in_(states))
        if cursor is not None:
            statement = statement.where(steps.c.id > cursor)
        return self._page(Step, statement, limit, lambda row: row["id"])

    def list_except(self, run_id: str, kind: str) -> tuple[Step, ...]:
        """All steps of a run but those of one kind, in the order of their making."""
        statement = select(steps).where(steps.c.run_id == run_id, steps.c.kind != kind)
        return self._all(Step, statement.order_by(steps.c.id))

    def counts_by_kind(self, run_ids: Sequence[str]) -> dict[str, dict[tuple[str, str], int]]:
        """For each run, how many steps of each (kind, state) it has; empty for a run without steps."""
        statement = (
            select(steps.c.run_id, steps.c.kind, steps.c.state, func.count())
            .where(steps.c.run_id.in_(run_ids))
            .group_by(steps.c.run_id, steps.c.kind, steps.c.state)
        )
        counts: dict[str, dict[tuple[str, str], int]] = {run_id: {} for run_id in run_ids}
        for run_id, kind, state, count in self.connection.execute(statement):
            counts[run_id][kind, state] = count
        return counts

    def move_to(self, run_id: str, key: str, queues: tuple[str, str], payload: Json) -> bool:
        """Have a step that has not begun wait in the second queue and no longer in the first, with more in its payload.

        False if it is not in the first one.
        """
        self.scope.require_lock(run_id)
        moved = update(steps).where(
            steps.c.run_id == run_id, steps.c.key == key, steps.c.queue == queues[0],
            steps.c.state.in_((StepState.BLOCKED, StepState.QUEUED)),
        )  # fmt: skip
        values = {"queue": queues[1], "payload": steps.c.payload.concat(cast(dict(payload), steps.c.payload.type))}
        return self.connection.execute(moved.values(values)).rowcount == 1

    def next_number(self, run_id: str, kind: str) -> int:
        """One more than the highest number that a step of one kind has in its payload."""
        number = cast(steps.c.payload["number"].astext, Integer)
        statement = select(func.coalesce(func.max(number) + 1, 0)).where(steps.c.run_id == run_id, steps.c.kind == kind)
        return self.connection.execute(statement).scalar_one()

    def running_by_worker(self) -> dict[str, tuple[int, datetime]]:
        """For each worker that holds leases, how many steps it runs and until when it is believed alive."""
        statement = (
            select(steps.c.owner, func.count(), func.max(steps.c.lease_until))
            .where(steps.c.state == StepState.RUNNING, steps.c.owner.is_not(None))
            .group_by(steps.c.owner)
        )
        return {owner: (count, until) for owner, count, until in self.connection.execute(statement)}

    def edges(self, run_id: str) -> tuple[tuple[str, str], ...]:
        """All (step, step that it needs) pairs of a run, for drawing its graph."""
        statement = (
            select(step_edges.c.step_id, step_edges.c.needs_id)
            .join(steps, steps.c.id == step_edges.c.step_id)
            .where(steps.c.run_id == run_id)
        )
        return tuple((step, needs) for step, needs in self.connection.execute(statement))

    def transition(
        self,
        name: str,
        step: Step,
        *,
        fence: int | None = None,
        values: Mapping[str, Any] | None = None,
        data: Json | None = None,
    ) -> Step:
        """Make the named move under the fence and record it; or change nothing: TransitionRefusedError.

        Every move out of `running` needs the fence of the claim that is given up.
        """
        self.scope.require_lock(step.run_id)
        move = STEP_TRANSITIONS[name]
        changes = {"state": str(move.target)} | stamps(move.target) | dict(values or {})
        # every move out of `running` is fenced; a missing fence equals nothing
        fenced = " AND fence = :fence" if StepState.RUNNING in move.sources else ""
        given = {
            "step": step.id, "run": step.run_id, "fence": fence, "sources": list(move.sources), "was": step.state,
            "told": f"step.{name}", "data": json.dumps(dict(data or {})), "actor": self.scope.actor,
        }  # fmt: skip
        statement, bound = move_one(changes, fenced)
        after = self._first(Step, statement, given | bound)
        if after is None:
            now = self.get(step.id)
            detail = f" under fence {now.fence}, not {fence}" if now and fence is not None else ""
            raise TransitionRefusedError(step.id, name, now.state if now else None, detail)
        return after

    def succeed(self, run_id: str, rows: Sequence[Mapping[str, Any]]) -> set[str]:
        """Steps of the run end well, each under its fence, with its trial and what it took; those whose fence holds.

        A row names the step, its fence, result, trial, what it was reused from, and its seconds, if they are known.
        """
        self.scope.require_lock(run_id)
        given = {"run": run_id, "rows": json.dumps(rows), "actor": self.scope.actor}
        return set(self.connection.execute(SUCCEED, given).scalars())

    def return_unbegun(self, run_id: str, held: Mapping[str, int], error: Json) -> int:
        """Queue steps again that were claimed and never begun; returns how many of them were still held."""
        self.scope.require_lock(run_id)
        given = {
            "steps": list(held), "fences": list(held.values()), "error": json.dumps(error), "actor": self.scope.actor,
        }  # fmt: skip
        return len(self.connection.execute(RETURN, given).all())

    def outlook(self, run_id: str, step_ids: Sequence[str]) -> Outlook:
        """After steps have ended: whether others only waited for them, and whether any of the run is left."""
        row = self.connection.execute(OUTLOOK, {"run": run_id, "steps": list(step_ids)}).one()
        return Outlook(bool(row.releases), bool(row.open))

    def release(self, run_id: str) -> int:
        """The move `release` of every blocked step of the run whose needs are all done; returns how many.

        One statement, whatever their number: the fan-in is counted from the rows of what is not done yet.
        """
        return self._move_many("release", run_id)

    def cancel_waiting(self, run_id: str) -> int:
        """The move `cancel` of every step of the run that has not started; returns how many."""
        return self._move_many("cancel", run_id)

    def _move_many(self, name: str, run_id: str) -> int:
        """One move of many steps with an event for each, without a row of them leaving the database."""
        self.scope.require_lock(run_id)
        return self.connection.execute(MOVES_OF_MANY[name], {"run": run_id, "actor": self.scope.actor}).rowcount

    def claim(
        self, run_id: str, wanted: Wanted, *, worker: str, lease_seconds: float, portion: Portion
    ) -> tuple[Step, ...]:
        """Give the run's first steps that may be done now to a worker; the run is locked.

        Each gets a new fence, one more attempt and a lease.
        """
        self.scope.require_lock(run_id)
        more = {"most": portion.most, "kind": portion.kind}
        return self._all(Step, CLAIM_NEXT, self._claiming(run_id, wanted, worker, lease_seconds) | more)

    def claim_this(self, run_id: str, step_id: str, *, worker: str, lease_seconds: float) -> Step | None:
        """The same for the one that is named, if it is queued; due or not."""
        self.scope.require_lock(run_id)
        given = self._claiming(run_id, Wanted(()), worker, lease_seconds)
        return self._first(Step, CLAIM_THIS, given | {"step": step_id})

    def _claiming(self, run_id: str, wanted: Wanted, worker: str, lease_seconds: float) -> dict[str, Any]:
        return {
            "run": run_id, "queues": list(wanted.queues), "taken": list(wanted.taken_licences),
            "held": list(HELD_BY_PAUSE), "worker": worker, "lease": lease_seconds, "actor": self.scope.actor,
        }  # fmt: skip

    @staticmethod
    def from_now(seconds: float) -> Sql:
        """A time by the database's clock."""
        return Sql(f"now() + interval '{float(seconds):.3f} seconds'")

    def hold(self, step_id: str, fence: int) -> bool:
        """Lock the step against the loss of its lease until the transaction ends; False if lost already."""
        statement = select(steps.c.id).where(*_held(step_id, fence)).with_for_update(key_share=True)
        return self.connection.execute(statement).first() is not None

    def heartbeat(self, held: Mapping[str, int], lease_seconds: float) -> dict[str, bool]:
        """Renew the leases of steps, each under its fence; of each still held, whether it is to be cancelled."""
        given = {"steps": list(held), "fences": list(held.values()), "lease": lease_seconds}
        return {step: bool(cancel) for step, cancel in self.connection.execute(_HEARTBEAT, given)}

    def set_progress(self, step: Step, fraction: float | None, words: str | None) -> bool:
        """Show how far the step is; False if the fence refuses it."""
        self.scope.require_lock(step.run_id)
        shown = update(steps).where(*_held(step.id, step.fence)).values(progress=fraction, progress_text=words)
        if self.connection.execute(shown.returning(steps.c.id)).first() is None:
            return False
        data = {"step": step.id, "key": step.key, "fraction": fraction, "text": words}
        Events(self.scope).add(step.run_id, "step.progress", data)
        return True

    def record_trials(self, step: Step, kind: str, trials: Mapping[str, MadeTrial]) -> None:
        """Trials that a step made itself, by their keys; whoever shows them finds them as trials of any run."""
        self.scope.require_lock(step.run_id)
        rows = [
            {
                "id": new_id("stp"), "key": key, "number": made.summary.number, "result": dict(made.result),
                "error": dict(made.error) if made.error else None, "trial": asdict(made.summary),
            }
            for key, made in trials.items()
        ]  # fmt: skip
        given = {"run": step.run_id, "kind": kind, "queue": step.queue, "owner": step.owner, "rows": json.dumps(rows)}
        self.connection.execute(RECORD, given)

    def set_memo(self, step_id: str, fence: int, memo: Json) -> bool:
        """Leave word for a later attempt; False if the fence refuses it."""
        left = update(steps).where(*_held(step_id, fence)).values(memo=dict(memo)).returning(steps.c.id)
        return self.connection.execute(left).first() is not None

    def set_input_hash(self, step_id: str, fence: int, input_hash: str) -> None:
        hashed = update(steps).where(*_held(step_id, fence)).values(input_hash=input_hash)
        self.connection.execute(hashed)

    def reusable(self, kind: str, input_hash: str) -> Step | None:
        """The newest step that succeeded with these inputs by doing the work itself."""
        statement = select(steps).where(
            steps.c.kind == kind,
            steps.c.input_hash == input_hash,
            steps.c.state == StepState.SUCCEEDED,
            steps.c.reused_from.is_(None),
        )
        return self._first(Step, statement.order_by(steps.c.id.desc()).limit(1))

    def expired(self, grace_seconds: float, limit: int = 100) -> tuple[Step, ...]:
        """Running steps whose lease is over. None for a while after Postgres starts: workers that could
        not reach it must be able to renew first."""
        statement = select(steps).where(
            steps.c.state == StepState.RUNNING,
            steps.c.lease_until < func.now(),
            func.pg_postmaster_start_time() < _from_now(-grace_seconds),
        )
        return self._all(Step, statement.order_by(steps.c.lease_until).limit(limit))

    def shorten_leases(self, longest_seconds: float) -> int:
        """Leases end in that many seconds at the latest, by the clock of now; returns how many ended later."""
        longest = _from_now(longest_seconds)
        too_long = update(steps).where(steps.c.state == StepState.RUNNING, steps.c.lease_until > longest)
        return self.connection.execute(too_long.values(lease_until=longest)).rowcount

    def lock_expired(self, step_id: str, fence: int) -> Step | None:
        """The step if its lease is still over now that the run is locked."""
        statement = select(steps).where(*_held(step_id, fence), steps.c.lease_until < func.clock_timestamp())
        return self._first(Step, statement.with_for_update(key_share=True))

    def request_cancel(self, run_id: str) -> int:
        """Ask the workers of the run's running steps to stop; returns how many were asked."""
        asked = update(steps).where(steps.c.run_id == run_id, steps.c.state == StepState.RUNNING)
        return self.connection.execute(asked.values(cancel_requested=True)).rowcount

    def has_open(self, run_id: str) -> bool:
        """Whether any step of the run may still move."""
        found = exists().where(steps.c.run_id == run_id, steps.c.state.in_(_OPEN))
        return bool(self.connection.execute(select(found)).scalar_one())

    def live_fences(self, step_ids: Sequence[str]) -> dict[str, int]:
        """The fences of those of the steps that are running: whose work folders must stay."""
        statement = select(steps.c.id, steps.c.fence).where(
            steps.c.id.in_(step_ids), steps.c.state == StepState.RUNNING
        )
        return self._pairs(statement)


def _row(step: NewStep) -> dict[str, Any]:
    return {
        "id": new_id("stp"), "kind": step.kind, "key": step.key, "queue": step.queue, "payload": dict(step.payload),
        "may_fail": step.may_fail, "max_attempts": step.max_attempts, "licence": step.licence,
    }  # fmt: skip


def _held(step_id: str, fence: int) -> tuple[ColumnElement[bool], ...]:
    return (steps.c.id == step_id, steps.c.state == StepState.RUNNING, steps.c.fence == fence)


def _from_now(seconds: float) -> ColumnElement[Any]:
    return func.now() + text(f"interval '{float(seconds):.3f} seconds'")
