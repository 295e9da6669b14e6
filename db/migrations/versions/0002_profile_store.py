"""Profiles that all workers share: who measures one now, which runs cite it; and how far rungs of evidence differ.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLES = """
ALTER TABLE penstock.profiles
    ADD COLUMN label text NOT NULL DEFAULT '',
    ADD COLUMN seconds double precision NOT NULL DEFAULT 0,
    ADD COLUMN uses bigint NOT NULL DEFAULT 0,
    ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();

CREATE INDEX profiles_used ON penstock.profiles (used_at);

CREATE TABLE penstock.profile_claims (
    key text PRIMARY KEY,
    holder text NOT NULL,
    label text NOT NULL,
    lease_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE penstock.profile_citations (
    key text NOT NULL REFERENCES penstock.profiles (key),
    run_id text NOT NULL REFERENCES penstock.runs (id) ON DELETE CASCADE,
    how text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (key, run_id)
);

CREATE INDEX profile_citations_run ON penstock.profile_citations (run_id);

CREATE TABLE penstock.profile_counts (
    name text PRIMARY KEY,
    value double precision NOT NULL
);

CREATE TABLE penstock.rung_pairs (
    model text NOT NULL,
    design text NOT NULL,
    weaker text NOT NULL,
    stronger text NOT NULL,
    family text NOT NULL,
    mix text NOT NULL,
    weaker_cycles double precision NOT NULL,
    stronger_cycles double precision NOT NULL,
    run_id text REFERENCES penstock.runs (id) ON DELETE SET NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (model, design, weaker, stronger)
);

CREATE INDEX rung_pairs_family ON penstock.rung_pairs (family, weaker, stronger, created_at);
CREATE INDEX rung_pairs_run ON penstock.rung_pairs (run_id);
"""


def upgrade() -> None:
    op.execute(TABLES)


def downgrade() -> None:
    op.execute("DROP TABLE penstock.rung_pairs, penstock.profile_counts, penstock.profile_citations")
    op.execute("DROP TABLE penstock.profile_claims")
    op.execute(
        "ALTER TABLE penstock.profiles DROP COLUMN label, DROP COLUMN seconds, DROP COLUMN uses, DROP COLUMN used_at"
    )
