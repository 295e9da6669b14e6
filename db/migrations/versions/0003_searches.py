"""Searches that pause and go on, trials that say where their setting and their figures come from.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS = """
ALTER TABLE penstock.runs ADD COLUMN paused boolean NOT NULL DEFAULT false;
ALTER TABLE penstock.trials
    ADD COLUMN origin text NOT NULL DEFAULT '',
    ADD COLUMN version text NOT NULL DEFAULT '';
"""

# A run that is over may be extended: it runs again.
RUN_MOVES = """
    ('queued', 'running'), ('running', 'succeeded'), ('queued', 'failing'), ('running', 'failing'),
    ('queued', 'cancelling'), ('running', 'cancelling'), ('failing', 'failed'), ('cancelling', 'cancelled')
"""
REOPENED = ", ('succeeded', 'running'), ('failed', 'running')"

GUARD = """
CREATE OR REPLACE FUNCTION penstock.refuse_illegal_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.state, NEW.state) NOT IN (VALUES {moves}) THEN
        RAISE EXCEPTION 'illegal transition of run %: % -> %', OLD.id, OLD.state, NEW.state;
    END IF;
    RETURN NEW;
END $$;
"""


def upgrade() -> None:
    op.execute(COLUMNS)
    op.execute(GUARD.format(moves=RUN_MOVES + REOPENED))


def downgrade() -> None:
    op.execute(GUARD.format(moves=RUN_MOVES))
    op.execute("ALTER TABLE penstock.trials DROP COLUMN origin, DROP COLUMN version")
    op.execute("ALTER TABLE penstock.runs DROP COLUMN paused")
