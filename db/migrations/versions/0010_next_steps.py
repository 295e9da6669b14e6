"""The next steps of a run come from an index in their order: among ten thousand that wait, each claim read them all.

Revision ID: 0010
Revises: 0009
"""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX steps_next ON penstock.steps (run_id, id) WHERE state = 'queued'")


def downgrade() -> None:
    op.execute("DROP INDEX penstock.steps_next")
