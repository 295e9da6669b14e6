"""Upkeep: pinned runs, content found by its hash, webhooks and what was sent to them.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

UPKEEP = """
ALTER TABLE penstock.runs ADD COLUMN pinned boolean NOT NULL DEFAULT false;
CREATE INDEX runs_finished ON penstock.runs (finished_at) WHERE NOT pinned;
CREATE INDEX models_content ON penstock.models (sha256);
CREATE INDEX audit_at ON penstock.audit (at);

CREATE TABLE penstock.webhooks (
    id text PRIMARY KEY,
    owner text,
    everybody boolean NOT NULL DEFAULT false,
    url text NOT NULL,
    kinds text[] NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    why_disabled text NOT NULL DEFAULT '',
    generation integer NOT NULL DEFAULT 1,
    rotated_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE penstock.deliveries (
    id text PRIMARY KEY,
    webhook_id text NOT NULL REFERENCES penstock.webhooks (id) ON DELETE CASCADE,
    kind text NOT NULL,
    body text NOT NULL,
    state text NOT NULL DEFAULT 'pending',
    attempts integer NOT NULL DEFAULT 0,
    due_at timestamptz NOT NULL DEFAULT now(),
    status integer,
    problem text NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL DEFAULT now(),
    finished_at timestamptz
);
CREATE INDEX deliveries_due ON penstock.deliveries (due_at) WHERE state = 'pending';
CREATE INDEX deliveries_webhook ON penstock.deliveries (webhook_id, id);
"""

BACK = """
DROP TABLE penstock.deliveries, penstock.webhooks;
DROP INDEX penstock.audit_at, penstock.models_content, penstock.runs_finished;
ALTER TABLE penstock.runs DROP COLUMN pinned;
"""


def upgrade() -> None:
    op.execute(UPKEEP)


def downgrade() -> None:
    op.execute(BACK)
