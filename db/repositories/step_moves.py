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

# New steps. What needs nothing is queued from the start, and its first event says so: ten thousand trials have ten
# thousand events by then.
_MADE = """
    WITH made AS (
        INSERT INTO penstock.steps (
            id, run_id, kind, key, queue, state, payload, may_fail, max_attempts, licence, queued_at
        )
        SELECT id, :run, kind, key, queue, CASE WHEN waits THEN 'blocked' ELSE 'queued' END, payload, may_fail,
            max_attempts, licence, CASE WHEN waits THEN NULL ELSE now() END
        FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS row (
            id text, kind text, key text, queue text, payload jsonb, may_fail boolean, max_attempts integer,
            licence text, waits boolean
        )
        RETURNING *
    )
"""
CREATE = text(f"{_MADE} SELECT count(*) FROM made WHERE state = 'queued'")
# Their events are a statement of their own, the last one: nobody sees an event before its transaction ends, so whatever
# such a transaction does after it makes it late.
_TELL = """
    INSERT INTO penstock.events (run_id, kind, data, actor)
    SELECT run_id, 'step.create', jsonb_build_object('from', NULL, 'to', state, 'step', id, 'key', key), :actor
"""
TELL_CREATED = text(f"""
    {_TELL} FROM unnest(CAST(:steps AS text[])) AS one (step) JOIN penstock.steps ON id = step ORDER BY id
""")
# The steps that a run begins with, their edges and events too, and word to the dispatchers.
BEGIN = text(f"""
    {_MADE}, told AS ({_TELL} FROM made ORDER BY id RETURNING id), tied AS (
        INSERT INTO penstock.step_edges (step_id, needs_id)
        SELECT * FROM unnest(CAST(:ends AS text[]), CAST(:needs AS text[]))
    )
    SELECT made.*, (SELECT max(id) FROM told) AS last_event_id, (SELECT pg_notify(:channel, '')) AS woken
    FROM made ORDER BY made.id
""")

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
    SELECT * FROM claimed ORDER BY id
"""
CLAIM_NEXT = text(f"""
    WITH chosen AS (
        SELECT s.id {_DUE} AND s.due_at <= now() AND s.queue = ANY(:queues)
        AND (s.licence IS NULL OR s.licence <> ALL(CAST(:taken AS text[])))
        AND (:most = 1 OR s.kind = :kind AND s.licence IS NULL)
        ORDER BY s.id LIMIT :most FOR UPDATE OF s SKIP LOCKED
    ) {_CLAIMED}
""")
CLAIM_THIS = text(f"""
    WITH chosen AS (SELECT s.id {_DUE} AND s.id = :step FOR UPDATE OF s SKIP LOCKED) {_CLAIMED}
""")
# The ends of steps of a run that succeeded, each under its fence, with all that they leave but files. What took no time
# by the worker's own clock is charged a little too, so that steps of nothing take turns like others.
SUCCEED = text("""
    WITH given AS (
        SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS row (
            step text, fence bigint, result jsonb, reused_from text, seconds float8, trial jsonb
        )
    ), moved AS (
        UPDATE penstock.steps s SET
            state = 'succeeded', result = given.result, reused_from = given.reused_from, progress = 1.0,
            lease_until = NULL, finished_at = now()
        FROM given WHERE s.id = given.step AND s.fence = given.fence AND s.state = 'running'
        RETURNING s.*, given.seconds, given.trial,
            CASE WHEN given.reused_from IS NULL THEN 'succeed' ELSE 'reuse' END AS outcome
    ), told AS (
        INSERT INTO penstock.events (run_id, kind, data, actor)
        SELECT run_id, 'step.' || outcome, jsonb_build_object(
            'from', 'running', 'to', state, 'step', id, 'key', key, 'attempt', attempt, 'fence', fence
        ) || CASE WHEN reused_from IS NULL THEN '{}' ELSE jsonb_build_object('reused_from', reused_from) END,
        :actor FROM moved ORDER BY id
    ), found AS (
        INSERT INTO penstock.trials (
            step_id, run_id, number, state, params, figures, evidence, design, seconds, origin, version
        )
        SELECT moved.id, moved.run_id, t.number, t.state, t.params, t.figures, t.evidence, t.design, t.seconds,
            t.origin, t.version
        FROM moved, jsonb_to_record(moved.trial) AS t (
            number integer, state text, params jsonb, figures jsonb, evidence text, design jsonb, seconds float8,
            origin text, version text
        ) WHERE moved.trial IS NOT NULL
    ), ended AS (
        UPDATE penstock.attempts a SET outcome = moved.outcome, finished_at = now()
        FROM moved WHERE a.step_id = moved.id AND a.fence = moved.fence AND a.outcome IS NULL
        RETURNING greatest(coalesce(moved.seconds, extract(epoch FROM now() - a.started_at)), 0.001)::float8 AS seconds
    ), spent AS (
        SELECT count(*) AS steps, sum(seconds) AS seconds FROM ended
    ), run AS (
        UPDATE penstock.runs SET used = used + seconds FROM spent WHERE id = :run AND steps > 0
        RETURNING coalesce(owner, '') AS owner, steps, seconds
    ), share AS (
        INSERT INTO penstock.shares AS s (owner, used) SELECT owner, seconds FROM run
        ON CONFLICT (owner) DO UPDATE SET used = s.used + excluded.used
    ), used AS (
        INSERT INTO penstock.usage AS u (owner, month, steps, seconds)
        SELECT owner, date_trunc('month', now())::date, steps, seconds FROM run
        ON CONFLICT (owner, month)
        DO UPDATE SET steps = u.steps + excluded.steps, seconds = u.seconds + excluded.seconds
    )
    SELECT id FROM moved
