"""What a monitor asks for every few seconds reads an index: lost leases, trials of the last hour.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE INDEX attempts_lost ON penstock.attempts (finished_at) WHERE outcome = 'lose'")
    op.execute("CREATE INDEX trials_made ON penstock.trials (created_at)")


def downgrade() -> None:
    op.execute("DROP INDEX penstock.attempts_lost, penstock.trials_made")
