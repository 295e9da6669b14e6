"""Runs: one row a submission. Its row lock orders everything that happens to the run."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists, func, literal, null, or_, select, text, update
from sqlalchemy.dialects.postgresql import JSONB

from penstock.db.repositories.base import Repository, Scope
from penstock.db.repositories.events import Events
from penstock.db.repositories.webhooks import Webhooks
from penstock.db.schema.ids import new_id
from penstock.db.schema.records import Json, Page, Run
from penstock.db.schema.states import RUN_TERMINAL, RUN_TRANSITIONS, RunState, TransitionRefusedError
from penstock.db.schema.tables import runs, steps

_LOCK = text("SELECT * FROM penstock.runs WHERE id = :run FOR NO KEY UPDATE")
# It and its owner begin where the least served of the others is: see shares.py.
_CREATE = text("""
    WITH going AS (
        SELECT coalesce(owner, '') AS owner, used FROM penstock.runs WHERE state IN ('queued', 'running')
    ), share AS (
        INSERT INTO penstock.shares AS known (owner, used)
        SELECT :sharer, coalesce((SELECT min(s.used) FROM penstock.shares s JOIN going USING (owner)), 0)
        WHERE NOT EXISTS (SELECT FROM going WHERE owner = :sharer)
        ON CONFLICT (owner) DO UPDATE SET used = greatest(known.used, excluded.used)
    ), made AS (
        INSERT INTO penstock.runs (id, model_id, name, state, options, owner, priority, used)
        VALUES (
            :id, :model_id, :name, :state, CAST(:options AS jsonb), :owner, :priority,
            coalesce((SELECT min(used) FROM going WHERE owner = :sharer), 0)
        ) RETURNING *
    ), told AS (
        INSERT INTO penstock.events (run_id, kind, data, actor)
        SELECT id, 'run.create', jsonb_build_object('from', NULL, 'to', state, 'name', name), :actor FROM made
    )
    SELECT * FROM made
