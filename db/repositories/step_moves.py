"""The moves of steps as statements: what is done thousands of times a run is one statement, with its event and all.

Written out, since building such a statement costs more than running it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import TextClause, text
from sqlalchemy.dialects import postgresql

from penstock.db.schema.states import STEP_TERMINAL, STEP_TRANSITIONS, StepState
from penstock.db.schema.tables import steps

_TYPES = {column.name: column.type.compile(postgresql.dialect()) for column in steps.columns}
_JSON = {name for name, kind in _TYPES.items() if kind == "JSONB"}

_DUE = """
    FROM penstock.steps s JOIN penstock.runs r ON r.id = s.run_id
    WHERE s.run_id = :run AND s.state = 'queued' AND r.state IN ('queued', 'running')
    AND NOT (r.paused AND s.kind = ANY(:held))
"""
_CLAIMED = """
    , claimed AS (
        UPDATE penstock.steps s SET
            state = 'running', attempt = s.attempt + 1, fence = s.fence + 1, owner = :worker, progress = NULL,
            progress_text = NULL, lease_until = now() + make_interval(secs => :lease),
            started_at = coalesce(s.started_at, now())
        FROM chosen WHERE s.id = chosen.id RETURNING s.*
    ), told AS (
        INSERT INTO penstock.events (run_id, kind, data, actor)
        SELECT run_id, 'step.claim', jsonb_build_object(
            'from', 'queued', 'to', state, 'step', id, 'key', key, 'attempt', attempt, 'fence', fence,
            'worker', owner
        ), :actor FROM claimed
    ), noted AS (
        INSERT INTO penstock.attempts (step_id, fence, number, worker)
        SELECT id, fence, attempt, owner FROM claimed
    )
    SELECT * FROM claimed
"""
CLAIM_NEXT = text(f"""
    WITH chosen AS (
        SELECT s.id {_DUE} AND s.due_at <= now() AND s.queue = ANY(:queues)
        AND (s.licence IS NULL OR s.licence <> ALL(CAST(:taken AS text[])))
        ORDER BY s.id LIMIT 1 FOR UPDATE OF s SKIP LOCKED
    ) {_CLAIMED}
""")
CLAIM_THIS = text(f"""
    WITH chosen AS (SELECT s.id {_DUE} AND s.id = :step FOR UPDATE OF s SKIP LOCKED) {_CLAIMED}
""")
# `OFFSET 0` keeps the planner from turning the walk over what is undone, which ends at the first that is needed, into
# a look at all of a run's steps.
OUTLOOK = text("""
    SELECT EXISTS (
        SELECT FROM penstock.steps WHERE run_id = :run AND state IN ('blocked', 'queued', 'running')
    ) AS open, EXISTS (
        SELECT FROM penstock.step_edges mine JOIN penstock.steps waits ON waits.id = mine.step_id
        WHERE mine.needs_id = :step AND waits.state = 'blocked' AND NOT EXISTS (
            SELECT FROM (
                SELECT id FROM penstock.steps
                WHERE run_id = :run AND NOT (state = 'succeeded' OR state = 'failed' AND may_fail) ORDER BY id OFFSET 0
            ) need WHERE EXISTS (
                SELECT FROM penstock.step_edges e WHERE e.step_id = waits.id AND e.needs_id = need.id OFFSET 0
            )
        )
    ) AS releases
""")


# Each blocked step is looked at by itself, through the keys of its edges: whatever the planner believes of the tables.
_WAITS_FOR_NOTHING = """
    s.state = 'blocked' AND NOT EXISTS (
        SELECT FROM penstock.step_edges e WHERE e.step_id = s.id AND EXISTS (
            SELECT FROM penstock.steps need
            WHERE need.id = e.needs_id AND NOT (need.state = 'succeeded' OR need.state = 'failed' AND need.may_fail)
            OFFSET 0
        ) OFFSET 0
    )
"""
_WHICH = {"release": _WAITS_FOR_NOTHING, "cancel": "s.state IN ('blocked', 'queued')"}


class Sql(str):
    """A piece of a statement, written here and never from what anybody sent."""


def stamps(target: str) -> dict[str, Any]:
    if target == StepState.QUEUED:
        return {"queued_at": Sql("now()"), "owner": None, "lease_until": None, "progress": None}
    if target in STEP_TERMINAL:
        return {"finished_at": Sql("now()"), "lease_until": None}
    return {}


def move_one(changes: Mapping[str, Any], fenced: str) -> tuple[TextClause, dict[str, Any]]:
    """One move of one step with its event, in one statement; and the values that it binds."""
    bound = {f"new_{name}": value for name, value in changes.items() if not isinstance(value, Sql)}
    for name in _JSON & changes.keys():
        bound[f"new_{name}"] = json.dumps(bound[f"new_{name}"])
    sets = ", ".join(
        f"{name} = {value}" if isinstance(value, Sql)
        else f"{name} = CAST(:new_{name} AS {_TYPES[name]})"
        for name, value in changes.items()
    )  # fmt: skip
    return _text_of(sets, fenced), bound


@cache
def _text_of(sets: str, fenced: str) -> TextClause:
    return text(f"""
        WITH moved AS (
            UPDATE penstock.steps SET {sets} WHERE id = :step AND state = ANY(:sources){fenced} RETURNING *
        ), told AS (
            INSERT INTO penstock.events (run_id, kind, data, actor)
            SELECT :run, :told, jsonb_build_object(
                'from', CAST(:was AS text), 'to', state, 'step', id, 'key', key, 'attempt', attempt, 'fence', fence
            ) || CAST(:data AS jsonb), :actor FROM moved
        )
        SELECT * FROM moved
    """)


def _move_many(name: str, which: str) -> TextClause:
    """One move of whatever of a run's steps it applies to, with an event for each in the order of the steps."""
    target = STEP_TRANSITIONS[name].target
    sets = ", ".join(f"{column} = {value or 'NULL'}" for column, value in stamps(target).items())
    return text(f"""
        WITH before AS (SELECT s.id, s.state FROM penstock.steps s WHERE s.run_id = :run AND {which}),
        moved AS (
            UPDATE penstock.steps s SET state = '{target}', {sets} FROM before WHERE s.id = before.id
            RETURNING s.id, s.key, s.attempt, s.fence, before.state AS was
        )
        INSERT INTO penstock.events (run_id, kind, data, actor)
        SELECT :run, 'step.{name}', jsonb_build_object(
            'from', was, 'to', '{target}', 'step', id, 'key', key, 'attempt', attempt, 'fence', fence
        ), :actor FROM moved ORDER BY id
    """)


MOVES_OF_MANY = {name: _move_many(name, which) for name, which in _WHICH.items()}