""")
# Trials that another step made, each with a step of its own that is over from the start. Those that are known stay.
RECORD = text("""
    WITH given AS (
        SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS row (
            id text, key text, number integer, result jsonb, error jsonb, trial jsonb
        )
    ), made AS (
        INSERT INTO penstock.steps (
            id, run_id, kind, key, queue, state, payload, may_fail, attempt, fence, owner, progress, result, error,
            queued_at, started_at, finished_at
        )
        SELECT id, :run, :kind, key, :queue, CASE WHEN error IS NULL THEN 'succeeded' ELSE 'failed' END,
            jsonb_build_object('number', number), true, 1, 1, :owner, 1.0, coalesce(result, '{}'), error,
            now(), now(), now()
        FROM given ON CONFLICT (run_id, key) DO NOTHING RETURNING id
    )
    INSERT INTO penstock.trials (
        step_id, run_id, number, state, params, figures, evidence, design, seconds, origin, version
    )
    SELECT made.id, :run, t.number, t.state, t.params, t.figures, t.evidence, t.design, t.seconds, t.origin, t.version
    FROM made JOIN given ON given.id = made.id, jsonb_to_record(given.trial) AS t (
        number integer, state text, params jsonb, figures jsonb, evidence text, design jsonb, seconds float8,
        origin text, version text
    ) WHERE given.error IS NULL
""")
# Steps that a worker took with others and never began: nothing was done, so nothing is counted or charged.
RETURN = text("""
    WITH given AS (
        SELECT * FROM unnest(CAST(:steps AS text[]), CAST(:fences AS bigint[])) AS row (step, fence)
    ), moved AS (
        UPDATE penstock.steps s SET
            state = 'queued', attempt = s.attempt - 1, owner = NULL, lease_until = NULL, progress = NULL,
            queued_at = now(), due_at = now()
        FROM given WHERE s.id = given.step AND s.fence = given.fence AND s.state = 'running'
        RETURNING s.*
    ), told AS (
        INSERT INTO penstock.events (run_id, kind, data, actor)
        SELECT run_id, 'step.hand_back', jsonb_build_object(
            'from', 'running', 'to', state, 'step', id, 'key', key, 'attempt', attempt, 'fence', fence, 'error',
            CAST(:error AS jsonb)
        ), :actor FROM moved ORDER BY id
    ), ended AS (
        UPDATE penstock.attempts a SET outcome = 'hand_back', finished_at = now(), error = CAST(:error AS jsonb)
        FROM moved WHERE a.step_id = moved.id AND a.fence = moved.fence
    )
    SELECT id FROM moved
""")
# `OFFSET 0` keeps the planner from turning the walk over what is undone, which ends at the first that is needed, into
# a look at all of a run's steps.
OUTLOOK = text("""
    SELECT EXISTS (
        SELECT FROM penstock.steps WHERE run_id = :run AND state IN ('blocked', 'queued', 'running')
    ) AS open, EXISTS (
        SELECT FROM (
            SELECT DISTINCT step_id FROM penstock.step_edges WHERE needs_id = ANY(CAST(:steps AS text[]))
        ) mine JOIN penstock.steps waits ON waits.id = mine.step_id
        WHERE waits.state = 'blocked' AND NOT EXISTS (
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
