"""Counting a run's steps by kind and state reads an index alone: lists of runs do that for every run.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX steps_counts ON penstock.steps (run_id, kind, state)")


def downgrade() -> None:
    op.execute("DROP INDEX penstock.steps_counts")
