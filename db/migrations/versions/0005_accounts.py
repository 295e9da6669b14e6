"""Accounts: whose a token is and what it may do, who did what, and browsers' sessions apart from tokens.

Models and runs name their owner instead of one of the owner's tokens: tokens come and go.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# What a token was made for is the best that is known of whose it is. Those from before may submit, no more.
ACCOUNTS = """
ALTER TABLE penstock.tokens ADD COLUMN owner text, ADD COLUMN scope text NOT NULL DEFAULT 'submit';
UPDATE penstock.tokens SET owner = name;
ALTER TABLE penstock.tokens ALTER COLUMN owner SET NOT NULL, ALTER COLUMN scope DROP DEFAULT;

ALTER TABLE penstock.models DROP CONSTRAINT models_owner_fkey;
ALTER TABLE penstock.runs DROP CONSTRAINT runs_owner_fkey;
UPDATE penstock.models SET owner = tokens.owner FROM penstock.tokens WHERE tokens.id = models.owner;
UPDATE penstock.runs SET owner = tokens.owner FROM penstock.tokens WHERE tokens.id = runs.owner;
CREATE INDEX runs_owner ON penstock.runs (owner, id);

ALTER TABLE penstock.events ADD COLUMN actor text;

CREATE TABLE penstock.sessions (
    digest bytea PRIMARY KEY,
    token_id text NOT NULL REFERENCES penstock.tokens (id) ON DELETE CASCADE,
    kind text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL
);
CREATE INDEX sessions_expires ON penstock.sessions (expires_at);

CREATE TABLE penstock.audit (
    id bigserial PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor text NOT NULL,
    token_id text,
    action text NOT NULL,
    target text NOT NULL,
    status integer,
    request_id text,
    client text
);
CREATE INDEX audit_actor ON penstock.audit (actor, id);
CREATE FUNCTION penstock.refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE ON penstock.audit
    FOR EACH ROW EXECUTE FUNCTION penstock.refuse_audit_change();
"""

BACK = """
DROP TABLE penstock.audit;
DROP FUNCTION penstock.refuse_audit_change();
DROP TABLE penstock.sessions;
ALTER TABLE penstock.events DROP COLUMN actor;
DROP INDEX penstock.runs_owner;
UPDATE penstock.models SET owner = (SELECT min(id) FROM penstock.tokens WHERE tokens.owner = models.owner);
UPDATE penstock.runs SET owner = (SELECT min(id) FROM penstock.tokens WHERE tokens.owner = runs.owner);
ALTER TABLE penstock.models ADD FOREIGN KEY (owner) REFERENCES penstock.tokens (id);
ALTER TABLE penstock.runs ADD FOREIGN KEY (owner) REFERENCES penstock.tokens (id);
ALTER TABLE penstock.tokens DROP COLUMN owner, DROP COLUMN scope;
"""


def upgrade() -> None:
    op.execute(ACCOUNTS)


def downgrade() -> None:
    op.execute(BACK)
