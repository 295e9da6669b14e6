"""The first tables: models, runs and their steps, what they produce, who may ask.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE penstock.tokens (
    id text PRIMARY KEY,
    name text NOT NULL,
    prefix text NOT NULL UNIQUE,
    digest bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz
);

CREATE TABLE penstock.models (
    id text PRIMARY KEY,
    name text NOT NULL,
    kind text NOT NULL,
    source text NOT NULL,
    sha256 text,
    size bigint,
    details jsonb NOT NULL DEFAULT '{}',
    owner text REFERENCES penstock.tokens (id),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE penstock.runs (
    id text PRIMARY KEY,
    model_id text NOT NULL REFERENCES penstock.models (id),
    name text NOT NULL,
    state text NOT NULL,
    options jsonb NOT NULL DEFAULT '{}',
    summary jsonb NOT NULL DEFAULT '{}',
    error jsonb,
    owner text REFERENCES penstock.tokens (id),
    created_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz,
    finished_at timestamptz
);
CREATE INDEX runs_model ON penstock.runs (model_id);
CREATE INDEX runs_state ON penstock.runs (state, id);

CREATE TABLE penstock.steps (
    id text PRIMARY KEY,
    run_id text NOT NULL REFERENCES penstock.runs (id) ON DELETE CASCADE,
    kind text NOT NULL,
    key text NOT NULL,
    queue text NOT NULL,
    state text NOT NULL,
    payload jsonb NOT NULL DEFAULT '{}',
    may_fail boolean NOT NULL DEFAULT false,
    attempt integer NOT NULL DEFAULT 0,
    max_attempts integer NOT NULL DEFAULT 3,
    fence bigint NOT NULL DEFAULT 0,
    owner text,
    lease_until timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    input_hash text,
    reused_from text,
    progress double precision,
    progress_text text,
    memo jsonb NOT NULL DEFAULT '{}',
    result jsonb NOT NULL DEFAULT '{}',
    error jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    queued_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    UNIQUE (run_id, key)
);
CREATE INDEX steps_leases ON penstock.steps (lease_until) WHERE state = 'running';
CREATE INDEX steps_open ON penstock.steps (run_id) WHERE state IN ('blocked', 'queued', 'running');
CREATE INDEX steps_reusable ON penstock.steps (kind, input_hash) WHERE state = 'succeeded';

CREATE TABLE penstock.step_edges (
    step_id text NOT NULL REFERENCES penstock.steps (id) ON DELETE CASCADE,
    needs_id text NOT NULL REFERENCES penstock.steps (id) ON DELETE CASCADE,
    PRIMARY KEY (step_id, needs_id)
);
CREATE INDEX step_edges_needs ON penstock.step_edges (needs_id);

CREATE TABLE penstock.attempts (
    step_id text NOT NULL REFERENCES penstock.steps (id) ON DELETE CASCADE,
    fence bigint NOT NULL,
    number integer NOT NULL,
    worker text NOT NULL,
    started_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz,
    outcome text,
    error jsonb,
    PRIMARY KEY (step_id, fence)
);

CREATE TABLE penstock.outbox (
    id bigserial PRIMARY KEY,
    step_id text NOT NULL UNIQUE REFERENCES penstock.steps (id) ON DELETE CASCADE,
    queue text NOT NULL,
    due_at timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);
CREATE INDEX outbox_unpublished ON penstock.outbox (id) WHERE published_at IS NULL;
CREATE INDEX outbox_published ON penstock.outbox (queue, published_at) WHERE published_at IS NOT NULL;

CREATE TABLE penstock.artifacts (
    id text PRIMARY KEY,
    run_id text NOT NULL REFERENCES penstock.runs (id) ON DELETE CASCADE,
    step_id text NOT NULL REFERENCES penstock.steps (id) ON DELETE CASCADE,
    name text NOT NULL,
    sha256 text NOT NULL,
    size bigint NOT NULL,
    media_type text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (step_id, name)
);
CREATE INDEX artifacts_run ON penstock.artifacts (run_id, id);
CREATE INDEX artifacts_content ON penstock.artifacts (sha256);

CREATE TABLE penstock.trials (
    step_id text PRIMARY KEY REFERENCES penstock.steps (id) ON DELETE CASCADE,
    run_id text NOT NULL REFERENCES penstock.runs (id) ON DELETE CASCADE,
    number integer NOT NULL,
    state text NOT NULL,
    params jsonb NOT NULL,
    figures jsonb NOT NULL,
    evidence text NOT NULL,
    design jsonb,
    seconds double precision NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (run_id, number)
);

CREATE TABLE penstock.profiles (
    key text PRIMARY KEY,
    platform text NOT NULL,
    tool text NOT NULL,
    evidence text NOT NULL,
    figures jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE penstock.events (
    id bigserial PRIMARY KEY,
    run_id text NOT NULL REFERENCES penstock.runs (id) ON DELETE CASCADE,
    kind text NOT NULL,
    data jsonb NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX events_run ON penstock.events (run_id, id);

CREATE TABLE penstock.idempotency_keys (
    scope text NOT NULL,
    key text NOT NULL,
    request_hash text NOT NULL,
    status integer,
    headers jsonb,
    body jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (scope, key)
);
"""

# Frozen here as the schema is; db/schema/states.py is what code reads, and a test compares the two.
STEP_MOVES = """
    ('blocked', 'queued'), ('queued', 'running'), ('running', 'succeeded'), ('running', 'failed'),
    ('running', 'queued'), ('blocked', 'cancelled'), ('queued', 'cancelled'), ('running', 'cancelled')
"""
RUN_MOVES = """
    ('queued', 'running'), ('running', 'succeeded'), ('queued', 'failing'), ('running', 'failing'),
    ('queued', 'cancelling'), ('running', 'cancelling'), ('failing', 'failed'), ('cancelling', 'cancelled')
"""

GUARDS = """
CREATE FUNCTION penstock.refuse_illegal_{name}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (VALUES {moves}) THEN
        RAISE EXCEPTION 'illegal transition of {name} %: % -> %', OLD.id, OLD.state, NEW.state;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER {name}s_legal BEFORE UPDATE ON penstock.{name}s FOR EACH ROW
    WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION penstock.refuse_illegal_{name}();
"""

APPEND_ONLY = """
CREATE FUNCTION penstock.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events are append-only';
END $$;
CREATE TRIGGER events_append_only BEFORE UPDATE ON penstock.events
    FOR EACH ROW EXECUTE FUNCTION penstock.refuse_change();
"""


def upgrade() -> None:
    op.execute(TABLES)
    op.execute(GUARDS.format(name="step", moves=STEP_MOVES))
    op.execute(GUARDS.format(name="run", moves=RUN_MOVES))
    op.execute(APPEND_ONLY)


def downgrade() -> None:
    op.execute("DROP SCHEMA penstock CASCADE")
    op.execute("CREATE SCHEMA penstock")