""")
_INTAKE = 0x696E74616B65  # "intake"


class Runs(Repository):
    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self._locked: dict[str, Run] = {}

    def create(
        self, *, model_id: str, name: str, options: Json | None = None, owner: str | None = None, priority: int = 0
    ) -> Run:
        """A queued run without steps; penstock.db.lifecycle.submit makes one with its graph."""
        row = {
            "id": new_id("run"), "model_id": model_id, "name": name, "state": RunState.QUEUED,
            "options": json.dumps(dict(options or {})), "owner": owner, "sharer": owner or "", "priority": priority,
            "actor": self.scope.actor,
        }  # fmt: skip
        run = self._only(Run, _CREATE, row)
        self.scope.locked_runs.add(run.id)
        return run

    def get(self, run_id: str) -> Run | None:
        return self._first(Run, select(runs).where(runs.c.id == run_id))

    def missing(self, run_ids: Collection[str]) -> set[str]:
        """Those of the runs that were deleted."""
        kept = self.connection.execute(select(runs.c.id).where(runs.c.id.in_(run_ids))).scalars()
        return set(run_ids) - set(kept)

    def lock(self, run_id: str) -> Run | None:
        """Lock the run's row until the end of the transaction. Take it before any step of the run."""
        run = self._first(Run, _LOCK, {"run": run_id})
        if run is not None:
            self.scope.locked_runs.add(run_id)
            self._locked[run_id] = run
        return run

    def as_locked(self, run_id: str) -> Run:
        """The run as it was when this transaction locked it, without another look."""
        self.scope.require_lock(run_id)
        return self._locked[run_id]

    def list(
        self,
        *,
        cursor: str | None = None,
        limit: int = 50,
        states: Sequence[str] = (),
        model_id: str | None = None,
        owner: str | None = None,
        platform: str | None = None,
        words: str = "",
        tag: str = "",
        with_step: Sequence[str] = (),
        without_step: Sequence[str] = (),
    ) -> Page[Run]:
        """Runs, the newest first. `words` is a part of a name or the beginning of an id; `with_step` and `without_step`
        are kinds of steps that tell runs of one sort from others."""
        where: list[ColumnElement[bool]] = [runs.c.state.in_(states)] if states else []
        if model_id:
            where.append(runs.c.model_id == model_id)
        if owner:
            where.append(runs.c.owner == owner)
        if platform:
            where.append(runs.c.options["platform"].astext == platform)
        if tag:
            where.append(runs.c.tags.contains([tag]))
        if words:
            where.append(
                or_(runs.c.name.icontains(words, autoescape=True), runs.c.id.startswith(words, autoescape=True))
            )
        if with_step:
            where.append(_has_step(with_step))
        if without_step:
            where.append(~_has_step(without_step))
        return self._newest_first(Run, runs, where, cursor, limit)

    def count_by_state(self) -> dict[str, int]:
        return self._pairs(select(runs.c.state, func.count()).group_by(runs.c.state))

    def count_going(self, owner: str | None = None) -> int:
        """How many runs are not over, of all or of one owner; among any number of those that are."""
        going = select(func.count()).where(runs.c.state.in_((RunState.QUEUED, RunState.RUNNING)))
        if owner is not None:
            going = going.where(runs.c.owner == owner)
        return self.connection.execute(going).scalar_one()

    def lock_intake(self) -> None:
        """Let one submission at a time count runs, until the transaction ends."""
        self.connection.execute(select(func.pg_advisory_xact_lock(_INTAKE)))

    def merge_summary(self, run_id: str, values: Json) -> None:
        """Add facts about the result, such as the chosen trial, to what the list of runs shows."""
        merged = runs.c.summary.op("||")(literal(dict(values), JSONB))
        self.connection.execute(update(runs).where(runs.c.id == run_id).values(summary=merged))

    def merge_options(self, run_id: str, values: Json) -> None:
        """Change what was asked of the run after its start."""
        merged = runs.c.options.op("||")(literal(dict(values), JSONB))
        self.connection.execute(update(runs).where(runs.c.id == run_id).values(options=merged))

    def set_pinned(self, run_id: str, pinned: bool) -> None:
        """Keep the run, or let it go when its time comes."""
        self.connection.execute(update(runs).where(runs.c.id == run_id).values(pinned=pinned))

    def set_labels(self, run_id: str, tags: Sequence[str], notes: str) -> Run:
        """What people say of the run, in place of what they said before."""
        self.scope.require_lock(run_id)
        changed = update(runs).where(runs.c.id == run_id).values(tags=[*tags], notes=notes)
        Events(self.scope).add(run_id, "run.label", {"tags": [*tags], "notes": notes})
        return self._only(Run, changed.returning(runs))

    def tags(self, limit: int) -> dict[str, int]:
        """How many runs carry each tag, the most used ones first."""
        tag = func.unnest(runs.c.tags).label("tag")
        each = select(tag).subquery()
        counted = select(each.c.tag, func.count()).group_by(each.c.tag).order_by(func.count().desc(), each.c.tag)
        return self._pairs(counted.limit(limit))

    def set_paused(self, run_id: str, paused: bool) -> bool:
        """Hold the run's trials back, or let them go; False if it is so already."""
        self.scope.require_lock(run_id)
        changed = update(runs).where(runs.c.id == run_id, runs.c.paused != paused).values(paused=paused)
        if self.connection.execute(changed.returning(runs.c.id)).first() is None:
            return False
        Events(self.scope).add(run_id, "run.pause" if paused else "run.resume", {"paused": paused})
        return True

    def transition(self, name: str, run_id: str, *, error: Json | None = None) -> Run:
        """Make the named move, record it as an event, or raise TransitionRefusedError and change nothing."""
        self.scope.require_lock(run_id)
        move = RUN_TRANSITIONS[name]
        before = self.get(run_id)
        values: dict[str, Any] = {"state": move.target}
        if move.target == RunState.RUNNING:
            values |= {"started_at": func.coalesce(runs.c.started_at, func.now()), "finished_at": None, "error": null()}
        if move.target in RUN_TERMINAL:
            values["finished_at"] = func.now()
        if error is not None:
            values["error"] = dict(error)
        guarded = update(runs).where(runs.c.id == run_id, runs.c.state.in_(move.sources)).values(values)
        after = self._first(Run, guarded.returning(runs))
        if before is None or after is None:
            raise TransitionRefusedError(run_id, name, before.state if before else None)
        data = {"from": before.state, "to": after.state} | ({"error": dict(error)} if error else {})
        Events(self.scope).add(run_id, f"run.{name}", data)
        if after.state in RUN_TERMINAL:
            Webhooks(self.scope).announce(after)
        return after


def _has_step(kinds: Sequence[str]) -> ColumnElement[bool]:
    return exists().where(steps.c.run_id == runs.c.id, steps.c.kind.in_(kinds))
