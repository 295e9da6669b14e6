"""Queues that hand out a step when a worker asks for one: no outbox, shares of owners and runs, counted licences.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

QUEUES = """
ALTER TABLE penstock.steps
    ADD COLUMN due_at timestamptz NOT NULL DEFAULT now(),
    ADD COLUMN licence text;
UPDATE penstock.steps SET due_at = outbox.due_at FROM penstock.outbox WHERE outbox.step_id = steps.id;
DROP TABLE penstock.outbox;

CREATE INDEX steps_queued ON penstock.steps (run_id, queue, id) WHERE state = 'queued';
CREATE INDEX steps_undone ON penstock.steps (run_id, id)
    WHERE NOT (state = 'succeeded' OR state = 'failed' AND may_fail);

ALTER TABLE penstock.runs
    ADD COLUMN priority integer NOT NULL DEFAULT 0,
    ADD COLUMN used double precision NOT NULL DEFAULT 0;

CREATE TABLE penstock.shares (
    owner text PRIMARY KEY,
    used double precision NOT NULL DEFAULT 0
);

CREATE TABLE penstock.usage (
    owner text NOT NULL,
    month date NOT NULL,
    steps bigint NOT NULL,
    seconds double precision NOT NULL,
    PRIMARY KEY (owner, month)
);
"""

BACK = """
DROP TABLE penstock.usage, penstock.shares;
ALTER TABLE penstock.runs DROP COLUMN priority, DROP COLUMN used;
CREATE TABLE penstock.outbox (
    id bigserial PRIMARY KEY,
    step_id text NOT NULL UNIQUE REFERENCES penstock.steps (id) ON DELETE CASCADE,
    queue text NOT NULL,
    due_at timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz
);
CREATE INDEX outbox_unpublished ON penstock.outbox (id) WHERE published_at IS NULL;
CREATE INDEX outbox_published ON penstock.outbox (queue, published_at) WHERE published_at IS NOT NULL;
INSERT INTO penstock.outbox (step_id, queue, due_at)
    SELECT steps.id, queue, due_at FROM penstock.steps JOIN penstock.runs ON runs.id = run_id
    WHERE steps.state = 'queued' AND NOT (runs.paused AND steps.kind = 'trial') ORDER BY steps.id;
DROP INDEX penstock.steps_queued, penstock.steps_undone;
ALTER TABLE penstock.steps DROP COLUMN due_at, DROP COLUMN licence;
"""


def upgrade() -> None:
    op.execute(QUEUES)


def downgrade() -> None:
    op.execute(BACK)
