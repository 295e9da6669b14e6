"""What people write beside runs: tags, notes, saved views of the list. And what a tool says while it runs.

Revision ID: 0009
Revises: 0008
"""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

LABELS = """
ALTER TABLE penstock.runs ADD COLUMN tags text[] NOT NULL DEFAULT '{}';
ALTER TABLE penstock.runs ADD COLUMN notes text NOT NULL DEFAULT '';
CREATE INDEX runs_tags ON penstock.runs USING gin (tags);

CREATE TABLE penstock.views (
    id text PRIMARY KEY,
    owner text,
    name text NOT NULL,
    query jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX views_name ON penstock.views (coalesce(owner, ''), name);

CREATE TABLE penstock.step_logs (
    step_id text PRIMARY KEY REFERENCES penstock.steps (id) ON DELETE CASCADE,
    fence bigint NOT NULL,
    tail text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);
"""

BACK = """
DROP TABLE penstock.step_logs, penstock.views;
DROP INDEX penstock.runs_tags;
ALTER TABLE penstock.runs DROP COLUMN tags, DROP COLUMN notes;
"""


def upgrade() -> None:
    op.execute(LABELS)


def downgrade() -> None:
    op.execute(BACK)
